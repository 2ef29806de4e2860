"""What a pattern takes on the servers as it lies, and as a replica: RADAR's fine model with figures for each server.

The processes of a set act at once (RADAR, section II.A.2.d). A server takes a startup for every run of one process's
blocks on it, in the order of access: `model.radar.fine` joins the blocks of all processes on a server, and so prices
columns that together cover a file like one sequential read, for which RADAR reports its largest gains (figures 9, 11).
Reads go on over gaps below the read-ahead window and pay for the bytes between, writes do not; nor do reads of emulated
targets, which make every access wait for itself, and with it its process: what one process asks of them takes as long
as its requests one after another, on however many servers they lie. Where c processes ask one of them, one request in c
continues its process's last one: others' come between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..cluster import Cluster
from ..layout import Region
from ..model.radar import PAGE_BYTES, READAHEAD_BYTES

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

#: Replica objects have addresses from here on: no run goes on from an object of the original into one of them.
REPLICA_BASE = 1 << 61


@dataclass(frozen=True)
class Servers:
    """Targets that hold files, by place: startup (s) and time per byte (s/B), shape (servers, 2) for read and write."""

    names: tuple[str, ...]
    startup_s: Float
    per_byte_s: Float
    #: Whether accesses wait for themselves, so that reads go on over no gap and processes wait, shape (servers,).
    emulated: Bool
    #: Seconds per connection and per byte of the network, and client processes on a node.
    net_startup_s: float
    net_per_byte_s: float
    processes_per_node: int

    @staticmethod
    def of(cluster: Cluster) -> Servers:
        """Those of a cluster."""
        return Servers(
            tuple(each.name for each in cluster.holding),
            np.array([(each.startup_read_s, each.startup_write_s) for each in cluster.holding]),
            np.array([(each.per_byte_read_s, each.per_byte_write_s) for each in cluster.holding]),
            np.array([each.kind == "emulated" for each in cluster.holding]),
            cluster.network.establish_s,
            cluster.network.per_byte_s,
            cluster.network.processes_per_node,
        )


@dataclass(frozen=True)
class Pieces:
    """Parts of requests as they lie on servers: arrays of one shape, each client's in its order of access.

    `request` numbers the requests, `server` is a place in `Servers.names`, `offset` bytes on the server, `size` bytes
    above 0.
    """

    request: Int
    client: Int
    write: Bool
    server: Int
    offset: Int
    size: Int

    @staticmethod
    def joined(several: Iterable[Pieces]) -> Pieces:
        """One after another; of none, none."""
        found = list(several)
        none = np.zeros(0, np.int64)
        first = np.cumsum([0, *(int(each.request.max(initial=-1)) + 1 for each in found)])
        return Pieces(
            np.concatenate([none, *(each.request + start for each, start in zip(found, first.tolist(), strict=False))]),
            np.concatenate([none, *(each.client for each in found)]),
            np.concatenate([none.astype(bool), *(each.write for each in found)]),
            np.concatenate([none, *(each.server for each in found)]),
            np.concatenate([none, *(each.offset for each in found)]),
            np.concatenate([none, *(each.size for each in found)]),
        )


def seconds(servers: Servers, pieces: Pieces) -> float:
    """Until the last client node has its bytes, when all clients begin at once; 0 without pieces.

    T'_e = l_net * (incoming requests + most outgoing requests of a node that contacts the server - 1), a client's
    pieces on one server being one request; T'_s a startup per run; T'_rw the bytes, skipped ones included; T'_t(node)
    its most loaded server, then its own bytes over its link (cost-models section 4). Ours: nor before its slowest
    process has waited for all of its requests on emulated targets, one after another.
    """
    if not len(pieces.client):
        return 0.0
    count = len(servers.names)
    clients, client = np.unique(pieces.client, return_inverse=True)
    node_of = clients // servers.processes_per_node
    nodes, node_of = np.unique(node_of, return_inverse=True)
    begins, skipped = _runs(client * count + pieces.server, pieces, ~servers.emulated[pieces.server])
    begins = np.maximum(begins, _broken(pieces, servers.emulated, client))
    operation = pieces.write.astype(np.int64)
    cost = begins * servers.startup_s[pieces.server, operation]
    cost += (pieces.size + skipped) * servers.per_byte_s[pieces.server, operation]
    load = np.bincount(pieces.server, weights=cost, minlength=count)
    request = np.unique(client * count + pieces.server)
    asking, asked = node_of[request // count], request % count
    outgoing = np.bincount(asking, minlength=len(nodes))
    most = np.zeros(count, dtype=np.int64)
    np.maximum.at(most, asked, outgoing[asking])
    incoming = np.bincount(asked, minlength=count)
    load += np.where(incoming > 0, servers.net_startup_s * (incoming + most - 1), 0.0)
    latest = np.zeros(len(nodes))
    np.maximum.at(latest, asking, load[asked])
    if servers.emulated.any():
        waited = _waited(pieces, np.where(servers.emulated[pieces.server], cost, 0.0), client, len(clients))
        np.maximum.at(latest, node_of, waited)
    received = np.bincount(node_of[client], weights=pieces.size, minlength=len(nodes)) * servers.net_per_byte_s
    return float((latest + received).max())


def _broken(pieces: Pieces, emulated: Bool, client: Int) -> Float:
    """The part of a startup that the first piece of each request pays on an emulated server which c clients ask, though
    it would continue the one before: 1 - 1/c, for the next access is its own client's once in c times.
    """
    count = len(emulated)
    asking = np.bincount(np.unique(client * count + pieces.server) % count, minlength=count)
    _, first = np.unique(pieces.request * count + pieces.server, return_index=True)
    found = np.zeros(len(client))
    found[first] = np.where(emulated, 1 - 1 / np.maximum(asking, 1), 0.0)[pieces.server[first]]
    return found


def _waited(pieces: Pieces, cost: Float, client: Int, clients: int) -> Float:
    """Seconds that each client waits for its requests one after another; of a request for the server that takes longest
    of those that serve it at one time.
    """
    _, request = np.unique(pieces.request, return_inverse=True)
    count = int(pieces.server.max()) + 1
    parts, part = np.unique(request * count + pieces.server, return_inverse=True)
    slowest = np.zeros(int(request.max()) + 1)
    np.maximum.at(slowest, parts // count, np.bincount(part, weights=cost))
    of = np.zeros(len(slowest), dtype=np.int64)
    of[request] = client
    return np.bincount(of, weights=slowest, minlength=clients).astype(np.float64)


def _runs(stream: Int, pieces: Pieces, reads_on: Bool) -> tuple[Int, Int]:
    """Whether a piece pays a startup, and the bytes skipped before it, by piece; a stream is a client on a server.

    `reads_on` tells of each piece whether its server reads on over a gap.
    """
    order = np.argsort(stream, kind="stable")
    start, write, same = pieces.offset[order], pieces.write[order], stream[order]
    end = start + pieces.size[order]
    gap_pages = start[1:] // PAGE_BYTES - -(-end[:-1] // PAGE_BYTES)
    goes_on = (same[1:] == same[:-1]) & (start[1:] >= start[:-1]) & (write[1:] == write[:-1])
    is_near = (gap_pages <= 0) | (~write[1:] & (gap_pages * PAGE_BYTES < READAHEAD_BYTES))
    goes_on &= (start[1:] <= end[:-1]) | (reads_on[order][1:] & is_near)
    gap_bytes = np.where(goes_on, np.maximum(start[1:] - end[:-1], 0), 0)
    begins, skipped = np.ones(len(order), np.int64), np.zeros(len(order), np.int64)
    begins[order[1:]] = ~goes_on
    skipped[order[1:]] = gap_bytes
    return begins, skipped


class Placed:
    """Regions made ready to say where bytes lie; the last region goes on for ever.

    Slices stand on their target one behind the other, as a file system places them that leaves out holes.
    """

    def __init__(self, regions: Sequence[Region], names: Sequence[str], base: int = 0) -> None:
        place = {name: number for number, name in enumerate(names)}
        self._starts = np.array([region.start for region in regions], dtype=np.int64)
        self._ends = np.append(self._starts[1:], np.iinfo(np.int64).max)
        numbers: dict[tuple[tuple[int, int], ...], int] = {}
        kinds = []
        held = np.full(len(names), base, dtype=np.int64)
        bases = []
        for region in regions:
            cycle = tuple((place[name], width) for name, width in region.stripes)
            kinds.append(numbers.setdefault(cycle, len(numbers)))
            bases.append(held.copy())
            length = np.int64(region.len)
            total = sum(width for _, width in cycle)
            begin = 0
            for server, width in cycle:
                held[server] += _before(length, total, begin, width)
                begin += width
        self._cycles = list(numbers)
        self._kinds = np.array(kinds, dtype=np.int64)
        self._bases = np.array(bases, dtype=np.int64)

    def cut(self, offset: Int, size: Int) -> tuple[Int, Int, Int, Int]:
        """The pieces of requests: row, server, offset on the server, size; by row, in each in the order of regions."""
        first = np.searchsorted(self._starts, offset, side="right") - 1
        last = np.searchsorted(self._starts, offset + size, side="left") - 1
        times = last - first + 1
        row = np.repeat(np.arange(len(offset)), times)
        region = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
        low = np.maximum(offset[row], self._starts[region]) - self._starts[region]
        high = np.minimum(offset[row] + size[row], self._ends[region]) - self._starts[region]
        found: list[tuple[Int, Int, Int, Int, Int]] = []
        for kind, cycle in enumerate(self._cycles):
            chosen = self._kinds[region] == kind
            if chosen.any():
                found += self._dealt(cycle, (row[chosen], region[chosen], low[chosen], high[chosen]))
        none = (np.zeros(0, np.int64),) * 5
        rows, regions, server, at, length = (np.concatenate(column) for column in zip(none, *found, strict=True))
        order = np.lexsort((regions, rows))
        return rows[order], server[order], at[order], length[order]

    def _dealt(
        self, cycle: Sequence[tuple[int, int]], part: tuple[Int, Int, Int, Int]
    ) -> list[tuple[Int, Int, Int, Int, Int]]:
        row, region, low, high = part
        total = sum(width for _, width in cycle)
        begin = 0
        found = []
        for server, width in cycle:
            at = _before(low, total, begin, width)
            count = _before(high, total, begin, width) - at
            kept = count > 0
            place = np.full(int(kept.sum()), server, np.int64)
            found.append((row[kept], region[kept], place, self._bases[region[kept], server] + at[kept], count[kept]))
            begin += width
        return found


def _before(at: Int | np.int64, cycle: int, begin: int, width: int) -> Int:
    """Bytes of a stripe among the first `at` of a region."""
    return np.asarray(at // cycle * width + np.clip(at % cycle - begin, 0, width))


def space_bytes(several: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum by target."""
    found: dict[str, int] = {}
    for each in several:
        for name, count in each.items():
            found[name] = found.get(name, 0) + count
    return found
