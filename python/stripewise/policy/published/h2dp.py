"""H2DP: varied-size striping, selective placement, and dynamic migration from window to window.

VSS finds each region's stripe pair (h, s) on hybrid servers (Algorithm 1, in `toolkit/vss.py`). SDP gives SServer
space to the regions with the largest benefit B = T_HServers - T_hybrid that still fit (section 3.6, eq. 1); every
other region goes on HServers alone with stripe r/M. The first window's placement is RMT[0]; DDM moves regions at the
beginning of every later one (Algorithm 2, in `migration.py`). With one window the placement is the plan.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...cluster import Cluster
from ...layout import Stripes
from ...model import CostParameters, parameters
from ...model.general import Float, Int
from ...plan import Plan, Window, WindowFigures
from ...plan.migrations import Migration, Move
from ...units import format_size
from ...workload.requests import Workload
from ..base import PlanOptions, Policy, register
from ..default import place_default, static_plan
from ..toolkit.build import build_plan
from ..toolkit.hybrid import Ground, Landing, hybrid_stripes, walk
from ..toolkit.pricing import Prices, region_costs
from ..toolkit.regions import RegionTable, WindowTable, region_requests, window_tables
from ..toolkit.vss import search_pairs
from .migration import MigrationPlanner, RegionMove


@register
class H2dp(Policy):
    """VSS and SDP in every window, DDM between them."""

    name = "h2dp"
    windowed = True
    takes = frozenset({"window_ns", "min_gain"})

    def plan(self, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
        whole, windows = window_tables(workload, options.region_bytes, options.window_ns)
        params = parameters(cluster, workload.processes)
        first = windows[0].table or whole
        placed, reasons, benefit = _initial(first, whole, workload, cluster, options, params)
        if len(windows) == 1:
            return static_plan(self.name, whole, workload, cluster, options, placed, reasons)
        baseline, _ = place_default(whole, workload, cluster, options)
        prices = Prices.none(whole.regions)
        planner = MigrationPlanner(cluster, params, options, whole.valid_bytes, placed, benefit)
        static_hybrid = planner.on_hybrid()
        migrations, spans = [], []
        for number, each in enumerate(windows):
            moves: list[RegionMove] = []
            cost = cost_static = np.zeros(whole.regions)
            if each.table is not None:
                if number:
                    moves = planner.move(each.table, region_requests(each.table, whole))
                    cost_static = region_costs(each.table, params, cluster, placed)
                cost = prices.add(each.table, params, cluster, planner.placed, baseline)
                cost_static = cost_static if number else cost
            if number:
                start_ns = each.window.start_ns - windows[0].window.start_ns
                migrations.append(Migration(number, start_ns, tuple(_move(m, workload, whole) for m in moves)))
            spans.append(_with_figures(each, planner, static_hybrid, cost, cost_static))
        return build_plan(self.name, whole, workload, cluster, options, placed, reasons, prices, spans, migrations)


def _initial(
    table: RegionTable,
    whole: RegionTable,
    workload: Workload,
    cluster: Cluster,
    options: PlanOptions,
    params: CostParameters,
) -> tuple[list[Stripes], list[str], Float]:
    """RMT[0]: stripes, reason and benefit of every region by the requests of the first window."""
    ground = Ground(table, workload, cluster, options, region_requests(table, whole))
    pairs = search_pairs(table, params, len(cluster.hservers), len(cluster.sservers), options.step_bytes)
    if cluster.hservers:
        cost_hdd = region_costs(table, params, cluster, ground.on_hservers())
        benefit = np.where(np.isfinite(pairs.cost_s), cost_hdd - pairs.cost_s, 0.0)
    else:
        # Nothing to weigh: the busiest regions are placed first.
        benefit = np.where(np.isfinite(pairs.cost_s), pairs.cost_s, 0.0)
    wanted: list[Stripes] = [
        hybrid_stripes(cluster, int(table.number[g]), int(pairs.h[g]), int(pairs.s[g]))
        if benefit[g] > 0 and pairs.s[g]
        else ()
        for g in range(table.regions)
    ]
    # Descending benefit; a stable sort keeps the file's order among equals, so that a plan is reproducible.
    placed, landings = walk(ground, np.argsort(-benefit, kind="stable").tolist(), wanted)
    reasons = []
    for g, landing in enumerate(landings):
        touched = bool(table.request_bytes[g])
        reason = _reason(touched, float(benefit[g]), landing, int(pairs.h[g]), int(pairs.s[g]))
        if table is not whole and not touched:
            reason = reason.replace("in the trace", "in the first window")
        reasons.append(reason)
    return placed, reasons, benefit


#: Requests of all processes are added, also those that are served at once.
_BENEFIT = "benefit {:.6g} s of its requests' times added"


def _reason(touched: bool, benefit_s: float, landing: Landing, h: int, s: int) -> str:
    """Why the region lies where it lies."""
    if landing is Landing.ELSEWHERE:
        return "where room was left: its first choice is full"
    if landing is Landing.HYBRID:
        return f"critical: {_BENEFIT.format(benefit_s)} with h {format_size(h)}, s {format_size(s)}"
    if landing is Landing.CROWDED_OUT:
        return f"HServers: {_BENEFIT.format(benefit_s)}, but no SServer space is left"
    return "HServers: no benefit from SServers" if touched else "HServers: not touched in the trace"


def _move(move: RegionMove, workload: Workload, table: RegionTable) -> Move:
    """The move as the plan holds it."""
    return Move(
        file=workload.files[int(table.file[move.region])].path,
        start=int(table.number[move.region]) * table.region_bytes,
        len=table.region_bytes,
        stripes=move.new,
        direction=move.direction,
        bytes=int(table.valid_bytes[move.region]),
        gain_s=move.gain_s,
        cost_s=move.cost_s,
        reason=move.reason,
    )


def _with_figures(
    each: WindowTable, planner: MigrationPlanner, static_hybrid: Int, cost: Float, cost_static: Float
) -> Window:
    """The window with what is expected of it, with the moves and without."""
    hybrid = planner.on_hybrid()
    requests = np.zeros(len(hybrid), dtype=np.int64)
    table = each.table
    if table is not None:
        owner = np.repeat(np.arange(table.regions), np.diff(table.first))
        np.add.at(requests, owner, table.count)
    figures = WindowFigures(
        requests=int(requests.sum()),
        hybrid_regions=int(hybrid.sum()),
        hybrid_requests=int(requests[hybrid > 0].sum()),
        hybrid_requests_static=int(requests[static_hybrid > 0].sum()),
        cost_s=float(cost.sum()),
        cost_static_s=float(cost_static.sum()),
    )
    return replace(each.window, figures=figures)
