"""Requests of very different sizes that begin at the same places, and layouts that tell their heads from their tails.

Where small and large requests all begin at multiples of a period P, the first h bytes of every period are asked for by
all of them and the rest by large ones only. A region striped with the cycle (h on a swift starter, P - h on another
server) serves requests of up to h bytes whole on the first, large ones at the price of one startup more, and takes h/P
of its bytes of the scarce room. So heads of nearly all regions fit where only few regions would.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....cluster import Cluster
from ....layout import Stripes
from ....model.general import Bool, Float, Int
from ....units import GRANULE_BYTES, round_up
from ...toolkit.regions import RegionTable
from ..tuning import (
    HEAD_WIDTHS,
    HEADED_CHOICES_MAX,
    HEADED_SERVERS_MAX,
    HEADS_SPREAD,
    KEPT,
    NEARLY,
    PERIODS,
    TRIED,
    WORTH_SHARE,
)
from .cuts import Cuts


@dataclass(frozen=True)
class Head:
    """The first `width` bytes of every `period` bytes."""

    period: int
    width: int

    @property
    def share(self) -> float:
        """Of a region's bytes, 0 to 1."""
        return self.width / self.period

    def stripes(self, first: str, rest: Sequence[str], length: int) -> Stripes:
        """The stripes of a region of `length` bytes: heads on `first`, the rest in equal parts on `rest`."""
        if self.width >= length:
            return ((first, length),)
        left = min(self.period, length) - self.width
        width = self.part_bytes(len(rest))
        parts = [(name, min(width, left - number * width)) for number, name in enumerate(rest)]
        return ((first, self.width), *((name, each) for name, each in parts if each > 0))

    def part_bytes(self, parts: int) -> int:
        """The width of a tail's stripes on so many servers."""
        return round_up(-(-(self.period - self.width) // parts))

    def features(self, table: RegionTable, parts: int) -> Float:
        """Shape (regions, 8): of reads, then of writes, pieces on heads and their bytes, the same of tails.

        Tails lie in `parts` stripes. Exact for any requests, nested or not.
        """
        rows = np.repeat(np.arange(table.regions), np.diff(table.first))
        width = self.part_bytes(parts)
        edges = [0, *(min(self.period, self.width + number * width) for number in range(parts + 1))]
        inside = [_between(table, self.period, low, high) for low, high in itertools.pairwise(edges)]
        tails = np.array(inside[1:])
        count = table.count.astype(np.float64)
        result = np.zeros((table.regions, 8))
        for operation, chosen in enumerate((~table.write, table.write)):
            of = rows[chosen]
            columns = (inside[0] > 0, inside[0], (tails > 0).sum(axis=0), tails.sum(axis=0))
            for column, each in zip((0, 2, 4, 6), columns, strict=True):
                weights = count[chosen] * each[chosen]
                result[:, column + operation] = np.bincount(of, weights=weights, minlength=table.regions)
        return result


def _between(table: RegionTable, period: int, low: int, high: int) -> Int:
    """Bytes of every row that lie from `low` to `high` in their period."""
    begin, end = (
        at // period * (high - low) + np.clip(at % period - low, 0, high - low)
        for at in (table.offset, table.offset + table.size)
    )
    return np.asarray(end - begin)


def is_headed(stripes: Stripes, cluster: Cluster, periods: Sequence[int]) -> bool:
    """Whether the stripes are a head on an SServer and the rest on HServers, in one of `periods` or a piece of it."""
    if len(stripes) < 2 or sum(width for _, width in stripes) > max(periods, default=0):
        return False
    ssds = {target.name for target in cluster.sservers}
    return stripes[0][0] in ssds and not any(name in ssds for name, _ in stripes[1:])


@dataclass(frozen=True)
class Starts:
    """Per region: the greatest common divisor of where its requests begin (0: all at its start), and their sizes."""

    apart: Int
    smallest: Int
    largest: Int
    count: Float

    @classmethod
    def of(cls, table: RegionTable) -> Starts:
        """Those of a table."""
        apart = np.zeros(table.regions, dtype=np.int64)
        smallest, largest, count = apart.copy(), apart.copy(), np.zeros(table.regions)
        used = np.flatnonzero(np.diff(table.first))
        if len(used):
            at = table.first[used]
            apart[used] = np.gcd.reduceat(table.offset, at)
            smallest[used] = np.minimum.reduceat(table.size, at)
            largest[used] = np.maximum.reduceat(table.size, at)
            count[used] = np.add.reduceat(table.count.astype(np.float64), at)
        return cls(apart, smallest, largest, count)

    def fit(self, period: int) -> Bool:
        """Regions all of whose requests begin at multiples of `period` and end before the next."""
        return np.asarray((self.largest > 0) & (self.apart % period == 0) & (self.largest <= period))


def periods_of(table: RegionTable) -> tuple[int, ...]:
    """The periods at which requests of different sizes begin, in bytes, those of most requests first; mostly none."""
    starts = Starts.of(table)
    spread = starts.largest >= HEADS_SPREAD * np.maximum(starts.smallest, GRANULE_BYTES // HEADS_SPREAD)
    total = float(starts.count.sum())
    left = starts.count.copy()
    found: list[int] = []
    if float(left[spread].sum()) < WORTH_SHARE * total:
        return ()
    apart = np.where(starts.apart > 0, starts.apart, table.region_bytes)
    while len(found) < PERIODS:
        usable = spread & (left > 0) & (apart % GRANULE_BYTES == 0) & (starts.largest <= apart)
        lengths, which = np.unique(apart[usable], return_inverse=True)
        if not len(lengths):
            break
        weight = np.bincount(which, weights=left[usable])
        tried = sorted((int(lengths[n]) for n in np.argsort(-weight, kind="stable")[:TRIED]), reverse=True)
        covered = [float(left[spread & starts.fit(period)].sum()) for period in tried]
        if max(covered) < WORTH_SHARE * total:
            break
        period = next(each for each, share in zip(tried, covered, strict=True) if share >= NEARLY * max(covered))
        found.append(period)
        left[starts.fit(period)] = 0.0
    return tuple(found)


def period_of_each(table: RegionTable, periods: tuple[int, ...]) -> Int:
    """Per region the period that its requests keep to, all but a few; 0 where there is none."""
    result = np.zeros(table.regions, dtype=np.int64)
    rows = np.repeat(np.arange(table.regions), np.diff(table.first))
    every = np.bincount(rows, weights=table.count, minlength=table.regions)
    for period in reversed(periods):
        keeps = keep_to(table, np.full(len(rows), period))
        kept = np.bincount(rows, weights=table.count * keeps, minlength=table.regions)
        result[(every > 0) & (kept >= KEPT * every)] = period
    return result


def keep_to(table: RegionTable, period: Int) -> Bool:
    """Rows that begin at a multiple of their `period` and end before the next; none of those with period 0."""
    at = np.maximum(period, 1)
    return np.asarray((period > 0) & (table.offset % at == 0) & (table.size <= period))


def cuts_between(cuts: Cuts, period: Int) -> Cuts:
    """The cuts without those inside a period; `period` is that of every region, 0 where it has none."""
    kept = np.flatnonzero(cuts.start % np.maximum(period, 1)[cuts.region] == 0)
    length = np.add.reduceat(cuts.length, kept) if len(kept) else cuts.length
    return Cuts(cuts.region[kept], cuts.start[kept], length)


def heads_of(table: RegionTable, periods: tuple[int, ...]) -> list[Head]:
    """The heads that are tried: as wide as requests are long."""
    rows = np.repeat(np.arange(table.regions), np.diff(table.first))
    each = period_of_each(table, periods)[rows]
    found = []
    for period in periods:
        sizes = table.size[keep_to(table, np.where(each == period, period, 0))]
        widths = np.unique(-(-sizes // GRANULE_BYTES) * GRANULE_BYTES)
        widths = widths[widths < period]
        if len(widths) > HEAD_WIDTHS:
            wanted = np.linspace(np.log(widths[0]), np.log(widths[-1]), HEAD_WIDTHS)
            widths = np.unique(widths[[int(np.abs(np.log(widths) - each).argmin()) for each in wanted]])
        found += [Head(period, round_up(int(width))) for width in widths]
    return found


def pairs(cluster: Cluster, widths: int, parts: int = 1) -> list[tuple[int, tuple[int, ...]]]:
    """Which SServer has the heads and which `parts` HServers the tails, as positions in their classes."""
    heads, tails = len(cluster.sservers), len(cluster.hservers)
    if not heads or tails < parts or not widths or heads + tails > HEADED_SERVERS_MAX:
        return []
    groups = [tuple(range(low, low + parts)) for low in range(0, tails - parts + 1, parts)]
    partners = min(heads, max(1, HEADED_CHOICES_MAX // (widths * len(groups))))
    return [((number + turn) % heads, group) for turn in range(partners) for number, group in enumerate(groups)]
