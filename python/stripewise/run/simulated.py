"""Simulated I/O of layouts that `tune` measures: what policies other than best do not tell of their plans.

So all rows of its table have one basis, the runs that best chooses by.
"""

from __future__ import annotations

from dataclasses import replace

from ..cluster import Cluster
from ..errors import PlanError
from ..plan import Plan
from ..policy import POLICIES, PlanOptions, plan_by
from ..policy.best.trial import Trials
from ..policy.default import Default
from ..workload import Workload


def with_simulation(plan: Plan, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
    """The plan, with simulated runs of the workload under it and under DEF expected, where it has none.

    A plan that lacks files of the workload, whose names changed, say, stays as it is.
    """
    if plan.expected.simulated_io_s is not None:
        return plan
    plain = replace(options, time_limit_s=None, smooth=None, window_ns=None, sigma=None, servers=None, min_gain=None)
    try:
        trials = Trials([workload], cluster)
        default = plan if plan.policy == Default.name else plan_by(POLICIES[Default.name], workload, cluster, plain)
        (run,), (run_def,) = trials.run(plan), trials.run(default)
        expected = replace(
            plan.expected,
            simulated_s=run.seconds,
            simulated_def_s=run_def.seconds,
            simulated_io_s=trials.in_flight_s(plan),
            simulated_io_def_s=trials.in_flight_s(default),
        )
    except PlanError:
        return plan
    return replace(plan, expected=expected)
