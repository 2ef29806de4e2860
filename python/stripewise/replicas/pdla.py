"""PDLA's managers: one replica per pattern on the layout that its models find cheapest (PDLA, sections 3 and 4).

H-PDLA keeps to the HServers and copies all patterns, global ones first. S-PDLA copies those that gain on SServers or on
both classes, the most gain first, while SServers have room. S-ORIG and NS-PDLA are the paper's comparisons: files
unchanged on SServers, and all patterns there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from heapq import heappop, heappush

import numpy as np

from ..cluster import Cluster, Target
from ..errors import ClusterError
from ..layout import Layout, rotate, whole_file
from ..model.figures import parameters
from ..model.one_class import ClassParameters, group_counts, one_dh, one_dv, pdla_by_corners, two_d
from ..units import GIB, STRIPE_FALLBACK_BYTES, format_size, seconds_text
from . import schemes
from .accesses import Accesses, Extent, merged
from .blocks import StridedBlocks
from .candidate import Candidate, Decision, Refused, Room
from .setting import Chosen, Int, Setting, Shape

#: Strided sets of one pattern; what takes more of them is no pattern that a look-up could follow.
PARTS_MAX = 256
HSERVERS, SSERVERS, BOTH = "HServers", "SServers", "HServers+SServers"


@dataclass(frozen=True)
class Cheapest:
    """The cheapest layout of a pattern on some servers: its groups (1: 1-DH, as many as servers: 1-DV) and price.

    `h` is the stripe on HServers of 1-DH over both classes.
    """

    space: str
    groups: int
    seconds: float
    h: float = 0.0


def sizes_of(pattern: Accesses) -> list[tuple[int, bool, int]]:
    """Distinct requests of a pattern: bytes, whether it writes, how many."""
    kinds, count = np.unique(pattern.size * 2 + pattern.write, return_counts=True)
    return [(kind // 2, bool(kind % 2), many) for kind, many in zip(kinds.tolist(), count.tolist(), strict=True)]


def cheapest_on(pattern: Accesses, cluster: Cluster, ssd: bool) -> Cheapest:
    """T_H or T_S: the least of 1-DH, 1-DV and 2-D with all equal groups (PDLA, Tables 2 and 4, eqs. 1 and 2).

    A price is of p requests at once, one of each process, so a pattern's requests are summed and divided by p.
    """
    servers = cluster.sservers if ssd else cluster.hservers
    params = parameters(cluster, pattern.processes)
    counts = group_counts(len(servers))
    price = dict.fromkeys(counts, 0.0)
    for size, write, count in sizes_of(pattern):
        figures = ClassParameters.of(params, len(servers), ssd, write)
        for groups in counts:
            terms = (
                one_dh(figures, size)
                if groups == 1
                else one_dv(figures, size)
                if groups == len(servers)
                else two_d(figures, size, groups)
            )
            price[groups] += count * float(terms.total_s) / pattern.processes
    # The fewest groups among equals: what one process reads is then on most servers.
    groups = min(counts, key=lambda each: (price[each], each))
    return Cheapest(SSERVERS if ssd else HSERVERS, groups, price[groups])


def cheapest_on_both(pattern: Accesses, cluster: Cluster) -> Cheapest:
    """T_HS: 1-DH over both classes, each size of request on its best pair of stripes (PDLA, eq. 3)."""
    params = parameters(cluster, pattern.processes)
    m, n = len(cluster.hservers), len(cluster.sservers)
    total = 0.0
    for size, write, count in sizes_of(pattern):
        total += count * pdla_by_corners(params, m, n, size, write).cost_s / pattern.processes
    pair = pdla_by_corners(params, m, n, pattern.request_bytes, bool(pattern.write.any()))
    return Cheapest(BOTH, 1, total, pair.h)


@dataclass(frozen=True)
class Critical:
    """A row of the critical pattern table (PDLA, section 4.3): T_H, T_S, T_HS, and where B is had."""

    pattern: Accesses
    on_h: Cheapest
    on_s: Cheapest
    on_both: Cheapest

    @property
    def benefit_s(self) -> float:
        """B = max(T_H - T_S, T_H - T_HS) (eqs. 4 to 6)."""
        return self.on_h.seconds - self.best.seconds

    @property
    def best(self) -> Cheapest:
        """The space with the larger benefit; SServers among equals."""
        return min(self.on_s, self.on_both, key=lambda each: each.seconds)

    @property
    def told(self) -> str:
        """The three times, for people."""
        said = map(seconds_text, (self.on_h.seconds, self.on_s.seconds, self.on_both.seconds))
        return "T_H {} s, T_S {} s, T_HS {} s".format(*said)


def critical_of(pattern: Accesses, cluster: Cluster) -> Critical:
    """The row of a pattern on a cluster of both classes."""
    return Critical(
        pattern,
        cheapest_on(pattern, cluster, ssd=False),
        cheapest_on(pattern, cluster, ssd=True),
        cheapest_on_both(pattern, cluster),
    )


def h_pdla(patterns: Sequence[Accesses], setting: Setting, room: Room) -> Decision:
    """A replica for every pattern, on HServers: global ones first, then the local ones (PDLA, section 3.3.1).

    ClusterError where there are none.
    """
    _need(setting.cluster, HSERVERS, "h-pdla")
    return _every(patterns, _Making(setting, room), ssd=False).decision("h-pdla")


def s_pdla(patterns: Sequence[Accesses], setting: Setting, room: Room, threshold_s: float = 0.0) -> Decision:
    """Algorithm 1: critical patterns by benefit, while each SServer has room (PDLA, section 4.4).

    `room` bounds SServers. A pattern whose B is not above the threshold gets no replica. The published listing also
    takes the space of what did not fit (line 19); here only what is made takes any. ClusterError without both classes.
    """
    for space in (HSERVERS, SSERVERS):
        _need(setting.cluster, space, "s-pdla")
    making = _Making(setting, room)
    table: list[tuple[float, tuple[object, ...], int, Critical]] = []
    waiting, number = list(_alike(patterns, setting)), itertools.count()
    while table or waiting:
        for pattern in waiting:
            row = critical_of(pattern, setting.cluster)
            heappush(table, (-row.benefit_s, pattern.key, next(number), row))
        *_, row = heappop(table)
        sides = making.apart(row.pattern)
        waiting = [] if len(sides) == 1 else list(sides)
        if waiting:
            continue
        if row.benefit_s > threshold_s:
            making.add(row.pattern, row.best, row.benefit_s, (row.told,))
        else:
            than = "HServers are as fast" if threshold_s == 0 else f"the benefit is not above {threshold_s:g} s"
            making.refuse(row.pattern, f"not critical: {than} ({row.told})")
    return making.decision("s-pdla")


def ns_pdla(patterns: Sequence[Accesses], setting: Setting, room: Room) -> Decision:
    """The comparison that selects nothing: every pattern on SServers in its cheapest layout, while there is room.

    ClusterError without SServers.
    """
    _need(setting.cluster, SSERVERS, "ns-pdla")
    return _every(patterns, _Making(setting, room), ssd=True).decision("ns-pdla")


def s_orig(patterns: Sequence[Accesses], setting: Setting, room: Room, extents: Mapping[str, Extent]) -> Decision:
    """The comparison without patterns: whole files on SServers, in equal stripes (PDLA, section 5.2).

    ClusterError without SServers.
    """
    _need(setting.cluster, SSERVERS, "s-orig")
    layout = whole_file(setting.cluster.sservers, STRIPE_FALLBACK_BYTES, GIB)
    making = _Making(setting, room)
    for path in sorted({each.file for each in patterns}):
        mine = sorted((each for each in patterns if each.file == path), key=lambda each: each.key)
        joined = reduce(Accesses.joined, mine)
        end = int((joined.offset + joined.size).max())
        size = max(end, extents[path].size_bytes if path in extents else 0)
        whole = replace(joined, words=f"The whole file, {format_size(size)}.", joined_of=())
        shape = Shape((StridedBlocks(0, size),), (size,))
        making.place(whole, shape, Chosen(SSERVERS, "as it is", layout, 0.0, ("the file itself moves",)))
    return making.decision("s-orig")


class _Making:
    """Candidates one after another, as long as there is room and their bytes have no other home."""

    def __init__(self, setting: Setting, room: Room) -> None:
        self.setting = setting
        self.room = room
        self.chosen: list[Candidate] = []
        self.refused: list[Refused] = []
        self._homes: dict[str, list[tuple[Int, Int]]] = {}

    def apart(self, pattern: Accesses) -> tuple[Accesses, ...]:
        """The pattern; or, where some of its bytes have their home elsewhere, what writes and what only reads it: the
        latter has a copy of all.
        """
        return pattern.apart() if self._shape(pattern).is_cut else (pattern,)

    def add(
        self, pattern: Accesses, cheapest: Cheapest, benefit_s: float | None, reasons: tuple[str, ...] = ()
    ) -> None:
        """A pattern on the layout that was found for it; without a benefit, what the fine model says is one."""
        shape = self._shape(pattern)
        if not shape.bytes:
            self.refuse(pattern, "all its bytes have their home in a replica already")
        elif len(shape.blocks) > PARTS_MAX:
            self.refuse(pattern, f"its blocks follow no few strides: {len(shape.blocks):,} sets, more than {PARTS_MAX}")
        else:
            chosen = self._laid(pattern, shape, cheapest)
            self.place(pattern, shape, replace(chosen, benefit_s=benefit_s or 0.0, reasons=reasons))

    def place(self, pattern: Accesses, shape: Shape, chosen: Chosen) -> None:
        """The pattern's replica, if it fits."""
        made = self.setting.candidate(pattern, shape, chosen)
        if not chosen.benefit_s:
            made = replace(made, benefit_s=made.gain_s)
        lack = self.room.lack(made.space_bytes)
        if lack is not None:
            self.refused.append(Refused(pattern.file, pattern.words, lack, pattern.bytes, made))
            return
        self.room.take(made.space_bytes)
        if made.is_home:
            offset = np.concatenate([part.offsets() for part in shape.blocks])
            size = np.concatenate([np.full(part.count, part.block) for part in shape.blocks])
            self._homes.setdefault(pattern.file, []).append((offset, offset + size))
        if made.gain_s <= 0:
            made = replace(made, reasons=(*made.reasons, "no gain over the file itself; the paper makes it anyway"))
        self.chosen.append(made)

    def refuse(self, pattern: Accesses, reason: str) -> None:
        """A pattern without a candidate."""
        self.refused.append(Refused(pattern.file, pattern.words, reason, pattern.bytes))

    def decision(self, manager: str) -> Decision:
        """What was chosen and refused."""
        return Decision(manager, tuple(self.chosen), tuple(self.refused))

    def _shape(self, pattern: Accesses) -> Shape:
        return self.setting.shape(pattern, self._taken(pattern.file) if pattern.write.any() else None)

    def _taken(self, path: str) -> tuple[Int, Int] | None:
        homes = self._homes.get(path)
        if not homes:
            return None
        starts, ends = (np.concatenate([each[side] for each in homes]) for side in (0, 1))
        order = np.argsort(starts)
        return starts[order], ends[order]

    def _laid(self, pattern: Accesses, shape: Shape, cheapest: Cheapest) -> Chosen:
        """The layout in regions, beginning with the next server from replica to replica."""
        cluster = self.setting.cluster
        servers = rotate(cluster.hservers if cheapest.space == HSERVERS else cluster.sservers, len(self.chosen))
        request, name = pattern.request_bytes, _scheme(cheapest, len(servers))
        layout: Layout
        if cheapest.space == BOTH:
            layout = schemes.hybrid(cluster.hservers, servers, cheapest.h, request, shape.bytes)
        elif cheapest.groups == 1:
            layout = schemes.one_dh(servers, request, shape.bytes)
        else:
            layout = schemes.two_d(servers, cheapest.groups, request, shape.held)
        return Chosen(cheapest.space, name, layout, 0.0)


