"""Neighbours that lie whole on one server, and never move, are one region: a request across their border is one
access."""

from __future__ import annotations

from dataclasses import replace

from ....plan import FilePlan, Plan, RegionPlan
from ...toolkit.build import MORE, joined_reason


def merge_neighbours(plan: Plan) -> Plan:
    """The plan with fewer regions and every byte where it was; the last region, which repeats, stays as it is."""
    moved = {(move.file, move.start) for migration in plan.migrations for move in migration.moves}
    files = []
    for file in plan.files:
        kept: list[RegionPlan] = []
        for number, region in enumerate(file.regions):
            last = kept[-1] if kept else None
            if last is not None and number < len(file.regions) - 1 and _join(file, moved, last, region):
                kept[-1] = _joined(last, region)
            else:
                kept.append(region)
        files.append(replace(file, regions=tuple(kept)))
    return replace(plan, files=tuple(files))


def _join(file: FilePlan, moved: set[tuple[str, int]], left: RegionPlan, right: RegionPlan) -> bool:
    if len(left.stripes) != 1 or len(right.stripes) != 1 or left.stripes[0][0] != right.stripes[0][0]:
        return False
    # A stripe that is narrower than its region comes again and again: still one server's bytes in their order.
    return (file.path, left.start) not in moved and (file.path, right.start) not in moved


def _joined(left: RegionPlan, right: RegionPlan) -> RegionPlan:
    length = left.len + right.len
    name = left.stripes[0][0]
    same = left.reason if left.reason.endswith(MORE) else joined_reason([left.reason, right.reason])
    return RegionPlan(
        left.start, length, ((name, length),), left.cost_s + right.cost_s, left.cost_def_s + right.cost_def_s, same
    )
