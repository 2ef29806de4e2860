"""Shingled write disks: what feeds a simulated one, what it is, and what a run of it says."""

from .statistics import export, statistics
from .workload import LOOK_ALIKES, BlockWorkload, made_workload, trace_workload

__all__ = ["LOOK_ALIKES", "BlockWorkload", "export", "made_workload", "statistics", "trace_workload"]
