"""Varied-size striping: the cheapest stripe pair (h, s) for every region (H2DP, Algorithm 1).

The grid runs h from 0 in steps up to r/(M+N) and s from h + step up to r/N, r being the largest request of the region;
where it is empty, the one candidate is (0, r/N rounded up to a step). Among equally cheap pairs the last, widest one
counts: it cuts a request into the fewest pieces. Cost is O(grid * distinct keys): requests are grouped, and regions
with the same multiset of keys share one search (`cheapest_pairs`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...model import CostParameters
from ...model.general import Float, Int
from ...model.keyed import cheapest_pairs
from ...units import round_up
from .regions import RegionTable

#: Beyond so many steps of s the step is coarsened: a request of 1 GiB would else have 10^10 pairs.
STEPS_MAX = 512


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
    """The cheapest pair of every touched region; searched once however many policies ask."""
    return table.memoized(("pairs", params, M, N, step_bytes), lambda: _search(table, params, M, N, step_bytes))


def _search(table: RegionTable, params: CostParameters, M: int, N: int, step_bytes: int) -> Pairs:
    result = Pairs(
        np.zeros(table.regions, dtype=np.int64),
        np.zeros(table.regions, dtype=np.int64),
        np.full(table.regions, np.inf),
    )
    if N == 0:
        return result
    # Requests of different sizes often have the same grid.
    grids: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for request_bytes in np.unique(table.request_bytes[table.request_bytes > 0]).tolist():
        grids.setdefault(tuple(grid(request_bytes, M, N, step_bytes)), []).append(request_bytes)
    for pairs, sizes in grids.items():
        regions = np.flatnonzero(np.isin(table.request_bytes, sizes))
        chosen, cost = cheapest_pairs(params, M, N, pairs, table.keys.of(regions))
        each = np.array(pairs, dtype=np.int64)[chosen]
        result.h[regions], result.s[regions], result.cost_s[regions] = each[:, 0], each[:, 1], cost
    return result
