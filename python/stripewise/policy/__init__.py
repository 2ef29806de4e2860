"""Placement policies: each takes a workload and a cluster and returns a plan. One file per policy.

What is named here is what a policy of your own may import (docs/writing-a-policy.md); the rest may change.
"""

from ..cluster import Cluster, Target
from ..layout import Stripes, rotate, stripes_over
from ..model import CostParameters, parameters
from ..plan import Plan
from ..workload.requests import Workload
from . import best, default
from .base import POLICIES, PlanOptions, Policy, refuse_foreign, register
from .default import static_plan
from .named import policies_named, policy_named
from .published import h2dp, padp, psa, slal
from .toolkit.build import build_plan, plan_by, region_name
from .toolkit.pricing import Prices, region_costs
from .toolkit.regions import RegionTable, build_regions
from .toolkit.space import Space

__all__ = [
    "POLICIES",
    "Cluster",
    "CostParameters",
    "Plan",
    "PlanOptions",
    "Policy",
    "Prices",
    "RegionTable",
    "Space",
    "Stripes",
    "Target",
    "Workload",
    "best",
    "build_plan",
    "build_regions",
    "default",
    "h2dp",
    "padp",
    "parameters",
    "plan_by",
    "policies_named",
    "policy_named",
    "psa",
    "refuse_foreign",
    "region_costs",
    "region_name",
    "register",
    "rotate",
    "slal",
    "static_plan",
    "stripes_over",
]
