"""The lower bound that is proven for every layout, whatever subsets of servers and widths it uses.

For prices lambda >= 0 of the resources (sum 1 in every window) and pi >= 0 of the servers' space, no layout can be
quicker than the sum over regions of the least that the region can cost at these prices, less what the space is worth:
weak duality of the problem that `best` solves. The least is taken over all ways to serve a request:

- With lambda on servers alone, one server is always among the cheapest: a request's pieces pay startups that whole
  requests do not, and shares of bytes and of space are linear. Moves between windows only add.
- With a price mu on the time of requests alone (few processes in flight), a request of r bytes served within T costs
  at least mu*T + the cheapest filling of r bytes into servers that can serve (T - a_i)/b_i bytes each, where a startup
  is paid in proportion; least over T, in steps small enough and taken from their cheaper end.

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
from ..regions import RegionTable
from .heads import keep_to
from .nested import least_of_blocks, levels_of

#: Steps of T.
STEPS = 160
#: Requests of sizes within this ratio are taken at the smallest of them.
SIZE_RATIO = 2 ** (1 / 16)
#: Elements of the largest table at a time.
CHUNK = 4_000_000
#: Steps times requests times servers up to which T is searched.
SEARCHED_MAX = 100_000_000


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
    """The requests of one window by region, size and operation; sizes rounded down a little.

    `period` is the period of every region whose requests begin at the same places (0: they do not), and `keeps` says
    which requests do; the few others of such a region are taken to need no space.
    """

    region: Int
    size: Int
    write: Bool
    count: Float
    keeps: Bool
    regions: int
    period: Int


def asked(table: RegionTable | None, regions: int, period: Int | None = None) -> Asked:
    """The requests of a window; none where it has no table. Without `period` sizes have no common places."""
    period = np.zeros(regions, dtype=np.int64) if period is None else period
    if table is None:
        none = np.zeros(0, dtype=np.int64)
        return Asked(none, none, none.astype(bool), np.zeros(0), none.astype(bool), regions, period)
    rows = np.repeat(np.arange(regions), np.diff(table.first))
    size = table.size
    if len(np.unique(size)) > 256:
        level = np.floor(np.log(size) / np.log(SIZE_RATIO))
        size = np.minimum(size, np.floor(SIZE_RATIO**level).astype(np.int64))
        size = np.maximum(size, 1)
    keeps = keep_to(table, period[rows])
    key = np.stack([rows, size, table.write.astype(np.int64), keeps.astype(np.int64)])
    each, inverse = np.unique(key, axis=1, return_inverse=True)
    weights = table.count.astype(np.float64)
    count: Float = np.bincount(inverse.ravel(), weights=weights, minlength=each.shape[1]).astype(np.float64)
    return Asked(each[0], each[1], each[2].astype(bool), count, each[3].astype(bool), regions, period)


def least(requests: Asked, cluster: Cluster, valid_bytes: Int, processes: int, prices: Prices) -> Float:
    """Per region the least that its requests and its space can cost at `prices` in one window, seconds."""
    moved = np.bincount(requests.region, weights=requests.count * requests.size, minlength=requests.regions)
    result = np.where(moved > 0, 0.0, valid_bytes * float(prices.space.min()))
    plain = np.flatnonzero(~requests.keeps)
    nested = requests.period > 0
    rows_at_once = max(1, CHUNK // len(cluster.active))
    for low in range(0, len(plain), rows_at_once):
        rows = plain[low : low + rows_at_once]
        of = requests.region[rows]
        size = requests.size[rows].astype(np.float64)
        worth = np.where(nested[of], 0.0, valid_bytes[of] / moved[of])
        each = _least_of(size, size, worth, requests.write[rows], cluster, processes, prices)
        result += np.bincount(of, weights=each * requests.count[rows], minlength=requests.regions)
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
    mu = prices.alone / processes
    for is_write in (False, True):
        of_kind = write == is_write
        startup, per_byte = _figures(is_write, cluster)
        alone = _quickest(startup, per_byte, size[of_kind].astype(np.float64))
        result += mu * np.bincount(of[of_kind], weights=count[of_kind] * alone, minlength=len(regions))
    if not prices.server.any() or len(rows) * servers * STEPS > SEARCHED_MAX:
        return np.asarray(result + beyond)
    # The last interval of every request within T, the others wherever they are cheapest.
    worth = np.divide(periods[:, None], reach, out=np.zeros_like(reach), where=reach > 0)
    before = np.zeros(len(rows))
    for is_write in (False, True):
        of_kind = write == is_write
        _, byte = _costs(is_write, cluster, prices)
        cheapest = ((byte + worth[:, :, None] * prices.space).min(axis=2)) * length
        below = np.cumsum(cheapest, axis=1) - cheapest
        before[of_kind] = below[of[of_kind], level[of_kind]]
    each = before + _least_of(
        size.astype(np.float64), length[level], worth[of, level], write, cluster, processes, prices
    )
    filled = np.bincount(of, weights=each * count, minlength=len(regions))
    return np.asarray(np.maximum(result, filled) + beyond)


def _figures(write: bool, cluster: Cluster) -> tuple[Float, Float]:
    """Startups in seconds, and seconds per byte, of every server."""
    targets = cluster.active
    startup = np.array([t.startup_write_s if write else t.startup_read_s for t in targets])
    return startup, np.array([t.per_byte_write_s if write else t.per_byte_read_s for t in targets])


def _costs(write: bool, cluster: Cluster, prices: Prices) -> tuple[Float, Float]:
    """What a piece, and what a byte costs on every server, without its space and the request's own time."""
    startup, per_byte = _figures(write, cluster)
    return prices.server * startup + prices.connect, prices.server * per_byte + prices.link


