"""Stripewise: learns how a program touches its files and lays the files out to match.

The public package: a cluster (`cluster`), a trace (`workload`), a policy that prices layouts with `model`, the plan it
returns (`plan`) and the store that a plan is applied to (`store`). Nothing here needs the native module until a store,
a plan or a raw trace is touched.
"""

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
