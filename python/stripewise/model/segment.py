"""The segment-level model: what one stripe size costs on n equal servers, and how evenly it loads them.

Startup is uniform on [T_min, T_max] and a request waits for the slowest of its k servers, so a narrow stripe buys
shorter transfers with a later slowest server. Eqs. 1-4 give the stripe of a segment, eqs. 5-6 the load of every server
and its imbalance. Everything is elementwise over requests; `server_loads` is O(requests + n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..units import GRANULE_BYTES, KIB
from .general import Float, Int

#: Requests below a quarter of this get a stripe of four requests where the model is flat (cost-models section 3).
FLAT_STRIPE_BYTES = 16 * KIB


def mean_startup(t_min_s: float, t_max_s: float) -> float:
    """The expected startup of one access: alpha = (T_min + T_max) / 2 (SLAL, section IV)."""
    return (t_min_s + t_max_s) / 2


def startup(k: ArrayLike, t_min_s: float, t_max_s: float) -> Float:
    """Seconds until the slowest of k servers has started, elementwise (SLAL, eq. 2)."""
    k = np.asarray(k, dtype=np.float64)
    return np.asarray(t_min_s + k / (k + 1) * (t_max_s - t_min_s), dtype=np.float64)


def segment_cost(
    request_bytes: ArrayLike, stripe_bytes: ArrayLike, n: int, t_min_s: float, t_max_s: float, per_byte_s: float
) -> Float:
    """Seconds of one request of r bytes on n servers with stripe s, elementwise (SLAL, eq. 3).

    Three branches: s > r (one server), r/n <= s <= r (ceil(r/s) servers), s < r/n (all n). They meet at s = r and at
    s = r/n without a step; between them the ceiling makes steps.
    """
    r, s = np.asarray(request_bytes, dtype=np.float64), np.asarray(stripe_bytes, dtype=np.float64)
    whole = mean_startup(t_min_s, t_max_s) + r * per_byte_s
    split = startup(np.ceil(r / s), t_min_s, t_max_s) + s * per_byte_s
    spread = startup(n, t_min_s, t_max_s) + r / n * per_byte_s
    return np.asarray(np.where(s > r, whole, np.where(s < r / n, spread, split)), dtype=np.float64)


def stationary_stripe(request_bytes: float, t_min_s: float, t_max_s: float, per_byte_s: float) -> float:
    """s* = sqrt(r*(T_max - T_min)/b) - r, where the middle branch without its ceiling is least (SLAL, eq. 4).

    Bytes, in [-r, infinity]; it counts only in [r/n, r].
    """
    if per_byte_s == 0:
        return math.inf if t_max_s > t_min_s else -request_bytes
    return math.sqrt(request_bytes * (t_max_s - t_min_s) / per_byte_s) - request_bytes


def optimal_stripe(
    request_bytes: float, n: int, t_min_s: float, t_max_s: float, per_byte_s: float, granule_bytes: int = GRANULE_BYTES
) -> int:
    """The stripe in bytes for requests of r bytes on n servers: a multiple of `granule_bytes`, rounded up.

    s* where it lies in [r/n, r], else the cheaper end; at the flat end max(r, min(4r, 16 KiB)) (cost-models section 3).
    Raises ValueError for r <= 0, n < 1 or T_max < T_min.
    """
    r = float(request_bytes)
    if not r > 0 or n < 1 or t_max_s < t_min_s:
        raise ValueError(f"no stripe for requests of {r} bytes on {n} servers with startup {t_min_s}..{t_max_s} s")
    stationary = stationary_stripe(r, t_min_s, t_max_s, per_byte_s)
    if r / n < stationary < r:
        stripe = stationary
    else:
        spread, whole = segment_cost(r, np.array([r / n, r]), n, t_min_s, t_max_s, per_byte_s)
        stripe = r / n if spread < whole else max(r, min(4 * r, FLAT_STRIPE_BYTES))
    return max(1, math.ceil(stripe / granule_bytes)) * granule_bytes


def even_stripe(request_bytes: float, n: int, t_min_s: float, t_max_s: float, per_byte_s: float) -> float:
    """The stripe r/k, k = 1..n, at which eq. 3 itself is least: with its ceiling no other stripe is cheaper.

    Between r/k and r/(k-1) the startup is that of k servers and the transfer grows with s, so r/k is the least there;
    s* lies between two of them. This is the yardstick of what eq. 4 gives away, not the paper's choice.
    """
    stripes = request_bytes / np.arange(1, n + 1)
    # startup(k), not segment_cost: r / (r / k) may round to above k.
    cost = startup(np.arange(1, n + 1), t_min_s, t_max_s) + stripes * per_byte_s
    return float(stripes[int(np.argmin(cost))])


@dataclass(frozen=True)
class Span:
    """Where requests begin and end: stripes touched, servers of the first and the last, and the bytes on these two.

    Arrays of the shape of the requests; `last_bytes` equals `first_bytes` where one stripe holds the request.
    """

    stripes: Int
    first_server: Int
    last_server: Int
    first_bytes: Int
    last_bytes: Int


def span(offset: Int, size: Int, stripe_bytes: int, n: int) -> Span:
    """The first and last server of each request [offset, offset + size), offsets from the segment's start.

    Seed 001, section V.A, its ends corrected by one byte: the last byte is offset + size - 1. Sizes are >= 1.
    """
    first, last = offset // stripe_bytes, (offset + size - 1) // stripe_bytes
    to_stripe_end = stripe_bytes - offset % stripe_bytes
    return Span(
        stripes=last - first + 1,
        first_server=first % n,
        last_server=last % n,
        first_bytes=np.minimum(size, to_stripe_end),
        last_bytes=np.where(first == last, size, (offset + size - 1) % stripe_bytes + 1),
    )


def server_demand(offset: Int, size: Int, count: Int, stripe_bytes: int, n: int) -> tuple[Int, Int]:
    """K_i accesses and S_i bytes of every server, each of shape (n,), for `count` repetitions of each request.

    A request is one access on every server it touches: its stripes there are contiguous. Requests without bytes touch
    none.
    """
    offset, size, count = (np.asarray(each, dtype=np.int64) for each in (offset, size, count))
    served = size > 0
    offset, size, count = offset[served], size[served], count[served]
    where = span(offset, size, stripe_bytes, n)
    rounds, rest = np.divmod(where.stripes, n)
    # Whole rounds touch all servers; the rest touches the arc of `rest` servers that begins at the first one.
    arc = _arcs(where.first_server, rest, count, n)
    accesses = _arcs(where.first_server, np.minimum(where.stripes, n), count, n)
    stripes = arc + int((rounds * count).sum())
    missing = np.zeros(n, dtype=np.int64)
    np.add.at(missing, where.first_server, count * (offset % stripe_bytes))
    np.add.at(missing, where.last_server, count * (stripe_bytes - 1 - (offset + size - 1) % stripe_bytes))
    return accesses, stripes * stripe_bytes - missing


def _arcs(first: Int, length: Int, count: Int, n: int) -> Int:
    """How often each of n servers in a ring lies on the arcs of `length` <= n servers that begin at `first`."""
    steps = np.zeros(2 * n + 1, dtype=np.int64)
    np.add.at(steps, first, count)
    np.add.at(steps, first + length, -count)
    unrolled = np.cumsum(steps)
    return np.asarray(unrolled[:n] + unrolled[n : 2 * n], dtype=np.int64)


def server_loads(
    offset: Int, size: Int, count: Int, stripe_bytes: int, n: int, startup_s: float, per_byte_s: float
) -> Float:
    """L_i = K_i*a + S_i*b in seconds per server, shape (n,) (SLAL, eq. 5); offsets from its start."""
    accesses, served_bytes = server_demand(offset, size, count, stripe_bytes, n)
    return np.asarray(accesses * startup_s + served_bytes * per_byte_s, dtype=np.float64)


def imbalance(loads: Float) -> float:
    """sigma = L_max / L_avg - 1 (SLAL, eq. 6); 0 where there is no load."""
    mean = float(np.mean(loads)) if len(loads) else 0.0
    return float(np.max(loads)) / mean - 1.0 if mean > 0 else 0.0