def _least_of(
    size: Float, priced: Float, worth: Float, write: Bool, cluster: Cluster, processes: int, prices: Prices
) -> Float:
    """The least cost of requests of `size` bytes of which `priced` bytes count, each taking `worth` bytes of space."""
    result = np.zeros(len(size))
    for is_write in (False, True):
        of_kind = write == is_write
        if of_kind.any():
            result[of_kind] = _least_of_kind(
                size[of_kind], priced[of_kind], worth[of_kind], is_write, cluster, processes, prices
            )
    return result


def _least_of_kind(
    size: Float, priced: Float, worth: Float, write: bool, cluster: Cluster, processes: int, prices: Prices
) -> Float:
    startup, per_byte = _figures(write, cluster)
    fixed, byte = _costs(write, cluster, prices)
    byte = byte + worth[:, None] * prices.space
    if prices.alone <= 0:
        return np.asarray((fixed + byte * priced[:, None]).min(axis=1))
    mu = prices.alone / processes
    if len(size) * len(startup) * STEPS > SEARCHED_MAX:
        # Too much to search: no request is quicker than on all servers together, nor cheaper than on one.
        return np.asarray((fixed + byte * priced[:, None]).min(axis=1) + mu * _quickest(startup, per_byte, size))
    whole = startup + per_byte * size[:, None]
    quickest, slowest = _quickest(startup, per_byte, size), whole.max(axis=1)
    best = np.full(len(size), np.inf)
    step = (np.maximum(slowest, quickest) / quickest) ** (1 / STEPS)
    at = quickest.copy()
    for number in range(STEPS):
        upper = at * step if number < STEPS - 1 else np.maximum(slowest, at * step) * (1 + 1e-9)
        best = np.minimum(best, mu * at + _filled(priced, upper, startup, per_byte, fixed, byte))
        at = upper
    # Slower than the slowest server alone nothing needs to be.
    return best


def _quickest(startup: Float, per_byte: Float, size: Float) -> Float:
    """The least time in which all servers together serve each size."""
    sizes, inverse = np.unique(size, return_inverse=True)
    rate = 1 / np.maximum(per_byte, 1e-18)
    order = np.argsort(startup, kind="stable")
    speed, work = np.cumsum(rate[order]), np.cumsum((startup * rate)[order])
    times = (sizes[:, None] + work) / speed
    return np.asarray(np.maximum(times.min(axis=1), startup.min())[inverse])


def _filled(size: Float, within: Float, startup: Float, per_byte: Float, fixed: Float, byte: Float) -> Float:
    """The cheapest filling of `size` bytes into servers that serve what they can in `within` seconds; inf where
    none."""
    room = np.minimum(size[:, None], (within[:, None] - startup) / np.maximum(per_byte, 1e-18))
    room = np.maximum(room, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = np.where(room > 0, byte + fixed / room, np.inf)
    order = np.argsort(unit, axis=1)
    room, unit = np.take_along_axis(room, order, 1), np.take_along_axis(unit, order, 1)
    before = np.cumsum(room, axis=1) - room
    taken = np.clip(size[:, None] - before, 0.0, room)
    cost = np.where(taken > 0, taken * np.where(np.isfinite(unit), unit, 0.0), 0.0).sum(axis=1)
    return np.where(room.sum(axis=1) >= size * (1 - 1e-12), cost, np.inf)


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
    prices: Sequence[Prices] | None,
) -> float:
    """Seconds that no layout of these regions undercuts, all windows together; moves are taken to cost nothing.

    `prices` are those that a solver found for every window, if it did; where plain ones prove more, they count.
    """
    total = 0.0
    room = np.where(np.isfinite(capacity), capacity, 0.0)
    for number, requests in enumerate(windows):
        tried = [*([] if prices is None else [prices[number]]), *plain_prices(requests, cluster)]
        values = [
            float(least(requests, cluster, valid_bytes, processes, each).sum()) - float((each.space * room).sum())
            for each in tried
        ]
        total += max(0.0, *values)
    return total
