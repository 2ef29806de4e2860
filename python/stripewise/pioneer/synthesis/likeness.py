"""How much a synthetic path is expected to be like the run of its profile, before it is played.

The path's slack and durations drawn from those that the trace had for each operation make a timeline; its K-S
distances to the root's own timeline (thesis, section 2.7.2), means of some draws, say which of two paths fits better.
How far two ranks of the traced run are apart is the floor of what a run can be expected to reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import WorkloadError
from ...files.fields import Fields
from .. import path as paths
from ..characterization.distribution import Values, read_distribution
from ..comparison.ks import ks_distance
from ..comparison.timeline import Timeline, bins_of, timeline
from ..extraction.generic_path import ALL, ROOT, Calls, Gwp
from ..operations import by_number, operations

#: Bins of the reference: hundredths of the run.
BINS = 100
_JUDGED = ("reference", "durations_s")
#: Durations within this factor of each other are one value, their mean, so that their sum stays what it was.
ALIKE = 1.25
DURATIONS_MAX = 4096
#: Draws of all durations, at most, and requests that they are of, about.
DRAWS_MAX = 8
_REQUESTS_DRAWN = 1 << 21


@dataclass(frozen=True)
class Likeness:
    """Expected K-S distances, 0 (alike) to 1: throughput, data operation ratio, arrival rate over hundredths."""

    throughput: float
    ratio: float
    arrivals: float

    @property
    def sum(self) -> float:
        """All three: less is better."""
        return self.throughput + self.ratio + self.arrivals


def reference_of(gwp: Gwp) -> dict[str, Any]:
    """What `programs` keeps of a run to judge by: the root's timeline, its durations by operation, their means, and the
    floor.
    """
    mine = np.flatnonzero((gwp.who == ALL) | (gwp.who == ROOT))
    if not len(mine):
        return {}
    root = Calls(gwp.op[mine], gwp.size[mine], gwp.start_ns[mine], gwp.end_ns[mine])
    width = max(1, -(-int(root.end_ns.max() - root.start_ns.min()) // BINS))
    line = _timeline(root, width)
    number, inverse = np.unique(root.op, return_inverse=True)
    took = root.end_ns - root.start_ns
    mean = np.bincount(inverse, weights=took) / np.bincount(inverse) / 1e9
    names = [by_number()[int(each)].name for each in number]
    found: dict[str, Any] = {
        "durations_s": {name: round(float(s), 9) for name, s in zip(names, mean, strict=True)},
        "durations": {name: _alike(took[inverse == at]) for at, name in enumerate(names)},
        "reference": {
            "width_s": width / 1e9,
            "bytes": line.bytes.tolist(),
            "operations": line.operations.tolist(),
            "data": line.data.tolist(),
        },
    }
    if gwp.child is not None and len(gwp.child.op):
        distances = _distances(_timeline(gwp.child, width), line)
        found["floor"] = {key: round(value, 6) for key, value in asdict(distances).items()}
    return found


def _timeline(calls: Calls, width: int) -> Timeline:
    """From the first start on, in bins of so many ns, at least as many as the reference has."""
    start, end = calls.start_ns - calls.start_ns.min(), calls.end_ns - calls.start_ns.min()
    data = _is_data(calls.op)
    bins = max(BINS, min(100 * BINS, bins_of(int(end.max()), width)))
    return timeline(start, end, np.where(data, calls.size, 0), data, width, bins)


def _alike(took_ns: Any) -> dict[str, Any]:
    """A distribution of durations in seconds: means of those that are about as long."""
    length = np.floor(np.log(np.maximum(took_ns, 1)) / np.log(ALIKE)).astype(np.int64)
    _, inverse, counts = np.unique(length, return_inverse=True, return_counts=True)
    means = np.bincount(inverse, weights=took_ns) / counts / 1e9
    return {"values": [round(float(each), 9) for each in means], "weights": counts.tolist()}


def _distances(mine: Timeline, theirs: Timeline) -> Likeness:
    return Likeness(
        ks_distance(mine.bytes, theirs.bytes),
        ks_distance(mine.ratio, theirs.ratio),
        ks_distance(mine.operations, theirs.operations),
    )


def floor_of(programs: Any, source: str = "") -> Likeness | None:
    """How far the root and a child of the traced run are apart; None where `programs` does not tell."""
    if not isinstance(programs, Mapping) or "floor" not in programs:
        return None
    given = Fields(programs, source, "programs.", WorkloadError).table("floor")
    floor = Fields(given, source, "programs.floor.", WorkloadError)
    return Likeness(*(floor.number(each.name, 0, 1) for each in fields(Likeness)))


def expected(path: Path, processes: int, programs: Any, source: str = "") -> Likeness | None:
    """The likeness of a path to the run that `programs` tells of; None where it tells of none."""
    if not isinstance(programs, Mapping) or "reference" not in programs or "durations_s" not in programs:
        return None
    told = Fields(programs, source, "programs.", WorkloadError)
    reference, durations = (Fields(told.table(key), source, f"programs.{key}.", WorkloadError) for key in _JUDGED)
    width = max(1, round(reference.number("width_s", 0, 1e9) * 1e9))
    theirs = Timeline(width, *(_column(reference, key) for key in ("bytes", "operations", "data")))
    found = paths.requests(path, processes, 0)
    if not len(found):
        return None
    draws = []
    for draw in range(max(1, min(DRAWS_MAX, _REQUESTS_DRAWN // len(found)))):
        took = _durations(found["op"], durations, told, draw)
        ends = np.cumsum(found["slack_ns"].astype(np.float64) + took)
        starts = (ends - took).astype(np.int64)
        made = Calls(found["op"], found["size"].astype(np.int64), starts, ends.astype(np.int64))
        draws.append(astuple(_distances(_timeline(made, width), theirs)))
    return Likeness(*np.mean(draws, axis=0).tolist())


def _durations(op: Any, means: Fields, programs: Fields, draw: int) -> Any:
    """How long each request takes, ns: each duration of the trace its expected number of times, in an order of chance;
    the mean where the profile has no more.
    """
    found = np.zeros(len(op))
    given = Fields(
        programs.table("durations") if "durations" in programs.data else {}, programs.source, "programs.durations.",
        WorkloadError,
    )  # fmt: skip
    chance = np.random.default_rng(draw)
    for number in np.unique(op).tolist():
        name = by_number()[number].name
        rows = np.flatnonzero(op == number)
        if name in given.data:
            drawn = read_distribution(given, name, 0, 1e9)
            if not isinstance(drawn, Values) or len(drawn.values) > DURATIONS_MAX:
                raise given.error(name, f"is no list of at most {DURATIONS_MAX} values", "leave programs.durations out")
            shares = np.cumsum(drawn.weights) / np.sum(drawn.weights)
            at = np.searchsorted(shares, (np.arange(len(rows)) + 0.5) / len(rows), side="left")
            found[rows] = chance.permutation(np.asarray(drawn.values)[at] * 1e9)
        elif name in means.data:
            found[rows] = means.number(name, 0, 1e9) * 1e9
    return found


def _column(reference: Fields, key: str) -> Any:
    given = reference.items(key)
    if len(given) > BINS or not all(isinstance(each, int | float) and 0 <= each < 1 << 62 for each in given):
        raise reference.error(key, f"is no list of at most {BINS} numbers", "leave the key programs.reference out")
    return np.asarray(given, np.int64)


def _is_data(op: Any) -> Any:
    kinds = np.zeros(256, np.bool_)
    kinds[[each.number for each in operations().values() if each.is_data]] = True
    return kinds[op]
