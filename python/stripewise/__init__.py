"""Stripewise: learns how a program touches its files and lays the files out to match.

The public package: a cluster (`cluster`), a trace (`workload`), a policy that prices layouts with `model`, the plan it
returns (`plan`) and the store that a plan is applied to (`store`). Nothing here needs the native module until a store,
a plan or a raw trace is touched.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cluster import Cluster, Target, read_cluster
    from .errors import ClusterError, LayoutError, PlanError, StoreError, StripewiseError, WorkloadError
    from .plan import Plan, read_plan

__version__ = "0.1.0"

__all__ = [
    "Cluster",
    "ClusterError",
    "LayoutError",
    "Plan",
    "PlanError",
    "StoreError",
    "StripewiseError",
    "Target",
    "WorkloadError",
    "__version__",
    "read_cluster",
    "read_plan",
]
_MODULES = {
    ".cluster": ("Cluster", "Target", "read_cluster"),
    ".plan": ("Plan", "read_plan"),
    ".errors": ("ClusterError", "LayoutError", "PlanError", "StoreError", "StripewiseError", "WorkloadError"),
}


def __getattr__(name: str) -> Any:
    """A public name, whose module is brought in by its first use: the command needs few of them."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(module, __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
