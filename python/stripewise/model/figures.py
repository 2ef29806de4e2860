"""The figures that the formulas take: processes, network, and one startup and transfer figure per class.

The papers have one figure per class of servers; ours is the mean over the targets of the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..cluster import Cluster, Target


@dataclass(frozen=True)
class OpFigures:
    """Startup (seconds per access) and transfer (seconds per byte) of one operation: alpha and beta of H2DP."""

    startup_s: float
    per_byte_s: float


@dataclass(frozen=True)
class DeviceFigures:
    """A class of servers: reads and writes apart (the seed has them apart on SSDs only)."""

    read: OpFigures
    write: OpFigures


@dataclass(frozen=True)
class CostParameters:
    """p client processes, c of them on one node, e seconds per connection, t network seconds per byte (Table 1)."""

    p: int
    c: int
    e: float
    t: float
    hdd: DeviceFigures
    ssd: DeviceFigures


_FREE = DeviceFigures(OpFigures(0.0, 0.0), OpFigures(0.0, 0.0))


def class_figures(targets: Sequence[Target]) -> DeviceFigures:
    """The mean figures over `targets`; zero for an empty class, which no formula then touches."""
    if not targets:
        return _FREE
    return DeviceFigures(
        OpFigures(fmean(t.startup_read_s for t in targets), fmean(t.per_byte_read_s for t in targets)),
        OpFigures(fmean(t.startup_write_s for t in targets), fmean(t.per_byte_write_s for t in targets)),
    )


def parameters(cluster: Cluster, processes: int) -> CostParameters:
    """The model's parameters for a job of `processes` client processes on `cluster`."""
    p = max(1, processes)
    network = cluster.network
    return CostParameters(
        p=p,
        c=min(network.processes_per_node, p),
        e=network.establish_s,
        t=network.per_byte_s,
        hdd=class_figures(cluster.hservers),
        ssd=class_figures(cluster.sservers),
    )
