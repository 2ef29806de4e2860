"""From a profile to a path that the player plays: by statistics (thesis, section 2.6.4, algorithm 1), by symbolic
patterns, or file by file by either, whichever is expected to be more like the run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ... import native
from ...errors import UsageError, WorkloadError, naming
from .. import path as paths
from ..characterization.makers import PARTS
from ..characterization.profile_reader import PROCESSES_MAX, profile_of
from ..marks import GROUP_MARK, OTHERS_MARK, ROOT_MARK
from .knobs import turned, waits_lost
from .likeness import Likeness, expected, floor_of
from .mixture import has_uncovered, uncovered_of, write_mixture
from .program import has_program, write_program
from .unfinished import beside

STATISTICS, SYMBOLIC, MIXTURE = "statistics", "symbolic", "mixture"
WAYS = (STATISTICS, SYMBOLIC, MIXTURE)
#: Files of each way that `synth --json` names.
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
    #: The classes, `together` or `subgroups` were edited, and patterns are left out for that.
    is_edited: bool
    #: By file, of each way the first `FILES_SAID_MAX`.
    ways: tuple[FileWay, ...]
    #: By way (symbolic, statistics) how many files there are.
    files_by: Mapping[str, int]
    #: The way that the profile's patterns are good for: symbolic or mixture; None: it has none.
    patterns: str | None
    #: How far two ranks of the traced run are apart: no run is expected to be nearer.
    floor: Likeness | None
    #: Operations before which knobs leave no waiting for all ranks (knobs.py).
    waits_lost: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As `synth --json` prints it."""
        likeness = {way: each and asdict(each) for way, each in self.likeness.items()}
        return {
            "path": str(self.path), "by": self.way, "processes": self.processes, "requests": self.requests,
            "files": self.files, "nodes": self.nodes, "expected": likeness,
            "floor": self.floor and asdict(self.floor), "guess": self.is_guess,
            "edited": self.is_edited, "waits_lost": list(self.waits_lost), "files_by": dict(self.files_by),
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
    now = digests(data)
    is_edited = patterns is not None and by is None and any(programs.get(key, now[key]) != now[key] for key in now)
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
    changed = turned(data, knobs.scale, knobs.sets, knobs.fs)
    lost = tuple(waits_lost(data, changed))
    changed = at_processes(changed, processes)
    if knobs:
        # What knobs made is checked as what a person writes.
        with _as_usage(source):
            changed = profile_of(changed, source).as_json()
    with contextlib.ExitStack() as held:
        made: dict[str, Path] = {}
        of_patterns = {STATISTICS: 0}
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
        with _as_unmade(source, made.values()):
            judged = {way: None if knobs else expected(part, processes, programs, source) for way, part in made.items()}
            way, floor = _better(judged), None if knobs else floor_of(programs, source)
            facts = paths.info(made[way])
            # Some of the patterns' requests are of the last rank, which is the root in a job of one.
            requests = facts["requests"] if way == STATISTICS else len(paths.requests(made[way], processes, 0))
        os.replace(made[way], out)
    is_guess = way != STATISTICS and bool(programs.get("guess")) and [processes] != programs.get("processes")
    files = facts["files"]
    first = of_patterns.get(way, len(files))
    by_way = {SYMBOLIC: files[:first], STATISTICS: files[first:]}
    ways = tuple(
        FileWay(each["name"], each["class"], name) for name, of in by_way.items() for each in of[:FILES_SAID_MAX]
    )
    return Synthetic(
        out, way, processes, requests, len(files), facts["nodes"], judged, is_guess, is_edited, ways,
        {name: len(of) for name, of in by_way.items()}, patterns, floor, lost,
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


@contextlib.contextmanager
def _as_unmade(source: str, parts: Iterable[Path]) -> Iterator[None]:
    """What no player would take of the paths `parts`, which nobody knows by their names, is the fault of `source`."""
    try:
        yield
    except WorkloadError as error:
        for part in parts:
            if str(error).startswith(f"{part}: "):
                said = str(error).removeprefix(f"{part}: ").partition("; make the path again")[0]
                raise WorkloadError(f"{source}: makes no path ({said}); edit it, or give --by {STATISTICS}") from error
        raise


def digests(data: Mapping[str, Any]) -> dict[str, str]:
    """By key of `programs` a digest of what a profile (as JSON) says beside its patterns and these do not heed: whether
    somebody has edited it since they were made."""
    said = {"classes": data["classes"], "ranks": [data["together"], data["subgroups"]]}
    return {
        key: hashlib.sha256(json.dumps(each, sort_keys=True).encode()).hexdigest()[:16] for key, each in said.items()
    }


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

    Where all offsets (OFF) of operations of one mark in a kind of session on shared files lie in one rank's part of
    rounds of SHIFT bytes for each who makes them, or for each of P, rounds get as long as `processes` make them, and
    the root's own offsets go with them; all else stays (weak scaling). A guess, from one P.
    """
    made = dict(data)
    before = int(made["processes"])
    shared = made["classes"].get("shared")
    if before == processes or not shared or not shared["OS"]:
        return made
    sessions = dict(shared["sessions"])
    shared = {**shared, "sessions": sessions}
    growths: list[tuple[int, int]] = []
    for kind, of in sessions.items():
        grown: list[tuple[int, int]] = []
        for mark in sorted({key[len(key.partition("@")[0]) :] for key in of if key.startswith(("SHIFT", "OFF"))}):
            if mark == ROOT_MARK:
                continue
            shift, offsets = _usual(of.get("SHIFT" + mark, of.get("SHIFT", {}))), of.get("OFF" + mark, of.get("OFF"))
            of_whom = mark or kind[len(kind.partition("@")[0]) :]
            growth = _growth(shift or 0, offsets or {}, _turns(data, of_whom, before), _turns(data, of_whom, processes))
            if growth is not None:
                grown.append(growth)
                sessions[kind] = {**sessions[kind], "OFF" + mark: _moved(offsets, *growth)}
        if not grown:
            continue
        if _numbers(of.get("OFF" + ROOT_MARK, {})):
            sessions[kind]["OFF" + ROOT_MARK] = _moved(of["OFF" + ROOT_MARK], *grown[0])
        if "VIEW" in of:
            sessions[kind]["VIEW"] = [_turned(view, *grown[0]) for view in of["VIEW"]]
        growths += grown
    if growths and shared.get("FS") is not None and _numbers(shared["FS"]):
        shared["FS"] = _moved(shared["FS"], *max(growths, key=lambda growth: growth[1] / growth[0]))
    made["classes"] = {**made["classes"], "shared": shared}
    return made


def _turns(data: Mapping[str, Any], mark: str, processes: int) -> tuple[int, int]:
    """How many SHIFTs a round may be long: one for each of all ranks, or from the first of those of a mark to the last
    and on to the next that is like them."""
    if mark == OTHERS_MARK:
        return processes, processes - 1
    at = int(mark.removeprefix(GROUP_MARK)) - 1 if mark.startswith(GROUP_MARK) else -1
    groups = data.get("subgroups", [])
    group = groups[at].get("group") or {} if 0 <= at < len(groups) else {}
    if "span" in group:
        low, high = (-(-each * processes // PARTS) for each in group["span"])
        return processes, high - max(low, 1)
    if "congruent" in group:
        by, rest = group["congruent"]
        return processes, by * len(range(rest or by, processes, by))
    return processes, processes


def _growth(
    shift: int, offsets: Mapping[str, Any], before: tuple[int, int], after: tuple[int, int]
) -> tuple[int, int] | None:
    """Bytes of a round before and after, where offsets lie in turns of one of these lengths; None: in neither."""
    values = _numbers(offsets)
    for ranks, new in zip(before, after, strict=True):
        unit = ranks * shift
        if min(unit, new) > 0 and values and max(values) >= unit and all(value % unit < shift for value in values):
            return unit, new * shift
    return None


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
