"""H2DP (seed 000), static: varied-size striping and selective placement for one window.

VSS finds each region's stripe pair (h, s) on hybrid servers (Algorithm 1, in `vss.py`). SDP gives SServer space to
the regions with the largest benefit B = T_HServers - T_hybrid that still fit (section 3.6, eq. 1); every other region
goes on HServers alone with stripe r/M.
"""

from __future__ import annotations

import numpy as np

from ..cluster import Cluster
from ..layout import Stripes, rotate, stripes_over
from ..model import parameters
from ..plan import Plan
from ..units import STRIPE_FALLBACK_BYTES, format_size
from ..workload.requests import Workload
from .base import PlanOptions, Policy, register
from .build import build_plan, region_name
from .default import place_default
from .pricing import region_costs
from .regions import RegionTable, build_regions
from .space import Space, stripe_over
from .vss import search_pairs


def hybrid_stripes(cluster: Cluster, number: int, h: int, s: int) -> Stripes:
    """HServers with width h, then SServers with width s; the first of each class rotates with the region's number."""
    hdd = stripes_over(rotate(cluster.hservers, number), h) if h else ()
    ssd = stripes_over(rotate(cluster.sservers, number), s) if s else ()
    return hdd + ssd


def hserver_stripes(cluster: Cluster, number: int, request_bytes: int) -> Stripes:
    """HServers only with stripe r/M."""
    if not cluster.hservers:
        return ()
    return stripes_over(rotate(cluster.hservers, number), stripe_over(len(cluster.hservers), request_bytes))


def _file_requests(table: RegionTable) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """r of every region; a region that was not touched takes the largest request of its file."""
    largest = np.zeros(int(table.file.max()) + 1, dtype=np.int64)
    np.maximum.at(largest, table.file, table.request_bytes)
    of_file = np.where(largest > 0, largest, STRIPE_FALLBACK_BYTES)[table.file]
    return np.where(table.request_bytes > 0, table.request_bytes, of_file)


@register
class H2dp(Policy):
    """VSS and SDP."""

    name = "h2dp"
    summary = "critical regions on hybrid servers with a stripe pair of their own, the rest on HServers (seed 000)"

    def plan(self, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
        table = build_regions(workload, options.region_bytes)
        params = parameters(cluster, workload.processes)
        request_bytes = _file_requests(table)
        on_hdd = [hserver_stripes(cluster, int(table.number[g]), int(request_bytes[g])) for g in range(table.regions)]
        pairs = search_pairs(table, params, len(cluster.hservers), len(cluster.sservers), options.step_bytes)
        if cluster.hservers:
            cost_hdd = region_costs(table, params, cluster, on_hdd)
            benefit = np.where(np.isfinite(pairs.cost_s), cost_hdd - pairs.cost_s, 0.0)
        else:
            # Nothing to weigh: the busiest regions are placed first.
            benefit = np.where(np.isfinite(pairs.cost_s), pairs.cost_s, 0.0)
        placed: list[Stripes] = [()] * table.regions
        reasons = [""] * table.regions
        space = Space(cluster, options.reserved_bytes)
        # Descending benefit; a stable sort keeps the file's order among equals, so that a plan is reproducible.
        for g in (int(region) for region in np.argsort(-benefit, kind="stable")):
            number, h, s = int(table.number[g]), int(pairs.h[g]), int(pairs.s[g])
            choices: list[Stripes] = []
            if benefit[g] > 0 and s:
                choices.append(hybrid_stripes(cluster, number, h, s))
            critical = len(choices)
            if on_hdd[g]:
                choices.append(on_hdd[g])
            placed[g], choice = space.place(
                choices,
                number,
                int(request_bytes[g]),
                int(table.valid_bytes[g]),
                region_name(workload, table, g),
            )
            reasons[g] = _reason(bool(table.request_bytes[g]), float(benefit[g]), critical, choice, len(choices), h, s)
        baseline, _ = place_default(table, workload, cluster, options)
        return build_plan(self.name, table, workload, cluster, options, placed, reasons, baseline)


def _reason(touched: bool, benefit_s: float, critical: int, choice: int, choices: int, h: int, s: int) -> str:
    """Why the region lies where it lies."""
    if choice >= choices:
        return "where room was left: its first choice is full"
    if choice < critical:
        return f"critical: benefit {benefit_s:.6g} s with h {format_size(h)}, s {format_size(s)}"
    if critical:
        return f"HServers: benefit {benefit_s:.6g} s, but no SServer space is left"
    return "HServers: no benefit from SServers" if touched else "HServers: not touched in the trace"
