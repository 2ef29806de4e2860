"""Regions cut where their heat or their request size changes.

Inside a region `best` takes requests to come equally often everywhere, so a region whose requests do not is cut first.
Heat is counted in bins, small and large requests and every window apart; a cut is made where the two sides' rates
differ more than chance lets Poisson counts differ (likelihood ratio), and not through requests. Every half is looked at
again. A trace's chance is not mistaken for heat: what would be gained from it once is lost in the next run.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....cluster import Cluster, Target
from ....model.general import Float, Int
from ....units import GRANULE_BYTES
from ...toolkit.regions import RegionTable
from ..tuning import (
    BINS,
    CROSSING_SHARE,
    PART_REQUESTS,
    RATE_RATIO,
    SIGNIFICANT,
    SIGNIFICANT_EACH,
    WINDOWS_MAX,
)


@dataclass(frozen=True)
class Cuts:
    """Pieces of regions, in order: piece k is [start[k], start[k] + length[k]) of region `region[k]`, in bytes."""

    region: Int
    start: Int
    length: Int

    @property
    def pieces(self) -> int:
        """How many pieces there are."""
        return len(self.region)

    def holding(self, finer: Cuts, region_bytes: int) -> Int:
        """Of every piece of `finer`, which only cuts more, the piece here that it lies in."""
        starts = self.region * region_bytes + self.start
        return np.searchsorted(starts, finer.region * region_bytes + finer.start, side="right") - 1


def whole_regions(table: RegionTable) -> Cuts:
    """Every region one piece."""
    every = np.arange(table.regions, dtype=np.int64)
    return Cuts(every, np.zeros_like(every), np.full_like(every, table.region_bytes))


def choose_cuts(whole: RegionTable, windows: Sequence[RegionTable | None], weight: int = 1) -> Cuts:
    """Where to cut the regions of `whole` by what the windows ask for; O(distinct keys + regions).

    `weight` is how many requests each counted one stands for: a sample says no more than its own size lets it.
    """
    bin_bytes = max(GRANULE_BYTES, -(-whole.region_bytes // BINS) // GRANULE_BYTES * GRANULE_BYTES)
    bins = -(-whole.region_bytes // bin_bytes)
    tables = [each for each in windows if each is not None]
    if bins < 2 or not tables:
        return whole_regions(whole)
    crossing = _crossing(whole, bin_bytes, bins)
    large = _large(whole)
    if len(tables) > WINDOWS_MAX:
        tables = [whole]
    counts = np.stack([part for table in tables for part in _counts(table, large, bin_bytes, bins)]) / weight
    crossing = crossing / weight
    # Bins that the file does not reach hold nothing and count for nothing.
    used = np.clip(whole.valid_bytes[:, None] - np.arange(bins) * bin_bytes, 0, bin_bytes) / bin_bytes
    allowed = crossing <= CROSSING_SHARE * counts.sum(axis=(0, 2))[:, None]
    candidates = np.flatnonzero(_best_cut(counts, used, allowed)[0] > _threshold(len(counts)))
    inner = {int(g): _split(counts[:, g], used[g], allowed[g]) for g in candidates}
    region, start, length = [], [], []
    for g in range(whole.regions):
        edges = [0, *(cut * bin_bytes for cut in inner.get(g, ())), whole.region_bytes]
        region += [g] * (len(edges) - 1)
        start += edges[:-1]
        length += [high - low for low, high in itertools.pairwise(edges)]
    return Cuts(np.array(region, dtype=np.int64), np.array(start, dtype=np.int64), np.array(length, dtype=np.int64))


def cut_for_balance(
    cuts: Cuts,
    whole: RegionTable,
    windows: Sequence[RegionTable | None],
    cluster: Cluster,
    capacity: Float,
    share: float,
) -> Cuts:
    """Pieces that would keep a server busier than all others are cut into equal parts, at multiples of their requests.

    A piece is too hot where it is more than `share` of what the swiftest server takes of a window's work when all are
    equally busy, and too large, if anything touches it, where it is more than that share of the smallest room (bytes
    of every active target). Where requests are not aligned, a cut runs through some of them, which then are two;
    parts are at least `PART_REQUESTS` requests long, so these are few.
    """
    table = cut_table(whole, cuts)
    largest = table.request_bytes
    hottest = np.zeros(cuts.pieces)
    for window in windows:
        if window is not None:
            work = _work(cut_table(window, cuts), cluster)
            hottest = np.maximum(hottest, work / max(float(work.sum()), 1e-300))
    typical = float((table.count * table.size).sum() / max(1, int(table.count.sum())))
    speed = 1 / np.array([max(_seconds(target, typical), 1e-12) for target in cluster.active])
    parts = np.ceil(hottest / (share * float(speed.max() / speed.sum())))
    limited = capacity[np.isfinite(capacity) & (capacity >= GRANULE_BYTES)]
    if len(limited):
        parts = np.maximum(parts, np.where(hottest > 0, table.valid_bytes / (share * float(limited.min())), 0.0))
    parts = np.ceil(parts).astype(np.int64)
    rows = np.repeat(np.arange(cuts.pieces), np.diff(table.first))
    crosses = table.offset % np.maximum(largest[rows], 1) + table.size > largest[rows]
    unaligned = np.bincount(rows, weights=table.count * crosses, minlength=cuts.pieces)
    count = np.bincount(rows, weights=table.count.astype(np.float64), minlength=cuts.pieces)
    unit = np.where(unaligned > CROSSING_SHARE * count, PART_REQUESTS * largest, largest)
    unit = np.maximum(GRANULE_BYTES, -(-unit // GRANULE_BYTES) * GRANULE_BYTES)
    region, start, length = [], [], []
    for piece in range(cuts.pieces):
        # Only what the file reaches is cut; the last part has the rest of the piece.
        used, end = int(table.valid_bytes[piece]), int(cuts.length[piece])
        each = end
        if parts[piece] > 1:
            each = max(1, used // int(parts[piece]) // int(unit[piece])) * int(unit[piece])
        edges = [0, *range(each, used, each)]
        for low, high in zip(edges, [*edges[1:], end], strict=True):
            region.append(int(cuts.region[piece]))
            start.append(int(cuts.start[piece]) + low)
            length.append(high - low)
    made = (np.array(column, dtype=np.int64) for column in (region, start, length))
    return Cuts(*made)


def _seconds(target: Target, size: float) -> float:
    startup = (target.startup_read_s + target.startup_write_s) / 2
    return startup + size * (target.per_byte_read_s + target.per_byte_write_s) / 2


def _work(table: RegionTable, cluster: Cluster) -> Float:
    """Seconds of every region's requests on the mean of the swifter class."""
    servers = cluster.sservers or cluster.active
    fixed = float(np.mean([_seconds(target, 0.0) for target in servers]))
    byte = float(np.mean([_seconds(target, 1.0) for target in servers])) - fixed
    rows = np.repeat(np.arange(table.regions), np.diff(table.first))
    seconds = table.count * (fixed + byte * table.size)
    return np.bincount(rows, weights=seconds, minlength=table.regions).astype(np.float64)


