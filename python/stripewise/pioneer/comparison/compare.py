"""How alike two runs are: an original and the one that was made after it (thesis, section 2.7.2).

Throughput, the share of data operations and the arrival rate over time are held against each other by the two-sample
Kolmogorov-Smirnov distance of their bins, whose width is a share of the original's duration. That compares how often
which value occurs, not when; the largest gap of the cumulative bytes tells that. The thesis does not say what an empty
bin is: here it counts, with a throughput, a share and a rate of 0; `busy` has the distances without empty bins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...workload.counted import Choice
from .ks import ks_distance
from .run_operations import Numbers, RunOperations, read_operations
from .timeline import BINS_MAX, Timeline, bins_of, timeline

COMPARE_VERSION = 1
#: Into how many bins the original's duration is cut; the first is what is told first.
PARTS = (100, 20, 500)
#: Bins of the curves of cumulative bytes.
CURVE_BINS = 2_000
#: A run that is more often as long as the original has no place in its bins.
LONGER_MAX = BINS_MAX // max(PARTS)


@dataclass(frozen=True)
class RunTotals:
    """What one run did, all processes together; seconds from the first operation's begin to the last one's end."""

    source: str
    processes: int
    operations: int
    data_operations: int
    bytes_read: int
    bytes_written: int
    duration_s: float


@dataclass(frozen=True)
class Distances:
    """K-S distances, 0 to 1, of throughput, share of data operations, and arrival rate."""

    throughput: float
    ratio: float
    arrival: float


@dataclass(frozen=True)
class Binned:
    """The distances for bins of `width_s`, a `parts`th of the original's duration; `busy` without empty bins."""

    parts: int
    width_s: float
    original_bins: int
    synthetic_bins: int
    distances: Distances
    busy: Distances


@dataclass(frozen=True)
class OperationCounts:
    """How often processes do one operation, the mean over the processes of each run, and the largest difference.

    The difference is the larger one of a rank's counts less the smaller one, over the larger one, 0 to 1; `rank` is
    where it is largest. Between runs of unlike numbers of processes it is that of the means, and `rank` is None.
    """

    operation: str
    original: float
    synthetic: float
    difference: float
    rank: int | None


@dataclass(frozen=True)
class Comparison:
    """Two runs held against each other; gaps are shares of the original's bytes, 0 (alike) to 1 and above.

    `gap` is the largest difference of bytes moved up to a time, times from each run's first operation on;
    `gap_normalised` that of both curves over their own duration and bytes.
    """

    original: RunTotals
    synthetic: RunTotals
    binned: tuple[Binned, ...]
    gap: float
    gap_normalised: float
    counts: tuple[OperationCounts, ...]

    @property
    def largest(self) -> OperationCounts:
        """The operation whose counts differ most."""
        return max(self.counts, key=lambda each: each.difference)

    def as_json(self) -> dict[str, Any]:
        """As `stripewise compare --json` prints it."""
        return {"version": COMPARE_VERSION, **asdict(self)}


@dataclass(frozen=True)
class Compared:
    """Both runs' operations, and what came of comparing them."""

    original: RunOperations
    synthetic: RunOperations
    comparison: Comparison

    def timelines(self, parts: int = PARTS[0]) -> tuple[Timeline, Timeline]:
        """Both runs in bins of a `parts`th of the original's duration, each as long as it is."""
        width = width_of(self.original, parts)
        return _timeline(self.original, width), _timeline(self.synthetic, width)


def compare_traces(original: Path, synthetic: Path, choice: Choice | None = None) -> Compared:
    """Reads two collected traces and compares them. Raises WorkloadError as `read_operations` does."""
    runs = [read_operations(each, choice) for each in (original, synthetic)]
    return Compared(runs[0], runs[1], compare_operations(runs[0], runs[1]))


def compare_operations(original: RunOperations, synthetic: RunOperations) -> Comparison:
    """The comparison of two runs."""
    return Comparison(
        original=_totals(original),
        synthetic=_totals(synthetic),
        binned=tuple(_binned(original, synthetic, parts) for parts in PARTS),
        gap=_gap(original, synthetic),
        gap_normalised=_gap_normalised(original, synthetic),
        counts=tuple(sorted(_counts(original, synthetic), key=lambda each: (-each.difference, each.operation))),
    )


