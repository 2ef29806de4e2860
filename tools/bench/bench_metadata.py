"""What programs pay to make, find, open, read, list, rename and remove many small files, as mdtest measures it: a plain
directory, the same through the library, a managed one and a FUSE passthrough, side by side in one run by turns; with
the system calls of each operation where strace is there. Part of `make bench`.
"""

from __future__ import annotations

import json
import shutil
import statistics
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bench_common import LIBRARY, ROOT, Effort, run
from bench_fuse import passthrough
from bench_small import BARE, Side, in_memory

PROGRAM = ROOT / "target/native/metadata"
PROCESSES = 2
#: Whether each process has a tree of its own.
MODES: dict[str, tuple[str, ...]] = {"own": (), "shared": ("--shared",)}
PHASES = {
    "create": "create + write + close",
    "stat": "stat",
    "open_close": "open + close",
    "read": "open + read + close",
    "readdir": "entry of readdir",
    "rename": "rename",
    "unlink": "unlink",
}
#: What the program does as the first call of a phase.
MARK = "sched_yield"
#: Operations per second or system calls per operation, by phase.
Figures = dict[str, float]


def metadata(scratch: Path, effort: Effort) -> list[dict[str, object]]:
    """An entry per phase and mode."""
    base = scratch / "metadata"
    with in_memory(base, effort) as where:
        managed = Side(base, "metadata", LIBRARY)
        places: dict[str, tuple[Path, Mapping[str, str]]] = {
            "plain": (managed.plain, BARE),
            "unmanaged": (managed.plain, managed.environment),
            "managed": (managed.data, managed.environment),
        }
        with passthrough(base / "below", base / "fuse") as fuse:
            if fuse:
                places["fuse"] = (fuse, BARE)
            calls = _calls(base, places, effort.metadata_files)
            rates = {mode: _rates(places, options, effort) for mode, options in MODES.items()}
    return [entry for mode, found in rates.items() for entry in _entries(f"metadata.{mode}", where, found, calls)]


def _command(place: Path, files: int, *options: str) -> list[object]:
    return [PROGRAM, place, "--processes", PROCESSES, "--files", files, *options]


def _rates(
    places: Mapping[str, tuple[Path, Mapping[str, str]]], options: tuple[str, ...], effort: Effort
) -> dict[str, list[Figures]]:
    """Of each turn, by place."""
    rates: dict[str, list[Figures]] = {name: [] for name in places}
    for _ in range(effort.metadata_turns):
        for name, (place, environment) in places.items():
            text = run(*_command(place, effort.metadata_files, *options), environment=environment)
            rates[name].append(json.loads(text)["operations_per_s"])
    return rates


def _calls(base: Path, places: Mapping[str, tuple[Path, Mapping[str, str]]], files: int) -> dict[str, Figures]:
    """System calls of an operation, by place; none without strace."""
    if not shutil.which("strace"):
        return {}
    log = base / "strace"
    found: dict[str, Figures] = {}
    for name in ("plain", "managed"):
        place, environment = places[name]
        given = [word for key, value in environment.items() for word in ("-E", f"{key}={value}")]
        # strace itself runs without the library.
        run("strace", "-f", "-qq", "-e", "signal=none", "-o", log, *given, *_command(place, files))
        found[name] = counted(log.read_text(), files * PROCESSES)
    return found


def counted(log: str, files: int) -> Figures:
    """System calls per file between the marks of each process."""
    calls: Counter[str] = Counter()
    marks: Counter[str] = Counter()
    for line in log.splitlines():
        process, call = line.split(None, 1)
        if call.startswith(MARK):
            marks[process] += 1
        elif 0 < marks[process] <= len(PHASES) and not call.startswith(("futex", "<...", "+++")):
            calls[[*PHASES][marks[process] - 1]] += 1
    return {phase: calls[phase] / files for phase in PHASES}


def _entries(
    name: str, where: str, rates: dict[str, list[Figures]], calls: dict[str, Figures]
) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = []
    for phase, what in PHASES.items():
        medians = {place: statistics.median(turn[phase] for turn in turns) for place, turns in rates.items()}
        pairs = zip(rates["plain"], rates["managed"], strict=True)
        times = statistics.median(plain[phase] / managed[phase] for plain, managed in pairs)
        told = ", ".join(f"{place} {per_s:,.0f}/s" for place, per_s in medians.items())
        beside = {place: round(each[phase], 1) for place, each in calls.items()}
        if beside:
            told += f"; system calls: plain {beside['plain']}, managed {beside['managed']}"
        entries.append(
            {
                "name": f"{name}_{phase}",
                "value": round(times, 2),
                "unit": f"times a plain file's {what}",
                "baseline": f"{where}, {PROCESSES} processes, four directories; {told}",
                "ratio": round(times, 3),
                "operations_per_s": {place: round(per_s) for place, per_s in medians.items()},
                "system_calls": beside,
            }
        )
    return entries
