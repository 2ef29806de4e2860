"""How much a synthetic path is expected to be like the run of its profile, before it is played.

The path's slack and the durations that the trace had for each operation make a timeline; its K-S distances to the
root's own timeline (thesis, section 2.7.2) say which of two paths fits better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import WorkloadError
from ...files.fields import Fields
from .. import path as paths
from ..comparison.ks import ks_distance
from ..comparison.timeline import Timeline, bins_of, timeline
from ..extraction.generic_path import ALL, ROOT, Gwp
from ..operations import by_number, operations

#: Bins of the reference: hundredths of the run.
BINS = 100
_JUDGED = ("reference", "durations_s")


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
    """What `programs` keeps of a run to judge by: the root's timeline, and the mean duration of each operation."""
    mine = np.flatnonzero((gwp.who == ALL) | (gwp.who == ROOT))
    if not len(mine):
        return {}
    start, end, op = gwp.start_ns[mine], gwp.end_ns[mine], gwp.op[mine]
    duration = int(end.max() - start.min())
    width = max(1, -(-duration // BINS))
    data = _is_data(op)
    moved = np.where(data, gwp.size[mine], 0)
    line = timeline(start - start.min(), end - start.min(), moved, data, width, BINS)
    number, inverse = np.unique(op, return_inverse=True)
    mean = np.bincount(inverse, weights=end - start) / np.bincount(inverse) / 1e9
    names = by_number()
    return {
        "durations_s": {names[int(each)].name: round(float(s), 9) for each, s in zip(number, mean, strict=True)},
        "reference": {
            "width_s": width / 1e9,
            "bytes": line.bytes.tolist(),
            "operations": line.operations.tolist(),
            "data": line.data.tolist(),
        },
    }


def expected(path: Path, processes: int, programs: Any, source: str = "") -> Likeness | None:
    """The likeness of a path to the run that `programs` tells of; None where it tells of none."""
    if not isinstance(programs, Mapping) or "reference" not in programs or "durations_s" not in programs:
        return None
    fields = Fields(programs, source, "programs.", WorkloadError)
    reference, durations = (Fields(fields.table(key), source, f"programs.{key}.", WorkloadError) for key in _JUDGED)
    width = max(1, round(reference.number("width_s", 0, 1e9) * 1e9))
    theirs = Timeline(width, *(_column(reference, key) for key in ("bytes", "operations", "data")))
    found = paths.requests(path, processes, 0)
    if not len(found):
        return None
    cost = np.zeros(256)
    known = operations()
    for name in durations.data.keys() & known.keys():
        cost[known[name].number] = durations.number(name, 0, 1e9) * 1e9
    op = found["op"]
    ends = np.cumsum(found["slack_ns"].astype(np.float64) + cost[op])
    starts = ends - cost[op]
    starts, ends = (starts - starts[0]).astype(np.int64), (ends - starts[0]).astype(np.int64)
    data = _is_data(op)
    moved = np.where(data, found["size"].astype(np.int64), 0)
    mine = timeline(starts, ends, moved, data, width, max(BINS, min(100 * BINS, bins_of(int(ends[-1]), width))))
    return Likeness(
        ks_distance(mine.bytes, theirs.bytes),
        ks_distance(mine.ratio, theirs.ratio),
        ks_distance(mine.operations, theirs.operations),
    )


def _column(reference: Fields, key: str) -> Any:
    given = reference.items(key)
    if len(given) > BINS or not all(isinstance(each, int | float) and 0 <= each < 1 << 62 for each in given):
        raise reference.error(key, f"is no list of at most {BINS} numbers", "leave the key programs.reference out")
    return np.asarray(given, np.int64)


def _is_data(op: Any) -> Any:
    kinds = np.zeros(256, np.bool_)
    kinds[[each.number for each in operations().values() if each.is_data]] = True
    return kinds[op]
