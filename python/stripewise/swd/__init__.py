"""Shingled write disks: what feeds a simulated one, what it is, and what a run of it says."""

from .disk import Disk, read_disk
from .simulate import Fill, Scheme, Setup, map_disk, parse_fill, parse_schemes, simulate_disk
from .statistics import export, statistics
from .workload import LOOK_ALIKES, BlockWorkload, made_workload, trace_workload

__all__ = [
    "LOOK_ALIKES",
    "BlockWorkload",
    "Disk",
    "Fill",
    "Scheme",
    "Setup",
    "export",
    "made_workload",
    "map_disk",
    "parse_fill",
    "parse_schemes",
    "read_disk",
    "simulate_disk",
    "statistics",
    "trace_workload",
]
