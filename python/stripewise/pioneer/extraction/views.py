"""Views of MPI-IO in a path: pieces at a distance, told from the ranges that the calls behind a view touched."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .calls import Bool, Calls, Int
    from .records import Records

#: Piece, distance, pieces, tile of a request that sets no view, or one of bytes as they lie.
NO_VIEW = (0, 0, 0, 0)
_REPEATS = 1024
View = tuple[int, int, int, int]


def views_of(records: Records, calls: Calls, row: Int, view_op: int) -> Int:
    """The view that each mpi_view sets (rows of four numbers, docs/formats.md), and its place moved to the first byte
    that it shows. `row` is the call of each record (-1: made).

    A view is told from the first two calls behind it: their ranges, and how far the second begins behind the first.
    What is not regular becomes pieces of the mean length at the mean distance; pieces of one length, more than half of
    which are equally far from the one before (diagonal multipartitioning is so), keep that distance.
    """
    found = np.broadcast_to(np.array(NO_VIEW, np.int64), (len(records), 4))
    views = np.flatnonzero(records.op == view_op)
    if not len(views):
        return found
    found = found.copy()
    extents = _Extents(calls)
    order = np.argsort(records.session, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    seq, thread = calls.columns["seq"], calls.columns["thread"]
    for view in views.tolist():
        at = int(place[view]) + 1
        offsets: list[int] = []
        calls_behind: list[int] = []
        while at < len(order) and len(calls_behind) < 2:
            behind = int(order[at])
            if records.session[behind] != records.session[view] or records.op[behind] == view_op:
                break
            if records.size[behind] > 0 and records.offset[behind] >= 0 and row[behind] >= 0:
                offsets.append(int(records.offset[behind]))
                calls_behind.append(behind)
            at += 1
        if calls_behind:
            first = int(row[calls_behind[0]])
            ranges = extents.of(int(seq[first]), int(thread[first]))
            step = offsets[1] - offsets[0] if len(offsets) > 1 else 0
            found[view] = view_from(ranges, int(records.size[calls_behind[0]]), step)
            if found[view, 0]:
                records.offset[view] = offsets[0]
    return found


def spanned(session: Int, is_view: Bool, size: Int, view: Int) -> Int:
    """Bytes of the file from the first to the last byte of each request, behind the view in force in its session.

    All arguments are of one length, in the order of requests; `view` has four columns (docs/formats.md).
    """
    found = size.copy()
    if not is_view.any():
        return found
    order = np.argsort(session, kind="stable")
    begins = np.diff(session[order], prepend=-2) != 0
    latest = np.maximum.accumulate(np.where(begins | is_view[order], np.arange(len(order)), 0))
    holder = order[latest]
    piece, distance, pieces, tile = np.where(is_view[holder, None], view[holder], 0).T
    rows = np.flatnonzero((piece > 0) & (session[order] >= 0) & (size[order] > 0))
    piece, distance, pieces, tile = piece[rows], distance[rows], pieces[rows], tile[rows]
    last = size[order[rows]] - 1
    within = last % (piece * pieces)
    found[order[rows]] = last // (piece * pieces) * tile + within // piece * distance + within % piece + 1
    return found


def view_from(ranges: list[tuple[int, int, int, int, bool]], size: int, step: int) -> View:
    """The view of a call of `size` bytes with these ranges (offset, bytes, times, distance, whether it repeats all
    before it), whose next call begins `step` bytes further on (0: none, or no further)."""
    if not ranges:
        # A piece in each call; without a second call, or one right behind, bytes as they lie.
        return (size, step, 1, step) if step > size else NO_VIEW
    _, piece, times, distance, _ = ranges[0]
    if len(ranges) == 1 or all(each[4] for each in ranges[1:]):
        tile = ranges[1][3] if len(ranges) > 1 else step
        if times == 1 and len(ranges) > 1:
            return piece, tile, 1, tile
        if tile < (times - 1) * distance + piece or tile == times * distance:
            return piece, distance, 1, distance
        return piece, distance, times, tile
    alone = [each for each in ranges if not each[4]]
    count = sum(each[2] for each in alone)
    reach = max(each[0] + (each[2] - 1) * each[3] + each[1] for each in alone) - ranges[0][0]
    moved = sum(each[1] * each[2] for each in alone)
    piece = max(1, moved // max(1, count))
    distance = max(piece, _usual_distance(alone) or (reach - piece) // max(1, count - 1))
    return piece, distance, 1, distance


def _usual_distance(ranges: list[tuple[int, int, int, int, bool]]) -> int:
    """How far more than half of the pieces are from the one before; 0 where they are of unlike lengths, or no distance
    is so frequent."""
    found: Counter[int] = Counter()
    for each in ranges:
        found[each[3]] += each[2] - 1
    for one, other in pairwise(ranges):
        found[other[0] - one[0] - (one[2] - 1) * one[3]] += 1
    (distance, times), *_ = found.most_common(1)
    is_usual = len({each[1] for each in ranges}) == 1 and 2 * times > found.total()
    return distance if is_usual else 0


class _Extents:
    """The ranges of calls, by their number and thread."""

    def __init__(self, calls: Calls) -> None:
        self._columns = calls.extents
        if self._columns:
            parent, thread = self._columns["parent"], self._columns["parent_thread"]
            self._order = np.lexsort((np.arange(len(parent)), parent, thread))
            self._threads = thread[self._order]
            self._parents = parent[self._order]

    def of(self, seq: int, thread: int) -> list[tuple[int, int, int, int, bool]]:
        """Of one call, in its order; at most the first 4,096."""
        if not self._columns:
            return []
        low, high = np.searchsorted(self._threads, [thread, thread + 1])
        begin, end = low + np.searchsorted(self._parents[low:high], [seq, seq + 1])
        rows = self._order[begin : min(end, begin + 4096)]
        names = ("offset", "requested", "aux", "done", "flags")
        values = zip(*(self._columns[name][rows].tolist() for name in names), strict=True)
        return [(at, size, max(1, times), step, bool(flags & _REPEATS)) for at, size, times, step, flags in values]
