"""Where ranks wait for each other before they go on (ours): a barrier is no call on a file, so no trace has it.

Ranks that go on alone keep the distance that they had: who ended its last request late begins the next one late. Ranks
that meet lose it: how far apart they begin says nothing of how far apart they had ended, whether they meet behind their
computing (then they begin at once) or before it (then each begins when it has computed). What a pause is without the
waiting counts from the latest end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .calls import Bool, Int
from .pauses import are_independent
from .records import Records

Float = npt.NDArray[np.float64]
#: Pauses of one kind: the next longer one is no longer than this many times.
ALIKE = 1.5
#: Ranks meet where distances at the begin are, summed up, at most so many times what they are less the distances at the
#: end: it is 0 where they begin at once, the root of 1/2 where both are as large and independent, 1 or more where they
#: go on alone.
FORGOTTEN = 0.95
#: And where less than this share of the distance at the end is found again at the begin (median of the slopes).
KEPT = 0.5
#: Pauses that make a judgement, and those times the ranks beside the first: of fewer, ranks that drift apart by chance
#: look as if they met too often (of 16 pauses of 4 ranks, about one run in a hundred).
PAUSES_MIN, DISTANCES_MIN = 16, 32
#: So many, and so many times the ranks beside the first, are enough where distances are forgotten so much more (a share
#: of the limit above).
CLEAR_MIN, CLEAR_DISTANCES_MIN, CLEAR = 10, 20, 0.65
#: An operation has so many of those that are judged with others', or they tell nothing of it.
FEW = 4
#: In so many of the pauses nobody begins before all have ended, but for clocks that are so far apart, ns.
ORDERED = 0.9
CLOCK_NS = 1_000_000
#: A rank begins later each time (its clock, or its work) where the median of that is so many of its standard errors.
STEADY = 4
#: Shorter waiting (mean over ranks and pauses) is not worth a barrier, ns.
WAITED_NS = 200_000
#: Ranks that are looked at beside those that stand for all, at most, and about how many requests of all of them.
WITNESSES_MAX, WITNESSED_MAX = 62, 1 << 24


@dataclass(frozen=True, eq=False)
class Meetings:
    """Before which of the root's requests all ranks wait for each other."""

    #: Rows of the root.
    rows: Int
    #: From the latest end of any rank to the root's begin, ns; who begins later each time counts as if it did not.
    pause_ns: Int
    #: What ranks do behind the waiting differs independently.
    apart: bool


NO_MEETINGS = Meetings(np.empty(0, np.int64), np.empty(0, np.int64), False)


def meetings_of(
    root: Records,
    children: Sequence[tuple[Records, Int]],
    others: Callable[[Records], Iterable[Records]] = lambda _: (),
) -> Meetings:
    """Where root and children meet; a child has with it, for each of the root's requests, its own that is alike (-1:
    none). `others` gives further ranks that do exactly as a child, of which two columns stay: they are asked for only
    where the order of these leaves a meeting possible.
    """
    if not children:
        return NO_MEETINGS
    rows = np.flatnonzero(np.min(np.stack([found for _, found in children]), axis=0) >= 0)
    # The first request has nothing before it.
    rows = rows[rows > 0]
    rows = rows[np.min(np.stack([found[rows] for _, found in children]), axis=0) > 0]
    times = [_times(root, rows), *(_times(child, found[rows]) for child, found in children)]
    if not _may_meet(*_stacked(times)):
        return NO_MEETINGS
    witnesses = (_times(other, found[rows]) for child, found in children for other in others(child))
    ends, starts = _stacked([*times, *itertools.islice(witnesses, WITNESSES_MAX)])
    is_met = met(root.op[rows], ends, starts)
    if not is_met.any():
        return NO_MEETINGS
    ends, starts = ends[:, is_met], starts[:, is_met]
    late = _late(starts)
    pauses = np.maximum(starts - late - (ends - late).max(axis=0), 0)
    unlike = [are_independent(pauses[0], each) for each in pauses[1:]]
    return Meetings(rows[is_met], pauses[0], float(np.mean(unlike)) > 0.5)


def _times(records: Records, rows: Int) -> tuple[Int, Int]:
    """The latest end of the rank before each of these requests, and its begin."""
    return np.maximum.accumulate(records.end_ns)[rows - 1], records.start_ns[rows]


def _stacked(times: Sequence[tuple[Int, Int]]) -> tuple[Int, Int]:
    """Of shape (ranks, requests): ends and begins."""
    return np.stack([ends for ends, _ in times]), np.stack([starts for _, starts in times])


