"""The judge: whether a layout fits, and how long a run takes on it in the simulator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stripewise import native
from stripewise.layout import Stripes
from stripewise.plan import Expected, FilePlan, Plan, RegionPlan
from stripewise.simulate.scenario import scenario
from stripewise.workload import Workload

from .instances import Instance


@dataclass(frozen=True)
class Piece:
    """The bytes [start, start + length) of a file, round robin over stripes."""

    start: int
    length: int
    stripes: Stripes


#: The pieces of every file, in order and without gaps.
Layout = Sequence[Sequence[Piece]]


def as_plan(layout: Layout, workload: Workload) -> Plan:
    """The layout as a plan, which the simulator takes."""
    files = tuple(
        FilePlan(
            file.path,
            None,
            file.size_bytes,
            tuple(RegionPlan(each.start, each.length, each.stripes) for each in pieces),
        )
        for file, pieces in zip(workload.files, layout, strict=True)
    )
    return Plan("portfolio", {}, "", (), workload.processes, (), files, {}, Expected(0.0, 0.0))


def fits(instance: Instance, plan: Plan) -> bool:
    """Whether every target may hold what the plan puts on it, slices in whole pages."""
    held = plan.bytes_per_target()
    return all(
        not target.capacity_bytes or held.get(target.name, 0) <= target.usable_bytes for target in instance.targets
    )


def plan_s(instance: Instance, plan: Plan, workload: Workload) -> float:
    """Simulated seconds of the run under the plan, every process with one request at a time."""
    return float(run(instance, plan, workload)["seconds"])


def run(instance: Instance, plan: Plan, workload: Workload) -> dict[str, object]:
    """The simulator's whole report of the run."""
    files = [file for file in workload.files if len(file.requests)]
    made = scenario(plan, instance.cluster, [file.path for file in files])
    tables = [np.ascontiguousarray(file.requests).tobytes() for file in files]
    report: dict[str, object] = native.call("simulate_requests", json.dumps(made), tables, 1 << 40)
    return report
