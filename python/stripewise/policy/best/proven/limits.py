"""The bound that requests of their own take, and servers where room costs nothing: what `proof.py` does not see.

For prices lambda >= 0 of the resources (sum 1 in every window) no layout can be quicker than the sum over requests of
the least that each can cost at these prices: weak duality of the problem that `best` solves, whose room is free here.
The least is taken over all ways to serve a request:

- With lambda on servers alone, one server is always among the cheapest: a request's pieces pay startups that whole
  requests do not, and shares of bytes are linear. Moves between windows only add.
- With a price mu on the time of requests alone (few processes in flight), a request of r bytes served within T costs
  at least mu*T + the cheapest filling of r bytes into servers that can serve (T - a_i)/b_i bytes each, where a startup
  is paid in proportion; least over T, in steps small enough and taken from their cheaper end. Stripes are whole
  granules, so each granule of a small request is served whole by one of the servers that can within T. A server with
  c channels counts c times: where a region's border cuts a request, one server serves both pieces at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....cluster import Cluster
from ....model.general import Bool, Float, Int
from ....units import GRANULE_BYTES
from ...toolkit.regions import RegionTable

#: Steps of T.
STEPS = 160
#: Requests of sizes within this ratio are taken at the smallest of them.
SIZE_RATIO = 2 ** (1 / 16)
SIZES_MAX = 256
#: Own time that costs less than this part of the work is left out.
NEGLIGIBLE = 1e-5
#: Clusters of more servers are not tried with plain prices where there are others.
PLAIN_SERVERS = 64
#: Elements of the largest table at a time.
CHUNK = 4_000_000
#: Steps times requests times servers up to which T is searched.
SEARCHED_MAX = 100_000_000
#: Up to so many granules a request's cut into them is told from its place, in steps of so many bytes.
GRANULES_TOLD = 16
PLACE_STEP_BYTES = 32


@dataclass(frozen=True)
class Prices:
    """Of one window: lambda of every server and of the requests' time alone.

    In the order of the cluster's active targets. What a byte and a piece cost on the way to a server is added to its
    own figures by `link` and `connect` (seconds per byte, seconds per piece, lambda included).
    """

    server: Float
    alone: float
    link: Float
    connect: Float


@dataclass(frozen=True)
class Asked:
    """The requests of one window by size, operation and parts; sizes rounded down a little.

    `parts`, of shape (requests, 3), is what granules a request is cut into: bytes of the first, how many whole ones
    follow, bytes of the last, each at least this; 0 where a request may be cut anywhere.
    """

    size: Int
    write: Bool
    count: Float
    parts: Int


def asked(table: RegionTable | None) -> Asked:
    """The requests of a window; none where it has no table."""
    if table is None:
        none = np.zeros(0, dtype=np.int64)
        return Asked(none, none.astype(bool), np.zeros(0), np.zeros((0, 3), np.int64))
    size = table.size
    sizes, kind = np.unique(size, return_inverse=True)
    if len(sizes) > SIZES_MAX:
        level = np.floor(np.log(size) / np.log(SIZE_RATIO))
        size = np.maximum(1, np.minimum(size, np.floor(SIZE_RATIO**level).astype(np.int64)))
        sizes, kind = np.unique(size, return_inverse=True)
    told = size <= GRANULES_TOLD * GRANULE_BYTES
    place = np.where(told, 1 + table.offset % GRANULE_BYTES // PLACE_STEP_BYTES, 0)
    radix = (2, 1 + GRANULE_BYTES // PLACE_STEP_BYTES)
    # One number per kind of request sorts many times faster than columns do.
    key = (kind * radix[0] + table.write) * radix[1] + place
    each, inverse = np.unique(key, return_inverse=True)
    weights = table.count.astype(np.float64)
    count: Float = np.bincount(inverse, weights=weights, minlength=len(each)).astype(np.float64)
    parts = np.full((len(each), 3), np.iinfo(np.int64).max)
    for column, part in enumerate(_granules(table.offset, size)):
        np.minimum.at(parts[:, column], inverse, part)
    of, at = np.divmod(each, radix[1])
    parts[at == 0] = 0
    kind, write = np.divmod(of, radix[0])
    return Asked(sizes[kind], write.astype(bool), count, parts)


def _granules(offset: Int, size: Int) -> tuple[Int, Int, Int]:
    """Of every request the bytes in its first granule, the whole granules behind it, and the bytes in its last one."""
    first = np.minimum(size, GRANULE_BYTES - offset % GRANULE_BYTES)
    whole, last = np.divmod(size - first, GRANULE_BYTES)
    return first, whole, last


def least_s(requests: Asked, cluster: Cluster, processes: int, prices: Prices) -> float:
    """The least that all requests of a window can cost at `prices`, seconds."""
    total = 0.0
    for write in (False, True):
        chosen = requests.write == write
        if chosen.any():
            servers = _Servers.of(cluster, prices, write)
            each = _least_of_all(requests.size[chosen], requests.parts[chosen], servers, processes)
            total += float(each @ requests.count[chosen])
    return total


@dataclass(frozen=True)
class _Servers:
    """Channels by kinds that have the same figures and prices, for one operation; `many` there are of each.

    A piece takes `startup` and `per_byte` alone (s, s/byte; with the network's), costs `fixed` and per byte `byte`.
    No request takes less than `before_s`, and `link_s` per byte, alone; its time costs
    `alone` times the processes.
    """

    many: Int
    startup: Float
    per_byte: Float
    fixed: Float
    byte: Float
    before_s: float
    link_s: float
    alone: float

    @classmethod
    def of(cls, cluster: Cluster, prices: Prices, write: bool) -> _Servers:
        targets, net = cluster.active, cluster.network
        startup = np.array([t.startup_write_s if write else t.startup_read_s for t in targets])
        per_byte = np.array([t.per_byte_write_s if write else t.per_byte_read_s for t in targets])
        fixed = prices.server * startup + prices.connect
        byte = prices.server * per_byte + prices.link
        channels = np.array([t.channels for t in targets])
        each, inverse = np.unique(np.column_stack([startup, per_byte, fixed, byte]), axis=0, return_inverse=True)
        many = np.bincount(inverse.ravel(), weights=channels, minlength=len(each)).astype(np.int64)
        before_s = net.establish_s + float(startup.min())
        return cls(
            many, each[:, 0] + net.establish_s, each[:, 1] + net.per_byte_s, each[:, 2], each[:, 3],
            before_s, net.per_byte_s, prices.alone,
        )  # fmt: skip


def _least_of_all(size: Int, parts: Int, servers: _Servers, processes: int) -> Float:
    """As `_least_of`, what is alike once and so many at a time as memory allows."""
    key: Float = np.column_stack([size, parts]).astype(np.float64)
    alike, inverse = np.unique(key, axis=0, return_inverse=True)
    at_once = max(1, CHUNK // len(servers.many))
    each = np.empty(len(alike))
    for low in range(0, len(alike), at_once):
        part = alike[low : low + at_once]
        each[low : low + at_once] = _least_of(part[:, 0], part[:, 1:], servers, processes)
    return np.asarray(each[inverse.ravel()])


def _least_of(size: Float, parts: Float, servers: _Servers, processes: int) -> Float:
    """The least cost of requests of `size` bytes."""
    startup, per_byte = servers.startup, servers.per_byte
    cheapest = np.asarray((servers.fixed + servers.byte * size[:, None]).min(axis=1))
    if servers.alone <= 0:
        return cheapest
    mu = servers.alone / processes
    quickest = _alone(servers, size)
    if (mu * quickest <= NEGLIGIBLE * cheapest).all():
        return cheapest
    if len(size) * len(servers.many) * STEPS > SEARCHED_MAX:
        # Too much to search: no request is quicker than on all servers together, nor cheaper than on one.
        return np.asarray(cheapest + mu * quickest)
    slowest = (startup + per_byte * size[:, None]).max(axis=1)
    best = np.full(len(size), np.inf)
    step = (np.maximum(slowest, quickest) / quickest) ** (1 / STEPS)
    at = quickest.copy()
    for number in range(STEPS):
        upper = at * step if number < STEPS - 1 else np.maximum(slowest, at * step) * (1 + 1e-9)
        best = np.minimum(best, mu * at + _filled(size, parts, upper, servers))
        at = upper
    # Slower than the slowest server alone nothing needs to be.
    return best


def _alone(servers: _Servers, size: Float) -> Float:
    """Seconds that a request of each size takes alone, at least."""
    return np.asarray(np.maximum(_quickest(servers, size), servers.before_s + servers.link_s * size))


def _quickest(servers: _Servers, size: Float) -> Float:
    """The least time in which all servers together serve each size."""
    sizes, inverse = np.unique(size, return_inverse=True)
    rate = servers.many / np.maximum(servers.per_byte, 1e-18)
    order = np.argsort(servers.startup, kind="stable")
    speed, work = np.cumsum(rate[order]), np.cumsum((servers.startup * rate)[order])
    times = (sizes[:, None] + work) / speed
    return np.asarray(np.maximum(times.min(axis=1), servers.startup.min())[inverse])


def _filled(size: Float, parts: Float, within: Float, servers: _Servers) -> Float:
    """The cheapest filling of `size` bytes into servers that serve what they can in `within` seconds; inf where
    none."""
    room = np.minimum(size[:, None], (within[:, None] - servers.startup) / np.maximum(servers.per_byte, 1e-18))
    room = _in_granules(np.maximum(room, 0.0), size, parts)
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = np.where(room > 0, servers.byte + servers.fixed / room, np.inf)
    by_part = _by_part(parts, room, unit)
    room = room * servers.many
    order = np.argsort(unit, axis=1)
    room, unit = np.take_along_axis(room, order, 1), np.take_along_axis(unit, order, 1)
    before = np.cumsum(room, axis=1) - room
    taken = np.clip(size[:, None] - before, 0.0, room)
    cost = np.where(taken > 0, taken * np.where(np.isfinite(unit), unit, 0.0), 0.0).sum(axis=1)
    return np.where(room.sum(axis=1) >= size * (1 - 1e-12), np.maximum(cost, by_part), np.inf)


def _by_part(parts: Float, room: Float, unit: Float) -> Float:
    """The least cost of a request's granules, each on the cheapest server that can serve it; inf where none can."""
    cost = np.zeros(len(parts))
    for size, many in (
        (parts[:, 0], 1.0),
        (np.minimum(parts[:, 1], 1.0) * GRANULE_BYTES, parts[:, 1]),
        (parts[:, 2], 1.0),
    ):
        cheapest = np.where(room >= size[:, None] * (1 - 1e-9), unit, np.inf).min(axis=1)
        cost += np.multiply(size * many, cheapest, out=np.zeros(len(parts)), where=size > 0)
    return cost


def _in_granules(room: Float, size: Float, parts: Float) -> Float:
    """The most bytes up to `room`, of shape (requests, servers), that some of a request's granules have together."""
    told = parts[:, 0] > 0
    if not told.any():
        return room
    of, limit = parts[told], room[told] * (1 + 1e-9)
    most = np.zeros_like(limit)
    for first in (0.0, 1.0):
        for last in (0.0, 1.0):
            ends = (first * of[:, 0] + last * of[:, 2])[:, None]
            whole = np.minimum(of[:, 1, None], np.floor((limit - ends) / GRANULE_BYTES))
            most = np.maximum(most, np.where(whole >= 0, ends + whole * GRANULE_BYTES, 0.0))
    # Parts are rounded down, so what they lack may lie with any of them.
    lacking = size[told] - of[:, 0] - of[:, 1] * GRANULE_BYTES - of[:, 2]
    result = room.copy()
    result[told] = np.minimum(most + lacking[:, None], room[told])
    return result


def plain_prices(requests: Asked, cluster: Cluster) -> list[Prices]:
    """Prices that need no solver: all on the requests' time alone, and servers by their speed for these requests."""
    targets = cluster.active
    none = np.zeros(len(targets))
    found = [Prices(none, 1.0, none, none)]
    busy = np.zeros(len(targets))
    for write, figures in ((False, "read"), (True, "write")):
        count = requests.count[requests.write == write]
        moved = float((count * requests.size[requests.write == write]).sum())
        startup = np.array([getattr(target, f"startup_{figures}_s") for target in targets])
        per_byte = np.array([getattr(target, f"per_byte_{figures}_s") for target in targets])
        busy += float(count.sum()) * startup + moved * per_byte
    # Servers that take no time at all leave nothing to prove.
    if (busy > 1e-100).all():
        channels = np.array([target.channels for target in targets])
        found.append(Prices(1 / busy / float((channels / busy).sum()), 0.0, none, none))
    return found


def dual_bound(windows: Sequence[Asked], cluster: Cluster, processes: int, prices: Sequence[Sequence[Prices]]) -> float:
    """Seconds that no layout of these requests undercuts, all windows together; moves are taken to cost nothing.

    `prices` are those that were found for every window; where plain ones prove more, they count (on clusters of up to
    `PLAIN_SERVERS`).
    """
    total = 0.0
    for number, requests in enumerate(windows):
        plain = not prices[number] or len(cluster.active) <= PLAIN_SERVERS
        tried = [*prices[number], *(plain_prices(requests, cluster) if plain else [])]
        total += max(0.0, *(least_s(requests, cluster, processes, each) for each in tried))
    return total
