"""What a plan from a file is compared with where no policy is: the layouts that its files had, and DEF's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from ..cluster import Cluster
from ..errors import PlanError
from ..layout import Layout
from ..plan import FilePlan, Plan, RegionPlan
from ..policy import POLICIES, PlanOptions, plan_by
from ..policy.best.trial import Trials
from ..policy.default import EVERYWHERE, Default
from ..store import Store
from ..store.placed import with_room
from ..workload import Workload

#: The name of the files' own layouts in the run.
AS_TRACED = "as traced"


def ground_of(store: Store, workload: Workload, options: PlanOptions) -> tuple[Cluster, PlanOptions]:
    """What a workload on files of a store is planned on: its cluster, with the room that these files have there, and
    the options beside its other files.
    """
    sizes = {file.path: file.size_bytes for file in workload.files}
    cluster, reserved = with_room(store, store.config.cluster, sizes)
    return cluster, replace(options, reserved_bytes=reserved)


def in_room(plan: Plan) -> str:
    """That regions of DEF's plan lie otherwise than DEF has them, for want of room; empty of other plans."""
    regions = [region for file in plan.files for region in file.regions if region.start < file.size]
    elsewhere = sum(region.reason != EVERYWHERE for region in regions)
    if plan.policy != Default.name or not elsewhere:
        return ""
    others = ", the others over all targets" if elsewhere < len(regions) else ""
    return (
        f"{Default.name} has no room throughout: {elsewhere:,} of {len(regions):,} region(s) go where there is "
        f"some{others}"
    )


def files_of(workload: Workload, paths: Collection[str]) -> Workload:
    """The workload on these files alone."""
    return replace(workload, files=tuple(file for file in workload.files if file.path in paths))


def baselines(
    workload: Workload, cluster: Cluster, options: PlanOptions, layouts: Mapping[str, Layout]
) -> Iterator[tuple[str, Plan]]:
    """DEF's plan of the workload, and where it is known for all files and the cluster has the targets, that of their
    layouts in the run.
    """
    plain = replace(options, time_limit_s=None, smooth=None, window_ns=None, sigma=None, servers=None, min_gain=None)
    default = plan_by(POLICIES[Default.name], workload, cluster, plain)
    yield Default.name, default
    known = {target.name for target in cluster.active}
    own = {file.path: layouts.get(file.path) for file in workload.files}
    files = []
    for file in default.files:
        layout = own.get(file.path)
        if layout is None or not {name for region in layout.regions for name, _ in region.stripes} <= known:
            return
        regions = tuple(RegionPlan(each.start, each.len, each.stripes) for each in layout.regions)
        files.append(FilePlan(file.path, None, file.size, regions))
    yield AS_TRACED, replace(default, policy=AS_TRACED, files=tuple(files))


def against_present(
    plan: Plan, workload: Workload, cluster: Cluster, options: PlanOptions, layouts: Mapping[str, Layout]
) -> str:
    """What a plan gains over how its files lie, in simulated I/O where that is told of the plan; empty where they lie
    as DEF has them, which it is compared with anyway, or as is not known.
    """
    found = dict(baselines(workload, cluster, options, layouts))
    if (lies := found.get(AS_TRACED)) is None or _cycles(lies) == _cycles(found[Default.name]):
        return ""
    planned_s = plan.expected.simulated_io_s
    if not planned_s:
        return "the files had another layout than def; 'stripewise simulate --plan PLAN' compares with it"
    try:
        now_s = Trials([workload], cluster).in_flight_s(lies)
    except PlanError:
        return ""
    return f"against how the files lie now: {now_s / planned_s:.2f} times as fast in simulated I/O"


def _cycles(plan: Plan) -> dict[str, set[frozenset[tuple[str, int]]]]:
    """The stripes of every file, whichever a cycle begins with."""
    return {file.path: {frozenset(region.stripes) for region in file.regions} for file in plan.files}