def _large(whole: RegionTable) -> Int:
    """Per region the size from which a request counts as large: the geometric mean of its smallest and largest."""
    rows = np.repeat(np.arange(whole.regions), np.diff(whole.first))
    smallest = np.full(whole.regions, np.iinfo(np.int64).max)
    np.minimum.at(smallest, rows, whole.size)
    return np.sqrt(smallest.astype(np.float64) * whole.request_bytes).astype(np.int64) + 1


def _counts(table: RegionTable, large: Int, bin_bytes: int, bins: int) -> list[Float]:
    """Requests that start in every bin of every region, small and large ones apart; each of shape (regions, bins)."""
    rows = np.repeat(np.arange(table.regions), np.diff(table.first))
    place = rows * bins + table.offset // bin_bytes
    is_large = table.size >= large[rows]
    weights = table.count.astype(np.float64)
    found: list[Float] = []
    for part in (~is_large, is_large):
        each = np.bincount(place[part], weights=weights[part], minlength=table.regions * bins)
        found.append(each.astype(np.float64).reshape(table.regions, bins))
    return found


def _crossing(table: RegionTable, bin_bytes: int, bins: int) -> Float:
    """Requests that run through the border before every bin but the first, of shape (regions, bins - 1)."""
    rows = np.repeat(np.arange(table.regions), np.diff(table.first))
    first, last = table.offset // bin_bytes, (table.offset + table.size - 1) // bin_bytes
    through = last > first
    steps = np.zeros(table.regions * (bins + 1))
    at = rows[through] * (bins + 1)
    weight = table.count[through].astype(np.float64)
    np.add.at(steps, at + first[through] + 1, weight)
    np.add.at(steps, at + np.minimum(last[through], bins - 1) + 1, -weight)
    return np.asarray(np.cumsum(steps.reshape(table.regions, bins + 1), axis=1)[:, 1:bins])


