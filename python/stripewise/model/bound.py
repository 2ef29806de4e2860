"""The bound that no schedule beats: the work of the busiest server, or all requests over the concurrency.

L_i = K_i*a_i + S_i*b_i is the service demand of server i (its load in the sense of seed 001, eq. 5); with T_j the time
of request j alone, makespan >= max(max_i L_i, sum_j T_j / p): operational analysis' bottleneck and concurrency bounds
(cost-models section 7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .figures import OpFigures
from .general import Bool, Cycle, Float, Int, bytes_on_servers


@dataclass
class Bound:
    """Service demand in seconds per target name, and the sum over requests of their time alone."""

    demand_s: dict[str, float]
    alone_s: float = 0.0

    def makespan_s(self, processes: int) -> float:
        """The lower bound on the time of the whole set with `processes` in flight."""
        return max([*self.demand_s.values(), self.alone_s / max(1, processes)], default=0.0)

    def add(self, other: Bound) -> None:
        """Adds another set of requests served by the same targets."""
        for name, seconds in other.demand_s.items():
            self.demand_s[name] = self.demand_s.get(name, 0.0) + seconds
        self.alone_s += other.alone_s


def service_bound(
    servers: list[tuple[str, OpFigures, OpFigures]],
    cycle: Cycle,
    offset: Int,
    size: Int,
    write: Bool,
    count: Int,
) -> Bound:
    """The bound for `count` repetitions of each request on one cycle.

    `servers` are name, read figures and write figures in the order of the cycle. A request's pieces on one server are
    contiguous there: one access. No network terms: emulated and local targets have none.
    """
    alone: Float = np.zeros(len(offset), dtype=np.float64)
    bound = Bound({})
    for (name, read, written), share in zip(servers, bytes_on_servers(cycle, offset, size), strict=True):
        startup = np.where(write, written.startup_s, read.startup_s)
        per_byte = np.where(write, written.per_byte_s, read.per_byte_s)
        seconds = np.where(share > 0, startup + share * per_byte, 0.0)
        alone = np.maximum(alone, seconds)
        bound.demand_s[name] = bound.demand_s.get(name, 0.0) + float((seconds * count).sum())
    bound.alone_s = float((alone * count).sum())
    return bound
