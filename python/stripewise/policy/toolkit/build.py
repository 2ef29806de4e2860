"""From a placement per region to the plan that a user holds: costs beside DEF's, bytes per target, room for growth.

The regions of the plan are those of window 0; what later windows move comes beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...cluster import Cluster
from ...layout import STRIPES_MAX, Region, Stripes, target_bytes
from ...plan import Expected, FilePlan, Plan, RegionPlan, Window
from ...plan.migrations import Migration
from ...workload.requests import Workload
from ..base import PlanOptions
from .pricing import Prices
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
    prices: Prices,
    windows: Sequence[Window],
    migrations: Sequence[Migration] = (),
    spans: Sequence[tuple[int, int]] | None = None,
) -> Plan:
    """The plan that puts the regions on `placed` and makes `migrations`; `prices` are those of all windows.

    `spans` are start and length in bytes of every region where they are not all `table.region_bytes` long.
    """
    cost, cost_def = prices.cost, prices.cost_def
    files = []
    held = {target.name: 0 for target in cluster.active}
    for index, file in enumerate(workload.files):
        members = np.flatnonzero(table.file == index)
        if not len(members):
            continue
        regions = [
            RegionPlan(
                start=spans[g][0] if spans else int(table.number[g]) * table.region_bytes,
                len=spans[g][1] if spans else table.region_bytes,
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
    return Plan(
        policy=policy,
        options=options.as_json(),
        cluster_digest=cluster.digest(),
        command=workload.command,
        processes=workload.processes,
        windows=tuple(windows),
        files=tuple(files),
        target_bytes=held,
        expected=Expected(
            cost_s=float(cost.sum()),
            cost_def_s=float(cost_def.sum()),
            bound_s=prices.bound_s,
            bound_def_s=prices.bound_def_s,
        ),
        migrations=tuple(migrations),
    )


def _growth(last: RegionPlan, cluster: Cluster, request_bytes: int, options: PlanOptions) -> RegionPlan:
    """The repeating region after the last planned one: it holds nothing yet.

    Growth goes to HServers, whose space is not what a plan spends; to all targets where there are no HServers.
    """
    free = Space(cluster).free
    servers = cluster.hservers or cluster.active
    roomy = max(servers, key=lambda target: free[target.name])
    many = [target for target in servers if free[target.name] >= options.region_bytes] or [roomy]
    many = many[:STRIPES_MAX]
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
