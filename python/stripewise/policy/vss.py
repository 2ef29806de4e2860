"""Varied-size striping: the cheapest stripe pair (h, s) for every region (seed 000, Algorithm 1).

The grid runs h from 0 in steps up to r/(M+N) and s from h + step up to r/N, r being the largest request of the region;
where it is empty, the one candidate is (0, r/N rounded up to a step). Among equally cheap pairs the last, widest one
counts: it cuts a request into the fewest pieces. Cost is O(grid * distinct keys): requests are grouped, regions with
the same multiset of keys share one search, and the residues of a candidate's cycle stand for all offsets where they are
fewer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model import CostParameters, Cycle, request_cost
from ..model.general import Bool, Float, Int
from ..units import round_up
from .regions import RegionTable

#: Beyond so many steps of s the step is coarsened: a request of 1 GiB would else have 10^10 pairs.
STEPS_MAX = 512
#: Candidates times keys priced in one pass.
BLOCK = 1 << 18
#: Costs that differ by less are equal: sums of the same numbers in another order.
TIE = 1.0 + 1e-12


@dataclass(frozen=True)
class Pairs:
    """Per region the pair in bytes and its cost in seconds; (0, 0, infinity) where there is none."""

    h: Int
    s: Int
    cost_s: Float


def grid(request_bytes: int, M: int, N: int, step_bytes: int) -> list[tuple[int, int]]:
    """The candidate pairs of Algorithm 1 for requests of r bytes on M HServers and N SServers."""
    if N == 0 or request_bytes <= 0:
        return []
    step = round_up(max(step_bytes, -(-request_bytes // N) // STEPS_MAX), step_bytes)
    h_last = request_bytes // (M + N) if M else 0
    pairs = [(h, s) for h in range(0, h_last + 1, step) for s in range(h + step, request_bytes // N + 1, step)]
    return pairs or [(0, round_up(-(-request_bytes // N), step))]


def search_pairs(table: RegionTable, params: CostParameters, M: int, N: int, step_bytes: int) -> Pairs:
    """The cheapest pair of every touched region."""
    result = Pairs(
        np.zeros(table.regions, dtype=np.int64),
        np.zeros(table.regions, dtype=np.int64),
        np.full(table.regions, np.inf),
    )
    if N == 0:
        return result
    for request_bytes in np.unique(table.request_bytes[table.request_bytes > 0]):
        regions = np.flatnonzero(table.request_bytes == request_bytes)
        _search(table, params, M, N, regions, grid(int(request_bytes), M, N, step_bytes), result)
    return result


def _search(
    table: RegionTable,
    params: CostParameters,
    M: int,
    N: int,
    regions: Int,
    pairs: list[tuple[int, int]],
    result: Pairs,
) -> None:
    """Prices `pairs` for `regions`, which share r, and writes the cheapest into `result`."""
    rows, owner = table.rows_of(regions)
    keys = np.stack([table.offset[rows], table.size[rows], table.write[rows].astype(np.int64)], axis=1)
    distinct, key = np.unique(keys, axis=0, return_inverse=True)
    key = key.reshape(-1)
    shared, member = _share(key, table.count[rows], owner, len(regions))
    chosen = np.isin(owner, shared)
    position = np.full(len(regions), -1, dtype=np.int64)
    position[shared] = np.arange(len(shared))
    key, count, owner = key[chosen], table.count[rows][chosen].astype(np.float64), position[owner[chosen]]
    offset, size, write = distinct[:, 0], distinct[:, 1], distinct[:, 2].astype(np.bool_)

    best = np.full(len(shared), np.inf)
    best_pair = np.zeros(len(shared), dtype=np.int64)
    per_block = max(1, BLOCK // len(distinct))
    counts = None
    if len(shared) * len(distinct) <= BLOCK * 8:
        counts = np.zeros((len(distinct), len(shared)))
        np.add.at(counts, (key, owner), count)
    for low in range(0, len(pairs), per_block):
        block = pairs[low : low + per_block]
        if per_block > 1:
            each = request_cost(params, _cycles(M, N, block), offset, size, write)
        else:
            each = price_by_residue(params, Cycle.pair(M, N, *block[0]), offset, size, write)[None, :]
        if counts is not None:
            totals = each @ counts
        else:
            totals = np.stack([np.bincount(owner, weights=one[key] * count, minlength=len(shared)) for one in each])
        for number, total in enumerate(totals, start=low):
            better = total <= best * TIE
            best = np.where(better, total, best)
            best_pair = np.where(better, number, best_pair)
    table_of_pairs = np.array(pairs, dtype=np.int64)
    result.h[regions] = table_of_pairs[best_pair[member], 0]
    result.s[regions] = table_of_pairs[best_pair[member], 1]
    result.cost_s[regions] = best[member]


def _cycles(M: int, N: int, pairs: list[tuple[int, int]]) -> Cycle:
    """All candidates of a block as one cycle with a leading axis."""
    widths = np.array([[h] * M + [s] * N for h, s in pairs], dtype=np.int64)
    return Cycle(widths, (False,) * M + (True,) * N)


def _share(key: Int, count: Int, owner: Int, regions: int) -> tuple[Int, Int]:
    """One region per distinct multiset of keys, and for every region the position of its representative."""
    ends = np.searchsorted(owner, np.arange(regions + 1))
    seen: dict[tuple[bytes, bytes], int] = {}
    shared: list[int] = []
    member = np.zeros(regions, dtype=np.int64)
    for region in range(regions):
        part = slice(int(ends[region]), int(ends[region + 1]))
        order = np.argsort(key[part], kind="stable")
        signature = (key[part][order].tobytes(), count[part][order].tobytes())
        if signature not in seen:
            seen[signature] = len(shared)
            shared.append(region)
        member[region] = seen[signature]
    return np.array(shared, dtype=np.int64), member


def price_by_residue(params: CostParameters, cycle: Cycle, offset: Int, size: Int, write: Bool) -> Float:
    """`request_cost`, priced once per residue of the cycle where that is less work; the values are the same."""
    length = int(cycle.length)
    grain = int(np.gcd.reduce(np.concatenate([offset, np.array([length])])))
    kinds, kind = np.unique(np.stack([size, write.astype(np.int64)], axis=1), axis=0, return_inverse=True)
    residues = length // grain
    if residues * len(kinds) * 2 > len(offset):
        return request_cost(params, cycle, offset, size, write)
    all_offsets = np.tile(np.arange(residues, dtype=np.int64) * grain, len(kinds))
    all_kinds = np.repeat(np.arange(len(kinds)), residues)
    priced = request_cost(params, cycle, all_offsets, kinds[all_kinds, 0], kinds[all_kinds, 1].astype(np.bool_))
    return np.asarray(priced[kind.reshape(-1) * residues + (offset % length) // grain], dtype=np.float64)