def _threshold(series: int) -> float:
    return SIGNIFICANT + SIGNIFICANT_EACH * (series - 1)


def _best_cut(counts: Float, used: Float, allowed: NDArray[np.bool_]) -> tuple[Float, Int]:
    """Twice the largest log likelihood ratio of any cut, and the cut.

    Counts of shape (series, regions, bins), `used` of (regions, bins), `allowed` of (regions, bins - 1).
    """
    left = np.cumsum(counts, axis=-1)[..., :-1]
    total = counts.sum(axis=-1)[..., None]
    left_used = np.cumsum(used, axis=-1)[..., :-1]
    all_used = used.sum(axis=-1)[..., None]
    right, right_used = total - left, all_used - left_used
    ratio = 2 * (_log(left, left_used) + _log(right, right_used) - _log(total, all_used))
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = left / left_used, right / right_used
        differ = np.maximum(low, high) >= RATE_RATIO * np.minimum(low, high)
    sound = allowed & (left_used > 0) & (right_used > 0)
    each = np.where(sound & differ.any(axis=0), ratio.sum(axis=0), 0.0)
    best = each.argmax(axis=-1)
    return np.take_along_axis(each, best[..., None], axis=-1)[..., 0], best + 1


def _log(count: Float, exposure: Float) -> Float:
    """count * ln(count / exposure), 0 where nothing was counted."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(count > 0, count * np.log(count / exposure), 0.0)


def _split(counts: Float, used: Float, allowed: NDArray[np.bool_]) -> list[int]:
    """The bins of one region that begin a new piece, ascending."""
    value, cut = _best_cut(counts[:, None], used[None], allowed[None])
    if value[0] <= _threshold(len(counts)):
        return []
    at = int(cut[0])
    left = _split(counts[:, :at], used[:at], allowed[: at - 1]) if at > 1 else []
    right = _split(counts[:, at:], used[at:], allowed[at:]) if len(used) - at > 1 else []
    return [*left, at, *(at + each for each in right)]


def cut_table(table: RegionTable, cuts: Cuts) -> RegionTable:
    """The table with the pieces for regions: offsets count from the piece's start, requests are cut at its ends.

    `number` counts the pieces in their file, as they are no longer of one length.
    """
    if cuts.pieces == table.regions:
        return table
    base = np.int64(table.region_bytes)
    starts = cuts.region * base + cuts.start
    ends = starts + cuts.length
    rows = np.repeat(np.arange(table.regions), np.diff(table.first))
    at, size = rows * base + table.offset, table.size
    write, count = table.write, table.count
    done = []
    while len(at):
        piece = np.searchsorted(starts, at, side="right") - 1
        inside = np.minimum(size, ends[piece] - at)
        done.append((piece, at - starts[piece], inside, write, count))
        more = size > inside
        at, size, write, count = (at + inside)[more], (size - inside)[more], write[more], count[more]
    piece, offset, size, write, count = (np.concatenate(column) for column in zip(*done, strict=True))
    order = np.argsort(piece, kind="stable")
    piece, size = piece[order], size[order]
    first = np.searchsorted(piece, np.arange(cuts.pieces + 1)).astype(np.int64)
    request_bytes = np.zeros(cuts.pieces, dtype=np.int64)
    np.maximum.at(request_bytes, piece, size)
    file = table.file[cuts.region]
    return RegionTable(
        region_bytes=table.region_bytes,
        file=file,
        number=np.arange(cuts.pieces, dtype=np.int64) - np.searchsorted(file, file),
        valid_bytes=np.clip(table.valid_bytes[cuts.region] - cuts.start, 0, cuts.length),
        request_bytes=request_bytes,
        first=first,
        offset=offset[order],
        size=size,
        write=write[order],
        count=count[order],
    )