def _every(patterns: Sequence[Accesses], making: _Making, ssd: bool) -> _Making:
    """A replica of every pattern on servers of one class, global ones first."""
    ordered = sorted(_alike(patterns, making.setting), key=lambda each: (not each.is_global, each.key))
    for pattern in ordered:
        for side in making.apart(pattern):
            making.add(side, cheapest_on(side, making.setting.cluster, ssd), None)
    return making


def _scheme(cheapest: Cheapest, servers: int) -> str:
    if cheapest.groups == 1:
        return "1-DH"
    return "1-DV" if cheapest.groups == servers else f"2-D, {cheapest.groups} groups of {servers // cheapest.groups}"


def _alike(patterns: Sequence[Accesses], setting: Setting) -> list[Accesses]:
    """Patterns of the same blocks of a file as one: one replica serves them (PDLA, section 3.3.1)."""
    ordered = sorted(patterns, key=lambda each: each.key)
    return merged(ordered, [(each.file, setting.shape(each).blocks) for each in ordered])


def _need(cluster: Cluster, space: str, manager: str) -> None:
    wanted: Iterable[Target] = cluster.hservers if space == HSERVERS else cluster.sservers
    if not wanted:
        kind = "target of class ssd" if space == SSERVERS else "target of another class than ssd"
        other = "h-pdla or radar" if space == SSERVERS else "radar"
        raise ClusterError(
            f"{cluster.source}: has no active {kind}, which {manager} puts replicas on; add one, or take "
            f"--manager {other}"
        )
