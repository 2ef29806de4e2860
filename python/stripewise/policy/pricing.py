"""Prices of regions under placements: cost of a region = sum over its requests (seed 000, Algorithm 1, line 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..cluster import Cluster
from ..layout import Stripes
from ..model import Bound, CostParameters, Cycle, OpFigures, request_cost, service_bound
from ..model.general import Float
from .regions import RegionTable


def region_costs(table: RegionTable, params: CostParameters, cluster: Cluster, placed: Sequence[Stripes]) -> Float:
    """Seconds of every region when region g lies on `placed[g]`; regions not touched cost 0."""
    ssd = {target.name: target.is_ssd for target in cluster.targets}
    groups: dict[tuple[tuple[bool, int], ...], list[int]] = {}
    for region in np.flatnonzero(table.request_bytes).tolist():
        key = tuple((ssd[name], width) for name, width in placed[region])
        groups.setdefault(key, []).append(region)
    costs = np.zeros(table.regions, dtype=np.float64)
    for key, members in groups.items():
        regions = np.array(members, dtype=np.int64)
        rows, owner = table.rows_of(regions)
        each = request_cost(params, Cycle.of(list(key)), table.offset[rows], table.size[rows], table.write[rows])
        costs[regions] = np.bincount(owner, weights=each * table.count[rows], minlength=len(regions))
    return costs


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
        cost = region_costs(table, params, cluster, placed)
        self.cost = self.cost + cost
        self.cost_def = self.cost_def + region_costs(table, params, cluster, baseline)
        bound = plan_bound(table, cluster, placed)
        bound_def = bound if placed is baseline else plan_bound(table, cluster, baseline)
        # Windows follow each other, so their makespans add up.
        self.bound_s += bound.makespan_s(params.p)
        self.bound_def_s += bound_def.makespan_s(params.p)
        return cost


def plan_bound(table: RegionTable, cluster: Cluster, placed: Sequence[Stripes]) -> Bound:
    """The service demand of every target for all requests (cost-models section 7), each target with its own figures."""
    figures = {}
    for t in cluster.targets:
        read = OpFigures(t.startup_read_s, t.per_byte_read_s)
        figures[t.name] = (t.is_ssd, read, OpFigures(t.startup_write_s, t.per_byte_write_s))
    groups: dict[Stripes, list[int]] = {}
    for region in np.flatnonzero(table.request_bytes).tolist():
        groups.setdefault(placed[region], []).append(region)
    bound = Bound(dict.fromkeys(figures, 0.0))
    for stripes, members in groups.items():
        rows, _ = table.rows_of(np.array(members, dtype=np.int64))
        servers = [(name, *figures[name][1:]) for name, _ in stripes]
        cycle = Cycle.of([(figures[name][0], width) for name, width in stripes])
        bound.add(
            service_bound(servers, cycle, table.offset[rows], table.size[rows], table.write[rows], table.count[rows])
        )
    return bound
