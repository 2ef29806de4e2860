"""From a placement per region to the plan that a user holds: costs beside DEF's, bytes per target, room for growth.

The regions of the plan are those of window 0; what later windows move comes beside them. Whoever takes a plan from a
policy takes it from `plan_by`, which joins regions that are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...cluster import Cluster
from ...layout import STRIPES_MAX, Region, Stripes, runs_of, target_bytes
from ...plan import Expected, FilePlan, Plan, RegionPlan, Window
from ...plan.migrations import Migration
from ...workload.requests import Workload
from ..base import PlanOptions, Policy
from .pricing import Prices
from .regions import RegionTable
from .space import Space, stripe_over

#: Reasons of regions that are joined are as long as this together, and at most one longer.
REASON_MAX = 500
MORE = " | and more neighbours like these"


def plan_by(policy: Policy, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
    """What a policy decides, regions that one could stand for joined (`layout.runs_of`).

    So stripes that a policy deals out region by region are written, moved and shown as stripes. Raises as
    `Policy.plan` does.
    """
    return join_runs(policy.plan(workload, cluster, options))


def join_runs(plan: Plan) -> Plan:
    """The plan with as few regions as say where every byte lies; those that move later, or have a comment, stay."""
    moved = {(move.file, move.start) for migration in plan.migrations for move in migration.moves}
    joined = [tuple(_joined(file, moved)) for file in plan.files]
    if all(len(regions) == len(file.regions) for file, regions in zip(plan.files, joined, strict=True)):
        return plan
    files = (replace(file, regions=regions) for file, regions in zip(plan.files, joined, strict=True))
    return replace(plan, files=tuple(files))


def slices(plan: Plan) -> int:
    """Pairs of target and width that a plan names as it is written."""
    return sum(len(region.stripes) for file in join_runs(plan).files for region in file.regions)


def _joined(file: FilePlan, moved: set[tuple[str, int]]) -> Iterator[RegionPlan]:
    fixed = frozenset(each.start for each in file.regions if each.comment or (file.path, each.start) in moved)
    at = 0
    for run in runs_of(file.layout, fixed):
        yield from file.regions[at : run.first]
        of = file.regions[run.first : run.behind]
        yield RegionPlan(
            start=of[0].start,
            len=sum(each.len for each in of),
            stripes=run.stripes,
            cost_s=sum(each.cost_s for each in of),
            cost_def_s=sum(each.cost_def_s for each in of),
            reason=joined_reason([each.reason for each in of]),
        )
        at = run.behind
    yield from file.regions[at:]


def joined_reason(reasons: Sequence[str]) -> str:
    """The reason of a region that others were joined to: theirs, each once, while there is room for them."""
    said = ""
    for reason in dict.fromkeys(filter(None, reasons)):
        if len(said) >= REASON_MAX:
            return said.removesuffix(MORE) + MORE
        said = f"{said} | {reason}" if said else reason
    return said


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
