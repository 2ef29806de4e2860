"""Simulated runs: a workload on a cluster under plans, in the discrete-event engine of crates/sim.

Everything that comes out is simulated and called so.
"""

from .run import Load, Outcome, Settings, load_description, load_trace, simulate_plan
from .scenario import scenario

__all__ = ["Load", "Outcome", "Settings", "load_description", "load_trace", "scenario", "simulate_plan"]
