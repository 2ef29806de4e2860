"""What runs have found of the modes of collective calls, in a file for the next run: JSON, to be read and edited."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import WorkloadError
from ..files.parts import write_durably
from .board import Known, Site

VERSION = 1
#: Bytes and entries of a profile that is read.
BYTES_MAX, ENTRIES_MAX = 4 << 20, 1024
RATIO_MAX = 1e12
#: Of longer names, and of those that are no UTF-8, a run does not know what they are.
NAME_BYTES_MAX = 400
_KEYS = ("file", "op", "processes", "mode", "other_costs")


def read_profile(path: Path) -> tuple[Known, ...]:
    """Its entries; none where there is no such file yet. Raises WorkloadError naming file and key."""
    try:
        with path.open("rb") as file:
            text = file.read(BYTES_MAX + 1)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise WorkloadError(f"{path}: cannot be read ({error.strerror}); check the file") from error
    if len(text) > BYTES_MAX:
        raise WorkloadError(f"{path}: is longer than {BYTES_MAX >> 20} MiB; give a profile that --profile has written")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorkloadError(f"{path}: is no JSON ({error}); mend it, or remove it to begin anew") from error
    if (
        not isinstance(found, dict)
        or type(found.get("version")) is not int
        or found["version"] != VERSION
        or not isinstance(found.get("files"), list)
    ):
        raise WorkloadError(
            f"{path}: is no profile of version {VERSION}: {{'version': {VERSION}, 'files': [...]}}; remove it to begin "
            "anew"
        )
    if len(found["files"]) > ENTRIES_MAX:
        raise WorkloadError(f"{path}: files: has {len(found['files'])} entries, at most {ENTRIES_MAX} can be; cut it")
    return tuple(_entry(path, number, each) for number, each in enumerate(found["files"]))


def _entry(path: Path, number: int, found: Any) -> Known:
    """One entry, checked."""
    where = f"{path}: files[{number}]"
    if not isinstance(found, dict) or set(found) != set(_KEYS):
        raise WorkloadError(f"{where}: must have the keys {', '.join(_KEYS)} and no others; correct it")
    file, op, processes, mode, ratio = (found[key] for key in _KEYS)
    # No text of a surrogate: it has no bytes.
    if (
        not isinstance(file, str)
        or not file.startswith("/")
        or any(char == "\0" or "\ud800" <= char <= "\udfff" for char in file)
    ):
        raise WorkloadError(f"{where}: file: is no absolute path; correct it")
    if op not in ("read", "write"):
        raise WorkloadError(f"{where}: op: is not read or write; correct it")
    if type(processes) is not int or not 2 <= processes < 1 << 31:
        raise WorkloadError(f"{where}: processes: is no number from 2 on; correct it")
    if mode not in ("collective", "independent"):
        raise WorkloadError(f"{where}: mode: is not collective or independent; correct it")
    if ratio is not None and (type(ratio) not in (int, float) or not 1 <= ratio <= RATIO_MAX):
        raise WorkloadError(f"{where}: other_costs: is neither null nor a number from 1 to 1e12; correct it")
    return Known(
        file=file,
        write=op == "write",
        processes=processes,
        independent=mode == "independent",
        ratio=None if ratio is None else float(ratio),
    )


def write_profile(path: Path, sites: Iterable[Site]) -> None:
    """Takes what a run has found into the profile, in place of what was known of the same.

    Raises what `read_profile` does, and OSError.
    """
    known = {(each.file, each.write, each.processes): each for each in read_profile(path)}
    for site in sites:
        # Nothing was compared: of such a run the next one knows no more than by itself.
        if not site.contests or site.ratio is None:
            continue
        is_whole = len(site.file.encode()) < NAME_BYTES_MAX and "\ufffd" not in site.file
        if site.mode is None or site.reason in ("given", "deferred", "unknown") or not is_whole:
            continue
        key = (site.file, site.write, site.processes)
        known.pop(key, None)
        known[key] = Known(
            file=site.file,
            write=site.write,
            processes=site.processes,
            independent=site.mode == "independent",
            ratio=min(max(site.ratio, 1.0), RATIO_MAX),
        )
    # The newest are at the end.
    entries = [
        {
            "file": each.file,
            "op": "write" if each.write else "read",
            "processes": each.processes,
            "mode": "independent" if each.independent else "collective",
            "other_costs": each.ratio,
        }
        for each in list(known.values())[-ENTRIES_MAX:]
    ]
    text = json.dumps({"version": VERSION, "files": entries}, indent=1, ensure_ascii=False) + "\n"
    write_durably(path, text)
