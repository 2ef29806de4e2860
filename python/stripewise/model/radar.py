"""RADAR's two models of a set of access patterns (RADAR, section II.A.2): a quick one to choose, a fine one to rank.

The coarse model is constant time and makes Song's three layouts one formula in n_p, the servers that a client contacts.
The fine one goes over the graph of client nodes and servers and sees what the coarse one averages: blocks, read-ahead,
imbalance. Neither overlaps network and storage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..units import KIB
from .general import Float, Int
from .terms import Terms

PAGE_BYTES = 4 * KIB
READAHEAD_BYTES = 128 * KIB


@dataclass(frozen=True)
class RadarFigures:
    """n servers, l and b of network and storage in seconds and seconds per byte, the read-ahead r_s (Table I)."""

    n: int
    net_startup_s: float
    net_per_byte_s: float
    storage_startup_s: float
    storage_per_byte_s: float
    readahead_bytes: int = READAHEAD_BYTES


def coarse(figures: RadarFigures, p: int, c: int, total_bytes: float, n_p: ArrayLike) -> Terms:
    """The four costs when each of p clients, c on a node, takes its share of B bytes from n_p servers (eqs. 1-4).

    Elementwise over n_p; r = B/(p*n_p) bytes per client and server.
    """
    n_p = np.asarray(n_p, dtype=np.int64)
    r = total_bytes / (p * n_p)
    on_server = -(-p * n_p // figures.n)
    busiest = np.maximum(c * n_p, on_server)
    return Terms(
        establish_s=busiest * figures.net_startup_s,
        transfer_s=busiest * r * figures.net_per_byte_s,
        startup_s=on_server * figures.storage_startup_s,
        storage_s=on_server * r * figures.storage_per_byte_s,
    )


def best_servers_per_client(figures: RadarFigures, p: int, c: int, total_bytes: float) -> int:
    """The n_p of 1..n with the least coarse cost; the fewest servers among equals. n, p, c and B must be above 0."""
    if min(figures.n, p, c) < 1 or not total_bytes > 0:
        raise ValueError(
            f"no layout for {total_bytes} bytes of {p} clients on {figures.n} servers: all must be above 0"
        )
    return 1 + int(np.argmin(coarse(figures, p, c, total_bytes, np.arange(1, figures.n + 1)).total_s))


@dataclass(frozen=True)
class Blocks:
    """Contiguous blocks of a pattern set as they lie on servers: arrays of one shape, one entry per block.

    `client` and `node` number the process and its node, `offset` and `size` are bytes on the server, sizes above 0. A
    client's blocks on one server are one request.
    """

    client: Int
    node: Int
    server: Int
    offset: Int
    size: Int


@dataclass(frozen=True)
class FineCost:
    """Seconds per server, shape (servers,), and per client node, shape (nodes,); `servers` and `nodes` name them."""

    servers: Int
    establish_s: Float
    startup_s: Float
    storage_s: Float
    nodes: Int
    receipt_s: Float

    @property
    def load_s(self) -> Float:
        """L(server) = T'_e + T'_s + T'_rw."""
        return self.establish_s + self.startup_s + self.storage_s

    @property
    def total_s(self) -> float:
        """The last node's receipt; 0 without blocks."""
        return float(self.receipt_s.max(initial=0.0))


def fine(figures: RadarFigures, blocks: Blocks) -> FineCost:
    """The fine-grained cost of a pattern set (section II.A.2.d, with the decisions of cost-models section 4).

    T'_e = l_net * (incoming requests + most outgoing requests of a node that contacts the server - 1); T'_s = l_sto per
    run of blocks at page granularity, read-ahead joining runs; T'_rw = bytes, skipped ones included, times b_sto;
    T'_t(node) = its most loaded server, then its own bytes over its link.
    """
    servers, server = np.unique(blocks.server, return_inverse=True)
    nodes, node = np.unique(blocks.node, return_inverse=True)
    # One request per client and server; a client has one node.
    requests = np.unique(np.stack([blocks.client, server, node], axis=1), axis=0)
    incoming = np.bincount(requests[:, 1], minlength=len(servers))
    outgoing = np.bincount(requests[:, 2], minlength=len(nodes))
    most_outgoing = np.zeros(len(servers), dtype=np.int64)
    np.maximum.at(most_outgoing, server, outgoing[node])
    runs, skipped = np.zeros(len(servers), dtype=np.int64), np.zeros(len(servers), dtype=np.int64)
    for number in range(len(servers)):
        mine = server == number
        runs[number], skipped[number] = _runs(blocks.offset[mine], blocks.size[mine], figures.readahead_bytes)
    consumed = np.bincount(server, weights=blocks.size, minlength=len(servers)) + skipped
    establish = figures.net_startup_s * (incoming + most_outgoing - 1)
    startup = figures.storage_startup_s * runs
    storage = figures.storage_per_byte_s * consumed
    latest = np.zeros(len(nodes))
    np.maximum.at(latest, node, (establish + startup + storage)[server])
    received = np.bincount(node, weights=blocks.size, minlength=len(nodes)) * figures.net_per_byte_s
    return FineCost(
        servers=servers,
        establish_s=np.asarray(establish, dtype=np.float64),
        startup_s=np.asarray(startup, dtype=np.float64),
        storage_s=np.asarray(storage, dtype=np.float64),
        nodes=nodes,
        receipt_s=latest + received,
    )


def _runs(offset: Int, size: Int, readahead_bytes: int) -> tuple[int, int]:
    """Runs of pages that one startup each pays for, and the bytes skipped inside them, in the order of the server."""
    order = np.argsort(offset, kind="stable")
    start = offset[order]
    # The furthest byte so far, not the last block's: blocks may contain each other.
    end = np.maximum.accumulate(start + size[order])
    gap_pages = start[1:] // PAGE_BYTES - (end[:-1] + PAGE_BYTES - 1) // PAGE_BYTES
    gap_bytes = np.maximum(start[1:] - end[:-1], 0)
    joined = (gap_pages <= 0) | (gap_pages * PAGE_BYTES < readahead_bytes)
    return 1 + int((~joined).sum()), int(gap_bytes[joined].sum())
