"""The lower bound that is proven for every layout, whatever subsets of servers and widths it uses.

For prices lambda >= 0 of the resources (sum 1 in every window) and pi >= 0 of the servers' space, no layout can be
quicker than the sum over regions of the least that the region can cost at these prices, less what the space is worth:
weak duality of the problem that `best` solves. The least is taken over all ways to serve a request:

- With lambda on servers alone, one server is always among the cheapest: a request's pieces pay startups that whole
  requests do not, and shares of bytes and of space are linear. Moves between windows only add.
- With a price mu on the time of requests alone (few processes in flight), a request of r bytes served within T costs
  at least mu*T + the cheapest filling of r bytes into servers that can serve (T - a_i)/b_i bytes each, where a startup
  is paid in proportion; least over T, in steps small enough and taken from their cheaper end. Stripes are whole
  granules, so each granule of a small request is served whole by one of the servers that can within T.

Space is priced with the requests: a layout gives a server the share of a region's space that it has of its requests'
bytes. That is exact for regions on one server, and for requests that come equally often everywhere in a region, which
regions are cut for (`cuts.py`); a layout that happens to suit this one trace's chance could be quicker.

Where requests of different sizes begin at the same places (`heads.py`), bytes at the start of a period are asked for
more often than those at its end, and space is priced by the place: only the periods of a region are taken to be asked
for equally often. What a period can cost at least is found over all ways to lay it out (`nested.py`); with a price mu,
the filling of a request's last interval, and the cheapest place for each of the others, may prove more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...cluster import Cluster
from ...model.general import Bool, Float, Int
from ...units import GRANULE_BYTES
from ..toolkit.regions import RegionTable
from .heads import keep_to
from .nested import least_of_blocks, levels_of

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
    """Of one window: lambda of every server and of the requests' time alone; pi of every server, seconds per byte.

    In the order of the cluster's active targets. What a byte and a piece cost on the way to a server is added to its
    own figures by `link` and `connect` (seconds per byte, seconds per piece, lambda included).
    """

    server: Float
    alone: float
    space: Float
    link: Float
    connect: Float


@dataclass(frozen=True)
class Asked:
    """The requests of one window by region, size, operation and parts; sizes rounded down a little.

    `period` is the period of every region whose requests begin at the same places (0: they do not), and `keeps` says
    which requests do; the few others of such a region are taken to need no space. `parts`, of shape (requests, 3), is
    what granules a request is cut into: bytes of the first, how many whole ones follow, bytes of the last, each at
    least this; 0 where a request may be cut anywhere.
    """

    region: Int
    size: Int
    write: Bool
    count: Float
    keeps: Bool
    regions: int
    period: Int
    parts: Int


def asked(table: RegionTable | None, regions: int, period: Int | None = None) -> Asked:
    """The requests of a window; none where it has no table. Without `period` sizes have no common places."""
    period = np.zeros(regions, dtype=np.int64) if period is None else period
    if table is None:
        none = np.zeros(0, dtype=np.int64)
        nowhere = np.zeros((0, 3), np.int64)
        return Asked(none, none, none.astype(bool), np.zeros(0), none.astype(bool), regions, period, nowhere)
    rows = np.repeat(np.arange(regions), np.diff(table.first))
    size = table.size
    sizes, kind = np.unique(size, return_inverse=True)
    if len(sizes) > SIZES_MAX:
        level = np.floor(np.log(size) / np.log(SIZE_RATIO))
        size = np.maximum(1, np.minimum(size, np.floor(SIZE_RATIO**level).astype(np.int64)))
        sizes, kind = np.unique(size, return_inverse=True)
    told = size <= GRANULES_TOLD * GRANULE_BYTES
    place = np.where(told, 1 + table.offset % GRANULE_BYTES // PLACE_STEP_BYTES, 0)
    keeps = keep_to(table, period[rows])
    radix = (len(sizes), 2, 2, 1 + GRANULE_BYTES // PLACE_STEP_BYTES)
    # One number per kind of request sorts many times faster than columns do.
    key = (((rows * radix[0] + kind) * radix[1] + table.write) * radix[2] + keeps) * radix[3] + place
    each, inverse = np.unique(key, return_inverse=True)
    weights = table.count.astype(np.float64)
    count: Float = np.bincount(inverse, weights=weights, minlength=len(each)).astype(np.float64)
    parts = np.full((len(each), 3), np.iinfo(np.int64).max)
    for column, part in enumerate(_granules(table.offset, size)):
        np.minimum.at(parts[:, column], inverse, part)
    of, at = np.divmod(each, radix[3])
    parts[at == 0] = 0
    of, keeping = np.divmod(of, radix[2])
    of, write = np.divmod(of, radix[1])
    of, kind = np.divmod(of, radix[0])
    return Asked(of, sizes[kind], write.astype(bool), count, keeping.astype(bool), regions, period, parts)


def _granules(offset: Int, size: Int) -> tuple[Int, Int, Int]:
    """Of every request the bytes in its first granule, the whole granules behind it, and the bytes in its last one."""
    first = np.minimum(size, GRANULE_BYTES - offset % GRANULE_BYTES)
    whole, last = np.divmod(size - first, GRANULE_BYTES)
    return first, whole, last


def least(requests: Asked, cluster: Cluster, valid_bytes: Int, processes: int, prices: Prices) -> Float:
    """Per region the least that its requests and its space can cost at `prices` in one window, seconds."""
    moved = np.bincount(requests.region, weights=requests.count * requests.size, minlength=requests.regions)
    result = np.where(moved > 0, 0.0, valid_bytes * float(prices.space.min()))
    plain, nested = ~requests.keeps, requests.period > 0
    # Every byte of a request takes so many bytes of room; where room has no price that is no matter.
    worth = np.divide(valid_bytes, moved, out=np.zeros(len(moved)), where=moved > 0)
    worth = np.where(nested, 0.0, worth) * bool(prices.space.any())
    for write in (False, True):
        chosen = plain & (requests.write == write)
        if chosen.any():
            of, size = requests.region[chosen], requests.size[chosen]
            servers = _Servers.of(cluster, prices, write)
            each = _least_of_all(size, size, requests.parts[chosen], worth[of], servers, processes)
            result += np.bincount(of, weights=each * requests.count[chosen], minlength=requests.regions)
    keeping = np.bincount(requests.region[requests.keeps], minlength=requests.regions) > 0
    for period in np.unique(requests.period[nested]).tolist():
        regions = np.flatnonzero((requests.period == period) & keeping)
        if len(regions):
            result[regions] += _least_nested(requests, regions, period, cluster, valid_bytes, processes, prices)
    return result


def _least_nested(
    requests: Asked, regions: Int, period: int, cluster: Cluster, valid_bytes: Int, processes: int, prices: Prices
) -> Float:
    """The least of those requests of `regions` that begin at multiples of `period` and end before the next."""
    number = np.full(requests.regions, -1)
    number[regions] = np.arange(len(regions))
    rows = np.flatnonzero(requests.keeps & (number[requests.region] >= 0))
    of, size = number[requests.region[rows]], requests.size[rows]
    write, count = requests.write[rows], requests.count[rows]
    servers = len(cluster.active)
    levels = levels_of(size, len(regions), servers)
    level = np.searchsorted(levels, size, side="right") - 1
    length = np.diff(levels, prepend=0).astype(np.float64)
    periods = np.floor(valid_bytes[regions] / period)
    started = np.zeros((len(regions), len(levels), servers))
    inside, reach = np.zeros_like(started), np.zeros(started.shape[:2])
    for is_write in (False, True):
        of_kind = write == is_write
        at = (of * len(levels) + level)[of_kind]
        held = np.bincount(at, weights=count[of_kind], minlength=reach.size).reshape(reach.shape)
        reaching: Float = np.cumsum(held[:, ::-1], axis=1)[:, ::-1].astype(np.float64)
        fixed, byte = _costs(is_write, cluster, prices)
        started += reaching[:, :, None] * fixed
        inside += (reaching * length)[:, :, None] * byte
        reach += reaching
    space = (length[None, :] * periods[:, None])[:, :, None] * prices.space
    beyond = (valid_bytes[regions] - periods * levels[-1]) * float(prices.space.min())
    result = least_of_blocks(started, inside, space)
    if prices.alone <= 0:
        return np.asarray(result + beyond)
    worth = np.divide(periods[:, None], reach, out=np.zeros_like(reach), where=reach > 0)
    alone, filled = np.zeros(len(regions)), np.zeros(len(regions))
    for is_write in (False, True):
        kind = np.flatnonzero(write == is_write)
        if not len(kind):
            continue
        alike = _Servers.of(cluster, prices, is_write)
        each = _alone(alike, size[kind].astype(np.float64)) * prices.alone / processes
        alone += np.bincount(of[kind], weights=each * count[kind], minlength=len(regions))
        # The last interval of every request within T, the others wherever they are cheapest.
        _, byte = _costs(is_write, cluster, prices)
        cheapest = ((byte + worth[:, :, None] * prices.space).min(axis=2)) * length
        below = np.cumsum(cheapest, axis=1) - cheapest
        anywhere = np.zeros((len(kind), 3))
        last = _least_of_all(size[kind], length[level[kind]], anywhere, worth[of[kind], level[kind]], alike, processes)
        each = below[of[kind], level[kind]] + last
        filled += np.bincount(of[kind], weights=each * count[kind], minlength=len(regions))
    result += alone
    return np.asarray((np.maximum(result, filled) if prices.server.any() else result) + beyond)


def _costs(write: bool, cluster: Cluster, prices: Prices) -> tuple[Float, Float]:
    """What a piece, and what a byte costs on every server, without its space and the request's own time."""
    targets = cluster.active
    startup = np.array([t.startup_write_s if write else t.startup_read_s for t in targets])
    per_byte = np.array([t.per_byte_write_s if write else t.per_byte_read_s for t in targets])
    return prices.server * startup + prices.connect, prices.server * per_byte + prices.link


