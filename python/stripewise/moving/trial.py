"""A note on the files that lie in a layout under trial, in the lock file of `tune` while it works.

Whoever finds it with nobody at work knows that a tune was killed, for one that ends takes it back, however it ends.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import LayoutError
from ..files.parts import is_locked, overwrite_part, read_part
from ..files.spelling import path_meant
from ..layout import Layout, layout_json, parse_layout
from ..store.config import TUNE_LOCK
from ..units import command_line, quoted

#: So many of the files are noted, the others counted.
NOTED_MAX = 1000
#: Regions of former layouts that are noted, all files together.
REGIONS_MAX = 2000
#: So many are read of notes that several killed tunes have added to, and a note is no longer than this.
READ_MAX, NOTE_BYTES_MAX = 8 * NOTED_MAX, 16 << 20
#: So many are named in a command.
NAMED = 8


def note_trial(
    root: Path,
    command: Sequence[str],
    paths: Sequence[str],
    before: Mapping[str, Layout],
    there: Collection[str],
    earlier: str = "",
) -> None:
    """Notes that a tune of `command` lays these files out, how they lay before, and which were not `there` before its
    runs, beside what an `earlier` one that was killed had noted; by who has the lock. A full disk keeps nobody.
    """
    layouts, regions = {}, 0
    for path in paths[:NOTED_MAX]:
        regions += len(before[path].regions) if path in before else 0
        if path in before and regions <= REGIONS_MAX:
            layouts[path] = layout_json(before[path])
    made = [path for path in paths[:NOTED_MAX] if path not in there]
    said = {"command": command_line(command), "files": list(paths[:NOTED_MAX]), "count": len(paths)}
    said |= {"before": layouts, "made": made}
    if (killed := _read(earlier)) is not None:
        # Where a file lay before both is what counts, whichever of them has noted it.
        said["before"] = {**killed["before"], **layouts}
        others = _without(killed, paths) or {"files": [], "count": 0, "made": []}
        for key in ("files", "count", "made"):
            said[key] += others[key]
    with suppress(OSError):
        overwrite_part(root, TUNE_LOCK, json.dumps(said))


def former_layouts(root: Path, targets: Sequence[str]) -> dict[str, Layout]:
    """How the files of a killed tune lay before it, by path, as far as that was noted and the targets are there yet."""
    found = {}
    for path, layout in (_noted(root) or {"before": {}})["before"].items():
        with suppress(LayoutError):
            found[str(path)] = parse_layout(layout, root / TUNE_LOCK, targets)
    return found


def made_by_trial(root: Path) -> list[str]:
    """The files of a killed tune that its own runs made: they had no layout before."""
    return list((_noted(root) or {"made": []})["made"])


def noted_text(root: Path) -> str:
    """What is noted, as it stands; nothing where nothing is."""
    with suppress(OSError, UnicodeDecodeError):
        return read_part(root, TUNE_LOCK, NOTE_BYTES_MAX).decode()
    return ""


def end_trial(root: Path, earlier: str, paths: Collection[str]) -> None:
    """These files lie in no layout under trial any more, or who is concerned has been told; what an `earlier` tune had
    noted of others stays.
    """
    left = _without(_read(earlier), paths)
    with suppress(OSError):
        overwrite_part(root, TUNE_LOCK, json.dumps(left) if left else "")


def settle(root: Path, paths: Collection[str]) -> None:
    """These files have a layout that somebody wanted, so a tune that was killed has left nothing of them."""
    if not is_locked(root, TUNE_LOCK) and _noted(root) is not None:
        end_trial(root, noted_text(root), paths)


def cut_short(root: Path) -> str:
    """That a tune was killed here, of which command, and which files it may have left; empty where none was."""
    if is_locked(root, TUNE_LOCK) or (said := _noted(root)) is None:
        return ""
    more = f" (and {said['count'] - 1} more)" if said["count"] > 1 else ""
    return (
        f"a tune of '{said['command']}' was killed: {said['files'][0]}{more} may lie in a layout under trial, not in "
        "its former one"
    )


def cure_of(root: Path) -> str:
    """The ways out of that."""
    said = _noted(root)
    names = said["files"] if said is not None and said["count"] <= NAMED else ["FILE"]
    words = ["stripewise", "store", "set-layout", *map(path_meant, names), "--layout", "def"]
    back = command_line(["stripewise", "store", "fsck", str(root), "--repair"])
    put_back = f"put the files back: {back}, or " if said is not None and (said["before"] or said["made"]) else ""
    return f"{put_back}lay them out: stripewise apply PLAN --store {quoted(root)}, or {command_line(words)}"


def _noted(root: Path) -> dict[str, Any] | None:
    """What is noted; nothing where it cannot be read, or a kill has torn it."""
    return _read(noted_text(root))


def _read(text: str) -> dict[str, Any] | None:
    """A note, as far as one is written: whoever may write the store may write more than that into it."""
    try:
        said = json.loads(text)
        files, made = (_paths(said.get(key) or ()) for key in ("files", "made"))
        noted = dict(said.get("before") or {})
        before = {path: noted[path] for path in _paths(noted)}
        count = max(int(said["count"]), len(files))
        found = {"command": str(said["command"]), "files": files, "count": count, "before": before, "made": made}
        return found if files else None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def _paths(said: Iterable[Any]) -> list[str]:
    """The paths among these, each once, and no more than the notes of a few tunes have."""
    found = dict.fromkeys(path for path in said if isinstance(path, str) and path.startswith("/") and "\0" not in path)
    # Half a surrogate pair is in no path.
    return [path for path in itertools.islice(found, READ_MAX) if path.encode(errors="ignore").decode() == path]


def _without(said: dict[str, Any] | None, paths: Collection[str]) -> dict[str, Any] | None:
    """What is noted of other files than these; nothing where that is none."""
    if said is None:
        return None
    paths = set(paths)
    left = [path for path in said["files"] if path not in paths]
    before = {path: layout for path, layout in said["before"].items() if path not in paths}
    count = said["count"] - (len(said["files"]) - len(left))
    made = [path for path in said["made"] if path not in paths]
    return {**said, "files": left, "count": count, "before": before, "made": made} if left else None
