"""Plans: what a policy decided (`document`), moves between windows, the check of a plan, its region mapping table."""

from .document import (
    VERSION,
    Expected,
    FilePlan,
    Plan,
    RegionPlan,
    Window,
    WindowFigures,
    dump_plan,
    plan_from_json,
    read_plan,
    write_plan,
)
from .replicas import PlannedReplicas

__all__ = [
    "VERSION",
    "Expected",
    "FilePlan",
    "Plan",
    "PlannedReplicas",
    "RegionPlan",
    "Window",
    "WindowFigures",
    "dump_plan",
    "plan_from_json",
    "read_plan",
    "write_plan",
]
