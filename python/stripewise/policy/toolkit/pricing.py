"""Prices of regions under placements: cost of a region = sum over its requests (H2DP, Algorithm 1, line 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...cluster import Cluster
from ...layout import Stripes
from ...model import Bound, CostParameters, OpFigures
from ...model.general import Float
from ...model.keyed import keyed_bound, keyed_costs
from .regions import RegionTable


def region_costs(table: RegionTable, params: CostParameters, cluster: Cluster, placed: Sequence[Stripes]) -> Float:
    """Seconds of every region when region g lies on `placed[g]`; regions not touched cost 0."""
    ssd = {target.name: target.is_ssd for target in cluster.targets}
    groups: dict[tuple[tuple[bool, int], ...], list[int]] = {}
    for stripes, members in _by_stripes(table, placed).items():
        kind = tuple((ssd[name], width) for name, width in stripes)
        groups.setdefault(kind, []).extend(members)
    costs = np.zeros(table.regions, dtype=np.float64)
    for kind, members in groups.items():
        regions = np.array(members, dtype=np.int64)
        costs[regions] = keyed_costs(params, kind, table.keys.of(regions))
    return costs


def _by_stripes(table: RegionTable, placed: Sequence[Stripes]) -> dict[Stripes, list[int]]:
    """The touched regions by the stripes they lie on."""
    # A tuple's hash is computed anew each time; one that many regions share is hashed once.
    shared: dict[int, list[int]] = {}
    for region in np.flatnonzero(table.request_bytes).tolist():
        shared.setdefault(id(placed[region]), []).append(region)
    groups: dict[Stripes, list[int]] = {}
    for members in shared.values():
        groups.setdefault(placed[members[0]], []).extend(members)
    return groups


@dataclass
class Prices:
    """Seconds per region here and under DEF (placement.md), and the bounds on the makespan of both; windows add up."""

    cost: Float
    cost_def: Float
    bound_s: float = 0.0
    bound_def_s: float = 0.0

    @classmethod
    def none(cls, regions: int) -> Prices:
        """Prices before any window."""
        return cls(np.zeros(regions), np.zeros(regions))

    def add(
        self,
        table: RegionTable,
        params: CostParameters,
        cluster: Cluster,
        placed: Sequence[Stripes],
        baseline: Sequence[Stripes],
    ) -> Float:
        """Adds one window's requests on `placed`, with `baseline` (DEF's placement) beside; returns their costs."""
        cost_def, bound_def_s = baseline_prices(table, params, cluster, baseline)
        cost, bound_s = cost_def, bound_def_s
        if placed is not baseline:
            cost = region_costs(table, params, cluster, placed)
            bound_s = plan_bound(table, cluster, placed).makespan_s(params.p)
        self.cost = self.cost + cost
        self.cost_def = self.cost_def + cost_def
        # Windows follow each other, so their makespans add up.
        self.bound_s += bound_s
        self.bound_def_s += bound_def_s
        return cost


def baseline_prices(
    table: RegionTable, params: CostParameters, cluster: Cluster, baseline: Sequence[Stripes]
) -> tuple[Float, float]:
    """Seconds of every region on `baseline`, and the bound; priced once however many policies are held against it."""

    def price() -> tuple[Float, float, Sequence[Stripes]]:
        costs = region_costs(table, params, cluster, baseline)
        # The placement is kept with its prices: its id stands for it.
        return costs, plan_bound(table, cluster, baseline).makespan_s(params.p), baseline

    costs, bound_s, _ = table.memoized(("prices", id(baseline), params, cluster.digest()), price)
    return costs, bound_s


def plan_bound(table: RegionTable, cluster: Cluster, placed: Sequence[Stripes]) -> Bound:
    """The demands of all requests on every target and on the network (cost-models section 7).

    Each target has its own figures.
    """
    figures = {}
    for t in cluster.targets:
        read = OpFigures(t.startup_read_s, t.per_byte_read_s)
        figures[t.name] = (read, OpFigures(t.startup_write_s, t.per_byte_write_s))
    bound = Bound(dict.fromkeys(figures, 0.0))
    # A cycle that begins with another server is the same cycle with other offsets.
    turned: dict[Stripes, list[tuple[int, int]]] = {}
    for stripes, members in _by_stripes(table, placed).items():
        low = stripes.index(min(stripes))
        shift = sum(width for _, width in stripes[low:]) if low else 0
        turned.setdefault(stripes[low:] + stripes[:low], []).extend((region, shift) for region in members)
    for stripes, shifted in turned.items():
        servers = [(name, *figures[name]) for name, _ in stripes]
        members, shifts = np.array(shifted, dtype=np.int64).T
        keys = table.keys.of(members)
        if shifts.any():
            keys = replace(keys, offset=keys.offset + np.repeat(shifts, np.diff(keys.first)))
        bound.add(keyed_bound(servers, [width for _, width in stripes], keys, cluster.network))
    for t in cluster.targets:
        # Accesses that a target serves at once share its work.
        bound.demand_s[t.name] /= t.channels
    return bound
