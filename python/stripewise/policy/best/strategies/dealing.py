"""Spans dealt out to servers: kinds by the prices of the least makespan, servers of a kind by longest processing time.

The work may nearly be divided: runs are cut until no part is more than a small share of what a server does in the least
makespan, or of its room. So what is lost to whole parts is small where the trace tells of small parts, and the bound
says how small.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from ....cluster import Cluster
from ....model.general import Float, Int
from ..expected.spans import Spans, shares_of
from ..proven.duality import Prices, alike, prices_of
from ..proven.kinds import Kinds, kinds_of
from ..tuning import DEALT_PARTS_MAX, PART_ROOM, SLACK
from .case import Case, Piece
from .pieces import striped, whole

#: Of a typical request: startups of reads and writes, bytes read and written.
TYPICAL = np.array([0.5, 0.5, 32768.0, 32768.0])
#: Cells that cost nothing go to slow servers: a tie is worth this much.
TIE = 1e-15


@dataclass(frozen=True)
class Way:
    """A way to deal: as if `processes` were in flight; slow servers count as `lean` makes them slower than they are.

    A kind that takes k times the swiftest one's time for a request of 64 KiB counts k^lean times as busy: with few
    requests in flight those that wait at slow servers are missed at the swift ones. With `stripe_bytes` a span lies on
    all servers of a kind in such stripes, which serve large requests side by side; else whole on one.
    """

    processes: float
    lean: float = 0.0
    stripe_bytes: int = 0
    #: Of all room, what is used: less where pieces that are cut unevenly did not fit.
    filled: float = 1.0
    #: Of a server's time in the least makespan, what one part of a run takes at most.
    part: float = 0.02


def deal(spans: Spans, case: Case, way: Way, parts: Float | None = None) -> list[Piece] | None:
    """The spans on servers with as much room as the case gives them; None where they do not fit.

    `parts` are those of what is asked of every span in every group of segments, where runs are not to be cut. Whether
    stripes fit is the caller's to see.
    """
    cluster, rooms = case.cluster, case.rooms
    kinds = kinds_of(cluster, rooms * way.filled)
    cost = _cost(spans, kinds, way)
    prices = _prices(cost, spans.length, kinds)
    cut = spans.cut(_parts(spans, cost, kinds, prices, way.part))
    cost = _cost(cut, kinds, way)
    share = shares_of(cut, case.heats) if parts is None else parts
    if share is not None:
        prices = _prices(cost, cut.length, kinds, share)
    chosen = _Kinded(cost, cut.length, kinds, prices, share).chosen()
    if way.stripe_bytes:
        pieces = striped(cut, chosen, kinds, cluster, way.stripe_bytes)
    else:
        server = _Dealer(cost, cut.length, cluster, rooms, kinds, chosen, share).deal()
        if server is None:
            return None
        pieces = whole(cut, server, cluster)
    return pieces


def listed(spans: Spans, case: Case, share: Float | None) -> list[Piece] | None:
    """Whole runs on servers, longest first, each where it is done first (Graham's list scheduling, unlike servers).

    Few long runs fill servers better so than by prices, which take them to be divisible. `share` is the part of what
    is asked of every run in every group of segments. None where they do not fit.
    """
    cluster = case.cluster
    kinds = kinds_of(cluster, case.rooms)
    channels = np.array([target.channels for target in cluster.active], dtype=np.float64)
    work = (spans.asked @ kinds.figures)[:, kinds.of] / channels
    part = np.ones((len(work), 1)) if share is None else share
    rooms, busy = case.rooms.copy(), np.zeros((len(channels), part.shape[1]))
    length = spans.length
    server = np.zeros(len(work), dtype=np.int64)
    for cell in np.lexsort((-length, -work.max(axis=1))).tolist():
        after = busy @ part[cell] + work[cell] * float(part[cell] @ part[cell])
        after[rooms < length[cell]] = np.inf
        at = int(after.argmin())
        if not np.isfinite(after[at]):
            return None
        server[cell] = at
        rooms[at] -= length[cell]
        busy[at] += work[cell, at] * part[cell]
    return whole(spans, server, cluster)


@dataclass(frozen=True)
class Cost:
    """Of every span on every kind: channel-seconds of work, and seconds alone over the processes in flight."""

    work: Float
    alone: Float


def _cost(spans: Spans, kinds: Kinds, way: Way) -> Cost:
    """What spans cost whole on one server, or in stripes over all servers of a kind."""
    pace = TYPICAL @ kinds.figures
    counted = (pace / max(float(pace.min()), 1e-12)) ** way.lean
    fixed = spans.asked[:, :2] @ kinds.figures[:2] * counted
    byte = spans.asked[:, 2:] @ kinds.figures[2:] * counted
    pieces: Float | float = 1.0
    if way.stripe_bytes:
        started, moved = spans.asked[:, :2].sum(axis=1), spans.asked[:, 2:].sum(axis=1)
        size = np.divide(moved, started, out=np.zeros(len(moved)), where=started > 0)
        servers = np.bincount(kinds.of, minlength=kinds.count)
        pieces = np.clip(np.ceil(size / way.stripe_bytes)[:, None], 1, servers)
    return Cost(fixed * pieces + byte, (fixed + byte / pieces) / way.processes)


def _prices(cost: Cost, length: Float, kinds: Kinds, share: Float | None = None) -> Prices:
    columns = [cost.work, cost.alone, length, *([] if share is None else [share])]
    rows, _, many = alike(np.column_stack(columns))
    work, alone, each, rest = np.split(rows, [kinds.count, 2 * kinds.count, 2 * kinds.count + 1], axis=1)
    return prices_of(
        work, each[:, 0], many, kinds.channels, kinds.rooms, alone, None if share is None else rest
    )  # fmt: skip


def _parts(spans: Spans, cost: Cost, kinds: Kinds, prices: Prices, part: float) -> Int:
    """In how many parts every run is cut."""
    work = cost.work
    priced = prices.of(work, spans.length, cost.alone)
    chosen = np.where(kinds.rooms > 0, priced, np.inf).argmin(axis=1)
    rows = np.arange(len(chosen))
    servers = np.bincount(kinds.of, minlength=kinds.count)
    each_s = prices.bound_s * kinds.channels / servers
    room = np.where(np.isfinite(kinds.rooms), kinds.rooms / servers, np.inf)
    timed = work[rows, chosen] / np.maximum(each_s[chosen] * part, 1e-300)
    housed = np.where(work[rows, chosen] > 0, spans.length / np.maximum(room[chosen] * PART_ROOM, 4096.0), 0.0)
    # What nobody asks for is cut by the largest room alone, so that it fits between other things.
    cold = spans.length / max(4096.0, float(room.max()) / 4)
    wanted = np.maximum.reduce([timed, housed, cold])
    parts = np.zeros(len(spans.start))
    np.maximum.at(parts, spans.run, wanted)
    while float(np.ceil(parts).sum()) > DEALT_PARTS_MAX + len(parts):
        parts /= 2
    return np.maximum(1, np.ceil(parts)).astype(np.int64)


class _Kinded:
    """Spans by kinds: each on its cheapest, as long as that has time and room; dearest mistakes first."""

    def __init__(self, cost: Cost, length: Float, kinds: Kinds, prices: Prices, share: Float | None) -> None:
        self.work, self.length, self.kinds, self.prices = cost.work, length, kinds, prices
        priced = np.where(kinds.rooms > 0, prices.of(cost.work, length, cost.alone, share), np.inf)
        self.priced = priced + TIE * np.arange(kinds.count)[::-1]

    def chosen(self) -> Int:
        """The kind of every span."""
        kinds = self.kinds
        priced = self.priced.copy()
        limit = self.prices.bound_s * kinds.channels * SLACK
        busy, held = np.zeros(kinds.count), np.zeros(kinds.count)
        chosen = np.full(len(priced), -1, dtype=np.int64)
        waiting = np.arange(len(priced))
        for _ in range(kinds.count):
            if not len(waiting):
                break
            order = np.sort(priced[waiting], axis=1)
            regret = order[:, 1] - order[:, 0] if kinds.count > 1 else order[:, 0]
            waiting = waiting[np.argsort(-np.nan_to_num(regret, posinf=np.inf), kind="stable")]
            wanted = priced[waiting].argmin(axis=1)
            refused = []
            for kind in range(kinds.count):
                of = waiting[wanted == kind]
                work = self.work[of, kind]
                fits = held[kind] + np.cumsum(self.length[of]) <= kinds.rooms[kind]
                timely = (busy[kind] + np.cumsum(work) <= limit[kind]) | (work <= 0)
                taken, left = of[fits & timely], of[~(fits & timely)]
                chosen[taken] = kind
                busy[kind] += self.work[taken, kind].sum()
                held[kind] += self.length[taken].sum()
                priced[left, kind] = np.inf
                refused.append(left)
            waiting = np.concatenate(refused)
        chosen[waiting] = self.priced[waiting].argmin(axis=1)
        return chosen


class _Dealer:
    """How busy and how full every server is, phase by phase where there are any."""

    def __init__(
        self,
        cost: Cost,
        length: Float,
        cluster: Cluster,
        rooms: Float,
        kinds: Kinds,
        chosen: Int,
        share: Float | None,
    ) -> None:
        self.kinds, self.work, self.length, self.chosen, self.share = kinds, cost.work, length, chosen, share
        self.rooms = rooms.copy()
        self.channels = np.array([target.channels for target in cluster.active], dtype=np.float64)
        self.busy = np.zeros(len(rooms))
        self.phased = np.zeros((len(rooms), 1 if share is None else share.shape[1]))

    def deal(self) -> Int | None:
        """The server of every span; None where something has no room."""
        server = np.full(len(self.length), -1, dtype=np.int64)
        left = []
        for kind in range(self.kinds.count):
            left += self._within(np.flatnonzero(self.chosen == kind), kind, server)
        for cell in left:
            if not self._anywhere(cell, server):
                return None
        return server

    def _within(self, cells: Int, kind: int, server: Int) -> list[int]:
        """Deals cells to a kind's servers; returns those for which none has room."""
        members = np.flatnonzero(self.kinds.of == kind)
        if self.share is not None:
            return self._within_phases(cells, kind, members, self.share, server)
        queue = [(self.busy[at] / self.channels[at], -self.rooms[at], int(at)) for at in members]
        heapq.heapify(queue)
        left = []
        order = cells[np.lexsort((-self.length[cells], -self.work[cells, kind]))]
        for cell in order.tolist():
            length, full = self.length[cell], []
            while queue and self.rooms[queue[0][2]] < length:
                full.append(heapq.heappop(queue))
            if queue:
                at = queue[0][2]
                self._put(cell, kind, at, server)
                heapq.heapreplace(queue, (self.busy[at] / self.channels[at], -self.rooms[at], at))
            else:
                left.append(cell)
            for each in full:
                heapq.heappush(queue, each)
        return left

    def _within_phases(self, cells: Int, kind: int, members: Int, share: Float, server: Int) -> list[int]:
        """The same where servers are busy by phases: a cell goes where those that it is asked for in are free.

        The sum of the squares of what keeps servers busy in every phase grows least so, in parts of the phase's mean.
        """
        left = []
        mean = np.maximum(self.work[cells, kind] @ share[cells], 1e-300)
        order = cells[np.lexsort((-self.length[cells], -self.work[cells, kind]))]
        for cell in order.tolist():
            more = share[cell] * self.work[cell, kind] / mean
            crowded = (self.phased[members] / mean) @ more + TIE * self.busy[members] / mean.sum()
            crowded[self.rooms[members] < self.length[cell]] = np.inf
            at = int(crowded.argmin())
            if np.isfinite(crowded[at]):
                self._put(cell, kind, int(members[at]), server)
            else:
                left.append(cell)
        return left

    def _put(self, cell: int, kind: int, at: int, server: Int) -> None:
        server[cell] = at
        self.rooms[at] -= self.length[cell]
        self.busy[at] += self.work[cell, kind]
        if self.share is not None:
            self.phased[at] += self.work[cell, kind] * self.share[cell]

    def _anywhere(self, cell: int, server: Int) -> bool:
        """The cell on the server that is done first with it, of all that have room."""
        kind = self.kinds.of
        after = (self.busy + self.work[cell, kind]) / self.channels
        after[self.rooms < self.length[cell]] = np.inf
        at = int(after.argmin())
        if not np.isfinite(after[at]):
            return False
        self._put(cell, int(kind[at]), at, server)
        return True