@dataclass(frozen=True)
class _Servers:
    """Servers by kinds that have the same figures and prices, for one operation; `many` there are of each.

    A piece takes `startup` and `per_byte` alone (s, s/byte; with the network's), costs `fixed` and per byte `byte`, and
    per byte of room `space`. No request takes less than `before_s`, and `link_s` per byte, alone; its time costs
    `alone` times the processes.
    """

    many: Int
    startup: Float
    per_byte: Float
    fixed: Float
    byte: Float
    space: Float
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
        each, many = np.unique(
            np.column_stack([startup, per_byte, fixed, byte, prices.space]), axis=0, return_counts=True
        )
        before_s = net.establish_s + float(startup.min())
        return cls(
            many, each[:, 0] + net.establish_s, each[:, 1] + net.per_byte_s, each[:, 2], each[:, 3], each[:, 4],
            before_s, net.per_byte_s, prices.alone,
        )  # fmt: skip


def _least_of_all(
    size: Int, priced: Int | Float, parts: Int | Float, worth: Float, servers: _Servers, processes: int
) -> Float:
    """As `_least_of`, what is alike once and so many at a time as memory allows."""
    key: Float = np.column_stack([size, priced, worth, parts]).astype(np.float64)
    alike, inverse = np.unique(key, axis=0, return_inverse=True)
    at_once = max(1, CHUNK // len(servers.many))
    each = np.empty(len(alike))
    for low in range(0, len(alike), at_once):
        part = alike[low : low + at_once]
        each[low : low + at_once] = _least_of(part[:, 0], part[:, 1], part[:, 3:], part[:, 2], servers, processes)
    return np.asarray(each[inverse.ravel()])


def _least_of(size: Float, priced: Float, parts: Float, worth: Float, servers: _Servers, processes: int) -> Float:
    """The least cost of requests of `size` bytes of which `priced` bytes count, each taking `worth` bytes of space."""
    startup, per_byte = servers.startup, servers.per_byte
    byte = servers.byte + worth[:, None] * servers.space
    cheapest = np.asarray((servers.fixed + byte * priced[:, None]).min(axis=1))
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
        best = np.minimum(best, mu * at + _filled(priced, parts, upper, servers, byte))
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


def _filled(size: Float, parts: Float, within: Float, servers: _Servers, byte: Float) -> Float:
    """The cheapest filling of `size` bytes into servers that serve what they can in `within` seconds; inf where
    none."""
    room = np.minimum(size[:, None], (within[:, None] - servers.startup) / np.maximum(servers.per_byte, 1e-18))
    room = _in_granules(np.maximum(room, 0.0), size, parts)
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = np.where(room > 0, byte + servers.fixed / room, np.inf)
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
    found = [Prices(none, 1.0, none, none, none)]
    busy = np.zeros(len(targets))
    for write, figures in ((False, "read"), (True, "write")):
        count = requests.count[requests.write == write]
        moved = float((count * requests.size[requests.write == write]).sum())
        startup = np.array([getattr(target, f"startup_{figures}_s") for target in targets])
        per_byte = np.array([getattr(target, f"per_byte_{figures}_s") for target in targets])
        busy += float(count.sum()) * startup + moved * per_byte
    # Servers that take no time at all leave nothing to prove.
    if (busy > 1e-100).all():
        found.append(Prices(1 / busy / float((1 / busy).sum()), 0.0, none, none, none))
    return found


def dual_bound(
    windows: Sequence[Asked],
    cluster: Cluster,
    valid_bytes: Int,
    capacity: Float,
    processes: int,
    prices: Sequence[Sequence[Prices]],
) -> float:
    """Seconds that no layout of these regions undercuts, all windows together; moves are taken to cost nothing.

    `prices` are those that were found for every window; where plain ones prove more, they count (on clusters of up to
    `PLAIN_SERVERS`).
    """
    total = 0.0
    room = np.where(np.isfinite(capacity), capacity, 0.0)
    for number, requests in enumerate(windows):
        plain = not prices[number] or len(cluster.active) <= PLAIN_SERVERS
        tried = [*prices[number], *(plain_prices(requests, cluster) if plain else [])]
        values = [
            float(least(requests, cluster, valid_bytes, processes, each).sum()) - float((each.space * room).sum())
            for each in tried
        ]
        total += max(0.0, *values)
    return total