def width_of(original: RunOperations, parts: int) -> int:
    """The bins' width in ns: a `parts`th of the original's duration."""
    return max(1, -(-original.duration_ns // parts))


def _totals(run: RunOperations) -> RunTotals:
    return RunTotals(
        source=run.source,
        processes=run.processes,
        operations=len(run.name),
        data_operations=int(run.data.sum()),
        bytes_read=int(run.bytes[~run.write].sum()),
        bytes_written=int(run.bytes[run.write].sum()),
        duration_s=run.duration_ns / 1e9,
    )


def _timeline(run: RunOperations, width_ns: int, bins: int | None = None) -> Timeline:
    bins = min(bins_of(run.duration_ns, width_ns), BINS_MAX) if bins is None else bins
    return timeline(run.start_ns, run.end_ns, run.bytes, run.data, width_ns, bins)


def _binned(original: RunOperations, synthetic: RunOperations, parts: int) -> Binned:
    width = width_of(original, parts)
    first, second = _timeline(original, width), _timeline(synthetic, width)
    return Binned(
        parts=parts,
        width_s=width / 1e9,
        original_bins=len(first.bytes),
        synthetic_bins=len(second.bytes),
        distances=_distances(first, second, np.ones_like(first.busy), np.ones_like(second.busy)),
        busy=_distances(first, second, first.busy, second.busy),
    )


def _distances(one: Timeline, other: Timeline, of_one: NDArray[np.bool_], of_other: NDArray[np.bool_]) -> Distances:
    return Distances(
        throughput=ks_distance(one.bytes[of_one], other.bytes[of_other]),
        ratio=ks_distance(one.ratio[of_one], other.ratio[of_other]),
        arrival=ks_distance(one.operations[of_one], other.operations[of_other]),
    )


def _gap(original: RunOperations, synthetic: RunOperations) -> float:
    """The largest difference of bytes moved by a time, as a share of the original's; of the other's, where it has none.

    Bins are those of the shorter run, at most `BINS_MAX` of them.
    """
    total = int(original.bytes.sum()) or int(synthetic.bytes.sum())
    if not total:
        return 0.0
    longest = max(original.duration_ns, synthetic.duration_ns)
    shortest = min(original.duration_ns, synthetic.duration_ns)
    width = max(1, shortest // CURVE_BINS, -(-longest // BINS_MAX))
    bins = bins_of(longest, width)
    one, other = (_timeline(each, width, bins).cumulative for each in (original, synthetic))
    return float(np.abs(one - other).max() / total)


def _gap_normalised(original: RunOperations, synthetic: RunOperations) -> float:
    """The same of shares of each run's own bytes over shares of its own duration."""
    curves = []
    for run in (original, synthetic):
        made = _timeline(run, max(1, -(-run.duration_ns // CURVE_BINS)), CURVE_BINS).cumulative
        curves.append(made / max(1, int(run.bytes.sum())))
    return float(np.abs(curves[0] - curves[1]).max())


def _counts(original: RunOperations, synthetic: RunOperations) -> Iterator[OperationCounts]:
    """Of each operation that occurs in one of the runs."""
    names = sorted({run.names[at] for run in (original, synthetic) for at in np.unique(run.name).tolist()})
    ranks = sorted({int(rank) for run in (original, synthetic) for rank in np.unique(run.rank)})
    tables = [_counts_by_rank(run, names, ranks) for run in (original, synthetic)]
    alike = original.processes == synthetic.processes and all(rank >= 0 for rank in ranks)
    for at, name in enumerate(names):
        means = [
            float(table[at].sum() / run.processes) for table, run in zip(tables, (original, synthetic), strict=True)
        ]
        if alike:
            low, high = np.minimum(tables[0][at], tables[1][at]), np.maximum(tables[0][at], tables[1][at])
            by_rank = (high - low) / np.maximum(high, 1)
            worst = int(np.argmax(by_rank))
            yield OperationCounts(name, means[0], means[1], float(by_rank[worst]), ranks[worst])
        else:
            yield OperationCounts(name, means[0], means[1], (max(means) - min(means)) / max(means), None)


def _counts_by_rank(run: RunOperations, names: list[str], ranks: list[int]) -> Numbers:
    """How often each rank does each operation: a row per name, a column per rank."""
    name_of = np.array([names.index(name) if name in names else -1 for name in run.names], dtype=np.int64)
    place = name_of[run.name] * len(ranks) + np.searchsorted(np.array(ranks), run.rank)
    return np.bincount(place, minlength=len(names) * len(ranks)).reshape(len(names), len(ranks)).astype(np.int64)
