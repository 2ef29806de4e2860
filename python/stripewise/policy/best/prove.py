"""What is proven of a problem: the larger of the bounds that the prices at hand give.

Prices come from the solver and from the linear programme over classes of servers; `limits.py` evaluates each exactly
over all ways to serve a request. The regions are those cut by heat alone: where regions are also cut for balance,
through requests, these pay startups that another layout need not pay.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...cluster import Cluster
from ...units import round_up
from ..toolkit.assignment import Solution
from ..toolkit.regions import RegionTable
from .limits import Asked, Prices, dual_bound
from .problem import Ground, Posed
from .relaxed import Relaxed


def proven_s(
    posed: Posed,
    natural: Ground,
    windows: Sequence[Asked],
    solution: Solution | None,
    relaxed: Sequence[Relaxed | None],
) -> float:
    """Seconds that no layout undercuts; `natural` are the same regions without cuts for balance, `windows` what is
    asked of them."""
    valid = np.array([round_up(int(each)) for each in natural.whole.valid_bytes], dtype=np.int64)
    found = None
    if solution is not None:
        found = [posed.prices(*each) for each in zip(solution.prices, solution.room_prices, strict=True)]
    tried: list[list[Prices]] = []
    for number, one in enumerate(relaxed):
        prices = [] if found is None else [found[number]]
        tried.append(prices if one is None else [posed.prices(one.resource, one.space)])
    free = dual_bound(windows, natural.cluster, valid, natural.capacity, natural.processes, tried)
    cut_more = int(posed.ground.whole.count.sum()) > int(natural.whole.count.sum())
    if solution is None or found is None or len(windows) == 1 or solution.gap <= 0 or cut_more or natural.periods:
        # A search that came to its end proves more than duality does, but of the solver's choices only; heads
        # may lie in more ways than it is given.
        return free
    # The solver's choices are all there is as long as the requests' own time has no price.
    slowest = sum(
        each.alone / natural.processes * _slowest_s(table, natural.cluster)
        for each, table in zip(found, natural.windows, strict=True)
        if table is not None
    )
    return max(free, solution.bound_s - slowest)


def _slowest_s(table: RegionTable, cluster: Cluster) -> float:
    """Seconds of all requests of a window one after the other, each on the server that is slowest for it."""
    total = 0.0
    for write in (False, True):
        chosen = table.write == write
        if chosen.any():
            sizes, inverse = np.unique(table.size[chosen], return_inverse=True)
            count = np.bincount(inverse, weights=table.count[chosen].astype(np.float64))
            slowest = np.zeros(len(sizes))
            for t in cluster.active:
                figures = (t.startup_write_s, t.per_byte_write_s) if write else (t.startup_read_s, t.per_byte_read_s)
                slowest = np.maximum(slowest, figures[0] + figures[1] * sizes)
            total += float((count * slowest).sum())
    return total