def _may_meet(end_ns: Int, start_ns: Int) -> bool:
    """Whether there are as many pauses in order as it takes: a necessary condition, whoever else is looked at."""
    ordered = start_ns.min(axis=0) >= end_ns.max(axis=0) - CLOCK_NS
    return int(ordered.sum()) >= ORDERED * CLEAR_MIN


def _late(start_ns: Int) -> Int:
    """By how much each rank begins later than the first each time, of shape (ranks, 1), ns; 0 where that is chance."""
    behind = (start_ns - start_ns[0]).astype(np.float64)
    usual = np.median(behind, axis=1, keepdims=True)
    # Of a median, from the median distance to it, as if distances were normal.
    error = 1.2533 * 1.4826 * np.median(np.abs(behind - usual), axis=1, keepdims=True) / np.sqrt(start_ns.shape[1])
    found: Int = np.where(np.abs(usual) > np.maximum(CLOCK_NS, STEADY * error), usual, 0).astype(np.int64)
    return found


def met(op: npt.NDArray[np.integer], end_ns: Int, start_ns: Int) -> Bool:
    """Before which requests ranks meet: `op` of each, latest end before it and begin of shape (ranks, requests), ns.

    Judged by operation, those pauses together that are as long as some limit, or longer; the pauses of operations that
    are too few for that, or show nothing, are judged with each other.
    """
    found = np.zeros(len(op), np.bool_)
    left = []

    for number in np.unique(op):
        rows = np.flatnonzero(op == number)
        meet = _meeting(rows, end_ns, start_ns)
        found[meet] = True
        if not len(meet):
            left.append(rows)
    if len(left) > 1:
        meet = _meeting(np.concatenate(left), end_ns, start_ns)
        counts = np.bincount(op[meet], minlength=256)
        found[meet[counts[op[meet]] >= FEW]] = True
    return found


def _meeting(rows: Int, end_ns: Int, start_ns: Int) -> Int:
    """Of these requests those before which ranks meet: all from the shortest pause on from which it is so."""
    others = len(end_ns) - 1
    pauses_min = max(PAUSES_MIN, -(-DISTANCES_MIN // others))
    clear_min = max(CLEAR_MIN, -(-CLEAR_DISTANCES_MIN // others))
    # Who comes last waits for nobody.
    length = (start_ns[:, rows] - end_ns[:, rows]).min(axis=0)
    order = np.argsort(length, kind="stable")
    steps, rows = np.maximum(length[order], 1), rows[order]
    latest = end_ns[:, rows].max(axis=0)
    ordered = _from_each_on(start_ns[:, rows].min(axis=0) >= latest - CLOCK_NS)
    waited = _from_each_on(latest - end_ns[:, rows].mean(axis=0))
    for cut in [0, *(np.flatnonzero(steps[1:] > ALIKE * steps[:-1]) + 1).tolist()]:
        longer = rows[cut:]
        if len(longer) < clear_min:
            break
        limit = FORGOTTEN if len(longer) >= pauses_min else CLEAR * FORGOTTEN
        may_meet = ordered[cut] >= ORDERED and waited[cut] >= WAITED_NS
        if may_meet and _is_forgotten(end_ns[:, longer], start_ns[:, longer], limit):
            return longer
    return np.empty(0, np.int64)


def _from_each_on(values: npt.NDArray[Any]) -> Float:
    """Means of the values from each place on."""
    found: Float = np.cumsum(values[::-1], dtype=np.float64)[::-1] / np.arange(len(values), 0, -1)
    return found


def _is_forgotten(end_ns: Int, start_ns: Int, forgotten: float) -> bool:
    """Whether distances between ranks at the begins owe nothing to those at the ends before."""
    ended, began = _apart(end_ns), _apart(start_ns)
    known = ended != 0
    if not known.any() or np.abs(began).sum() > forgotten * np.abs(_centred(began - ended)).sum():
        return False
    slopes, weights = began[known] / ended[known], np.abs(ended[known])
    order = np.argsort(slopes)
    below = np.cumsum(weights[order])
    return bool(slopes[order][np.searchsorted(below, below[-1] / 2)] < KEPT)


def _apart(ns: Int) -> Float:
    """How far each other rank is behind the first, less what it usually is: clocks may be apart, and ranks slow."""
    return _centred((ns[1:] - ns[0]).astype(np.float64))


def _centred(ns: Float) -> Float:
    found: Float = ns - np.median(ns, axis=1, keepdims=True)
    return found
