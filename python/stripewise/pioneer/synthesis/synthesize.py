"""From a profile to a path that the player plays: by statistics (thesis, section 2.6.4, algorithm 1), by symbolic
patterns, or file by file by either, whichever is expected to be more like the run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ... import native
from ...errors import UsageError, WorkloadError, naming
from .. import path as paths
from ..characterization.profile_reader import PROCESSES_MAX, profile_of
from .knobs import turned
from .likeness import Likeness, expected, floor_of
from .mixture import has_uncovered, uncovered_of, write_mixture
from .program import has_program, write_program
from .unfinished import beside

STATISTICS, SYMBOLIC, MIXTURE = "statistics", "symbolic", "mixture"
WAYS = (STATISTICS, SYMBOLIC, MIXTURE)
#: Files of which `synth --json` says the way.
FILES_SAID_MAX = 4096
SEED_MAX = (1 << 64) - 1
#: Expected distances (all three together) that differ by less are no reason for statistics where there are patterns:
#: chance in durations makes as much.
TIE = 0.05


@dataclass(frozen=True)
class Knobs:
    """What is changed before a path is made (knobs.py)."""

    scale: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    fs: str | None = None

    def __bool__(self) -> bool:
        return bool(self.scale or self.sets or self.fs)


#: The profile as it is.
NO_KNOBS = Knobs()


@dataclass(frozen=True)
class FileWay:
    """A file of a path, its class, and by which way its requests were made: statistics or symbolic."""

    name: str
    file_class: str
    way: str


@dataclass(frozen=True)
class Synthetic:
    """A path that was made."""

    path: Path
    #: One of `WAYS`.
    way: str
    processes: int
    #: Of rank 0.
    requests: int
    files: int
    nodes: int
    #: By way that was tried, what is expected of it; None where the profile does not tell.
    likeness: Mapping[str, Likeness | None]
    #: The patterns are of one number of processes: that they grow as they do is a guess.
    is_guess: bool
    #: The classes were edited, and patterns are left out for that.
    is_edited: bool
    #: By file, the first `FILES_SAID_MAX`.
    ways: tuple[FileWay, ...]
    #: The way that the profile's patterns are good for: symbolic or mixture; None: it has none.
    patterns: str | None
    #: How far two ranks of the traced run are apart: no run is expected to be nearer.
    floor: Likeness | None

    def as_json(self) -> dict[str, Any]:
        """As `synth --json` prints it."""
        likeness = {way: each and asdict(each) for way, each in self.likeness.items()}
        return {
            "path": str(self.path), "by": self.way, "processes": self.processes, "requests": self.requests,
            "files": self.files, "nodes": self.nodes, "expected": likeness,
            "floor": self.floor and asdict(self.floor), "guess": self.is_guess,
            "edited": self.is_edited,
            "ways": [{"file": each.name, "class": each.file_class, "by": each.way} for each in self.ways],
        }  # fmt: skip


def synthesize(
    data: Mapping[str, Any],
    source: str,
    out: Path,
    processes: int | None = None,
    seed: int = 1,
    knobs: Knobs = NO_KNOBS,
    by: str | None = None,
) -> Synthetic:
    """Writes a path of the profile (as JSON with all keys); `source` names it in errors.

    `processes` (default: the profile's) is the number that statistics scale to; a path by symbolic patterns holds their
    numbers at it. Raises WorkloadError, and UsageError for knobs and ways that do not fit.
    """
    processes = int(data["processes"]) if processes is None else processes
    if not 1 <= processes <= PROCESSES_MAX:
        raise UsageError(f"-n: {processes} is not from 1 to {PROCESSES_MAX}")
    if by not in (None, *WAYS):
        raise UsageError(f"--by: '{by}' is no way; give {', '.join(WAYS)}")
    programs: Mapping[str, Any] = data.get("programs") or {}
    patterns = _patterns(programs)
    # Who edits the classes wants what they say.
    is_edited = patterns is not None and by is None and programs.get("classes", digest(data)) != digest(data)
    if by in (SYMBOLIC, MIXTURE) and by != patterns:
        raise UsageError(f"--by: {source} {_LACKS[by, patterns]}; give --by {patterns or STATISTICS}")
    if by in (SYMBOLIC, MIXTURE) and knobs:
        raise UsageError("--by: knobs change statistics alone; leave them out, or give --by statistics")
    statistics = any(of["OS"] for of in data["classes"].values())
    tries = [by] if by is not None else [
        *([patterns] if patterns and not knobs and not is_edited else []), *([STATISTICS] if statistics else [])
    ]  # fmt: skip
    if not tries:
        raise UsageError(f"--scale, --set, --fs: change statistics, and {source} has no file in any class (OS)")
    changed = at_processes(turned(data, knobs.scale, knobs.sets, knobs.fs), processes)
    if knobs:
        # What knobs made is checked as what a person writes.
        with _as_usage(source):
            changed = profile_of(changed, source).as_json()
    with contextlib.ExitStack() as held:
        made: dict[str, Path] = {}
        of_patterns = {SYMBOLIC: FILES_SAID_MAX}
        for way in tries:
            part = held.enter_context(beside(out))
            if way == STATISTICS:
                with naming(source):
                    native.call("pioneer_synthesize", json.dumps(changed), processes, seed, part)
            else:
                write_program(programs, processes, seed, part, source, bool(data.get("apart")))
                _check_offsets(part, processes, source)
            if way == MIXTURE:
                requests, uncovered = uncovered_of(data, source)
                woven = held.enter_context(beside(out))
                uncovered = at_processes(uncovered, processes)
                of_patterns[way] = write_mixture(part, uncovered, requests, processes, seed, woven, source)
                part = woven
            made[way] = part
        judged = {way: None if knobs else expected(part, processes, programs, source) for way, part in made.items()}
        way, floor = _better(judged), None if knobs else floor_of(programs, source)
        facts = paths.info(made[way])
        os.replace(made[way], out)
    is_guess = way != STATISTICS and bool(programs.get("guess")) and [processes] != programs.get("processes")
    ways = tuple(
        FileWay(each["name"], each["class"], SYMBOLIC if at < of_patterns.get(way, 0) else STATISTICS)
        for at, each in enumerate(facts["files"][:FILES_SAID_MAX])
    )
    return Synthetic(
        out, way, processes, facts["requests"], len(facts["files"]), facts["nodes"], judged, is_guess, is_edited, ways,
        patterns, floor,
    )  # fmt: skip


#: By way that is asked for and the one that the patterns are for what a profile lacks.
_LACKS = {
    (SYMBOLIC, None): "has no symbolic patterns (key programs)",
    (SYMBOLIC, MIXTURE): "has symbolic patterns of some files alone (key programs.uncovered)",
    (MIXTURE, None): "has no symbolic patterns (key programs)",
    (MIXTURE, SYMBOLIC): "has symbolic patterns of all files",
}


def _patterns(programs: Mapping[str, Any]) -> str | None:
    """The way that the patterns of a profile are good for: of all files, or of some; None where there are none."""
    if not has_program(programs):
        return None
    return MIXTURE if has_uncovered(programs) else SYMBOLIC


@contextlib.contextmanager
def _as_usage(source: str) -> Iterator[None]:
    try:
        yield
    except WorkloadError as error:
        raise UsageError(f"--scale, --set, --fs: make no profile: {error}") from error


def digest(data: Mapping[str, Any]) -> str:
    """Of a profile's classes, as JSON: whether somebody has edited them since the patterns were made."""
    return hashlib.sha256(json.dumps(data["classes"], sort_keys=True).encode()).hexdigest()[:16]


def _check_offsets(path: Path, processes: int, source: str) -> None:
    """Raises WorkloadError where a rank would go below a file's begin: formulas of other numbers of processes do."""
    for rank in {0, 1, processes - 1} & set(range(processes)):
        found = paths.requests(path, processes, rank)
        if (found["offset"] < -1).any():
            raise WorkloadError(
                f"{source}: programs: rank {rank} would go to offset {found['offset'].min()}: no formulas for "
                f"{processes} processes; give --by {STATISTICS}, or traces of other numbers to 'characterize'"
            )


def _better(judged: Mapping[str, Likeness | None]) -> str:
    """The way that is expected to be nearer; patterns where that is the same, or nobody knows."""
    first, *others = judged
    for other in others:
        here, there = judged[first], judged[other]
        if here is not None and there is not None and there.sum < here.sum - TIE:
            first = other
    return first


def at_processes(data: Mapping[str, Any], processes: int) -> dict[str, Any]:
    """The profile for so many processes: shared files that the ranks share in turn grow with them.

    Where all offsets (OFF) of a kind of session on shared files lie in the root's own part of rounds of P x SHIFT
    bytes, rounds get as long as `processes` make them; all else stays (weak scaling). A guess, from one P.
    """
    made = dict(data)
    before = int(made["processes"])
    shared = made["classes"].get("shared")
    if before == processes or not shared or not shared["OS"]:
        return made
    sessions = dict(shared["sessions"])
    shared = {**shared, "sessions": sessions}
    grown = None
    for kind, of in sessions.items():
        shift = _usual(of.get("SHIFT", {}))
        offsets = of.get("OFF")
        if shift is None or shift <= 0 or offsets is None:
            continue
        unit = before * shift
        values = _numbers(offsets)
        if not values or max(values) < unit or any(value % unit >= shift for value in values):
            continue
        sessions[kind] = {**of, "OFF": _moved(offsets, unit, processes * shift)}
        if "VIEW" in of:
            sessions[kind]["VIEW"] = [_turned(view, unit, processes * shift) for view in of["VIEW"]]
        grown = (unit, processes * shift)
    if grown is not None and shared.get("FS") is not None and _numbers(shared["FS"]):
        shared["FS"] = _moved(shared["FS"], *grown)
    made["classes"] = {**made["classes"], "shared": shared}
    return made


def _numbers(of: Mapping[str, Any]) -> list[int]:
    """Whole values of a distribution that a trace showed; nothing of a law."""
    given = of.get("values", of.get("quantiles", [of["constant"]] if "constant" in of else []))
    return [int(each) for each in given] if all(float(each).is_integer() for each in given) else []


def _moved(of: Mapping[str, Any], unit: int, new: int) -> dict[str, Any]:
    def one(value: float) -> int:
        return int(value) // unit * new + int(value) % unit

    if "constant" in of:
        return {"constant": one(of["constant"])}
    key = "values" if "values" in of else "quantiles"
    return {**of, key: [one(each) for each in of[key]]}


def _turned(view: Mapping[str, Any], unit: int, new: int) -> dict[str, Any]:
    """A view whose pieces are so far apart as all ranks' pieces are long."""
    grown = {key: view[key] // unit * new for key in ("distance", "tile") if view[key] % unit == 0}
    return {**view, **grown}


def _usual(of: Mapping[str, Any]) -> int | None:
    """The most frequent value."""
    if "constant" in of:
        return int(of["constant"])
    if "values" in of:
        return int(max(zip(of["weights"], of["values"], strict=True))[1])
    return None
