"""Placement policies: each takes a workload and a cluster and returns a plan. One file per policy."""

from . import default, h2dp, padp, psa, slal
from .base import POLICIES, PlanOptions, Policy, policy_named, refuse_foreign

__all__ = [
    "POLICIES",
    "PlanOptions",
    "Policy",
    "default",
    "h2dp",
    "padp",
    "policy_named",
    "psa",
    "refuse_foreign",
    "slal",
]
