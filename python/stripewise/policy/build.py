"""From a placement per region to the plan that a user holds: costs beside DEF's, bytes per target, room for growth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..cluster import Cluster
from ..layout import Region, Stripes, target_bytes
from ..model import parameters
from ..plan import Expected, FilePlan, Plan, RegionPlan, Window
from ..workload.requests import Workload
from .base import PlanOptions
from .pricing import plan_bound, region_costs
from .regions import RegionTable
from .space import Space, stripe_over


def region_name(workload: Workload, table: RegionTable, region: int) -> str:
    """The region as errors name it."""
    return f"{workload.files[int(table.file[region])].path}: region {int(table.number[region])}"


def build_plan(
    policy: str,
    table: RegionTable,
    workload: Workload,
    cluster: Cluster,
    options: PlanOptions,
    placed: Sequence[Stripes],
    reasons: Sequence[str],
    baseline: Sequence[Stripes],
) -> Plan:
    """The plan for `placed`, with `baseline` (DEF's placement) priced beside it."""
    params = parameters(cluster, workload.processes)
    cost = region_costs(table, params, cluster, placed)
    cost_def = region_costs(table, params, cluster, baseline)
    files = []
    held = {target.name: 0 for target in cluster.targets}
    for index, file in enumerate(workload.files):
        members = np.flatnonzero(table.file == index)
        if not len(members):
            continue
        regions = [
            RegionPlan(
                start=int(table.number[g]) * table.region_bytes,
                len=table.region_bytes,
                stripes=placed[g],
                cost_s=float(cost[g]),
                cost_def_s=float(cost_def[g]),
                reason=reasons[g],
            )
            for g in members.tolist()
        ]
        size = regions[-1].start + int(table.valid_bytes[members[-1]])
        for name, count in target_bytes((Region(r.start, r.len, r.stripes) for r in regions), size).items():
            held[name] += count
        regions.append(_growth(regions[-1], cluster, int(table.request_bytes[members].max()), options))
        files.append(FilePlan(file.path, file.id, size, tuple(regions)))
    bound = plan_bound(table, cluster, placed)
    bound_def = bound if placed is baseline else plan_bound(table, cluster, baseline)
    starts = [int(f.requests["start_ns"].min()) for f in workload.files if len(f.requests)]
    ends = [int(f.requests["end_ns"].max()) for f in workload.files if len(f.requests)]
    return Plan(
        policy=policy,
        options=options.as_json(),
        cluster_digest=cluster.digest(),
        command=workload.command,
        processes=workload.processes,
        windows=(Window(min(starts), max(ends)),),
        files=tuple(files),
        target_bytes=held,
        expected=Expected(
            cost_s=float(cost.sum()),
            cost_def_s=float(cost_def.sum()),
            bound_s=bound.makespan_s(workload.processes),
            bound_def_s=bound_def.makespan_s(workload.processes),
        ),
    )


def _growth(last: RegionPlan, cluster: Cluster, request_bytes: int, options: PlanOptions) -> RegionPlan:
    """The repeating region after the last planned one: it holds nothing yet.

    Growth goes to HServers, whose space is not what a plan spends; to all targets where there are no HServers.
    """
    free = Space(cluster).free
    servers = cluster.hservers or cluster.targets
    roomy = max(servers, key=lambda target: free[target.name])
    many = [target for target in servers if free[target.name] >= options.region_bytes] or [roomy]
    width = stripe_over(len(many), max(1, request_bytes))
    cycle = width * len(many)
    length = -(-options.region_bytes // cycle) * cycle
    return RegionPlan(
        start=last.start + last.len,
        len=length,
        stripes=tuple((target.name, width) for target in many),
        cost_s=0.0,
        cost_def_s=0.0,
        reason="growth past the size in the trace; repeats",
    )
