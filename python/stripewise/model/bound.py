"""The bound that no schedule beats: the work of the busiest server, or all requests over the concurrency.

L_i = K_i*a_i + S_i*b_i is the service demand of server i (its load in the sense of SLAL, eq. 5); with T_j the time
of request j alone, makespan >= max(max_i L_i, sum_j T_j / p): operational analysis' bottleneck and concurrency bounds
(cost-models section 7). With a network, its links are servers too: bytes and connections of every server, and those of
the client nodes, which at best share them evenly.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..cluster import Network
from .figures import OpFigures
from .general import Bool, Cycle, Float, Int, bytes_on_servers


@dataclass
class Bound:
    """Service demand in seconds per target name, and the sum over requests of their time alone.

    `link_s` and `connect_s` are the seconds that a target's link carries bytes and sets up connections; `nodes_link_s`
    and `nodes_connect_s` those of all client nodes together, each with `processes_per_node` processes; 0 without
    a network. A request is cut in `pieces` at most that are served side by side; `alone_s` is the sum over all pieces.
    """

    demand_s: dict[str, float]
    alone_s: float = 0.0
    link_s: dict[str, float] = field(default_factory=dict)
    connect_s: dict[str, float] = field(default_factory=dict)
    nodes_link_s: float = 0.0
    nodes_connect_s: float = 0.0
    processes_per_node: int = 1
    pieces: int = 1

    def makespan_s(self, processes: int) -> float:
        """The lower bound on the time of the whole set with `processes` in flight."""
        return max(self.limits_s(processes).values())

    def limits_s(self, processes: int) -> dict[str, float]:
        """The bound by what sets it: `servers`, `concurrency`, and the links and connections of servers and nodes."""
        p = max(1, processes)
        nodes = -(-p // max(1, self.processes_per_node))
        return {
            "servers": max(self.demand_s.values(), default=0.0),
            # A request takes as long as one of its pieces, and no less than their mean.
            "concurrency": self.alone_s / self.pieces / p,
            "server links": max(self.link_s.values(), default=0.0),
            "server connections": max(self.connect_s.values(), default=0.0),
            "node links": self.nodes_link_s / nodes,
            "node connections": self.nodes_connect_s / nodes,
        }

    def add(self, other: Bound) -> None:
        """Adds another set of requests served by the same targets."""
        for mine, theirs in (
            (self.demand_s, other.demand_s),
            (self.link_s, other.link_s),
            (self.connect_s, other.connect_s),
        ):
            for name, seconds in theirs.items():
                mine[name] = mine.get(name, 0.0) + seconds
        self.alone_s += other.alone_s
        self.nodes_link_s += other.nodes_link_s
        self.nodes_connect_s += other.nodes_connect_s
        self.processes_per_node = max(self.processes_per_node, other.processes_per_node)
        self.pieces = max(self.pieces, other.pieces)


def service_bound(
    servers: list[tuple[str, OpFigures, OpFigures]],
    cycle: Cycle,
    offset: Int,
    size: Int,
    write: Bool,
    count: Int,
    network: Network | None = None,
) -> Bound:
    """The bound for `count` repetitions of each request on one cycle.

    `servers` are name, read figures and write figures in the order of the cycle. A request's pieces on one server are
    contiguous there: one access. Without a `network` there are no network terms: emulated and local targets have none.

    A piece is connected, served and sent one after the other; pieces overlap, but a client's connections and its link
    are one each. So k pieces of r bytes alone take at least the slowest piece's way, k connections and the quickest
    service, or one connection, the quickest service and r bytes on the link, whichever is more.
    """
    net = network or Network()
    slowest: Float = np.zeros(len(offset), dtype=np.float64)
    quickest: Float = np.full(len(offset), np.inf)
    touched: Int = np.zeros(len(offset), dtype=np.int64)
    bound = Bound({}, processes_per_node=net.processes_per_node)
    for (name, read, written), share in zip(servers, bytes_on_servers(cycle, offset, size), strict=True):
        startup = np.where(write, written.startup_s, read.startup_s)
        per_byte = np.where(write, written.per_byte_s, read.per_byte_s)
        served = share > 0
        seconds = np.where(served, startup + share * per_byte, 0.0)
        bound.demand_s[name] = bound.demand_s.get(name, 0.0) + float((seconds * count).sum())
        if network is not None:
            bound.link_s[name] = bound.link_s.get(name, 0.0) + float((share * count).sum()) * net.per_byte_s
            bound.connect_s[name] = bound.connect_s.get(name, 0.0) + float(count[served].sum()) * net.establish_s
        touched = touched + served
        way = seconds + np.where(served, net.establish_s + share * net.per_byte_s, 0.0)
        slowest = np.maximum(slowest, way)
        quickest = np.where(served, np.minimum(quickest, seconds), quickest)
    alone = slowest
    if network is not None:
        quickest = np.where(touched > 0, quickest, 0.0)
        one = np.where(touched > 0, net.establish_s, 0.0)
        alone = np.maximum(alone, np.maximum(touched * net.establish_s, one + size * net.per_byte_s) + quickest)
        bound.nodes_link_s = float((size * count).sum()) * net.per_byte_s
        bound.nodes_connect_s = float((touched * count).sum()) * net.establish_s
    bound.alone_s = float((alone * count).sum())
    return bound
