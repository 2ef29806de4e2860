"""n equal servers and three layouts, and PDLA's pair on two classes (PDLA, Tables 2, 4, 5; cost-models section 2).

1-DV keeps a process's data on one server, 1-DH spreads it over all, 2-D over one of g groups. All processes issue one
request of r bytes each at once. p, r and g may be arrays. PDLA on hybrid servers is 1-DH with stripes h < s, found by
two solvers that check each other: the corners of the linear program, and a scan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .figures import CostParameters, OpFigures
from .terms import Terms


@dataclass(frozen=True)
class ClassParameters:
    """p processes, c on a node, e and t of the network, n servers of one class with `storage` figures (PDLA)."""

    p: int
    c: int
    e: float
    t: float
    n: int
    storage: OpFigures

    @staticmethod
    def of(params: CostParameters, n: int, ssd: bool, write: bool) -> ClassParameters:
        """One class of a cluster's parameters for one operation."""
        device = params.ssd if ssd else params.hdd
        return ClassParameters(params.p, params.c, params.e, params.t, n, device.write if write else device.read)


def one_dv(params: ClassParameters, r: ArrayLike) -> Terms:
    """A process's data on one server: ceil(p/n) requests of r bytes meet on the fullest one (Table 2, 1-DV)."""
    r = np.asarray(r, dtype=np.float64)
    q = -(-params.p // params.n)
    busiest = max(params.c, q)
    return Terms(
        establish_s=np.full_like(r, busiest * params.e),
        transfer_s=busiest * r * params.t,
        startup_s=np.full_like(r, q * params.storage.startup_s),
        storage_s=q * r * params.storage.per_byte_s,
    )


def one_dh(params: ClassParameters, r: ArrayLike) -> Terms:
    """A process's data over all n servers: p requests of r/n bytes meet on each (Table 2, 1-DH)."""
    r = np.asarray(r, dtype=np.float64)
    p, c, n = params.p, params.c, params.n
    return Terms(
        establish_s=np.full_like(r, max(p, c * n) * params.e),
        transfer_s=max(p / n, c) * r * params.t,
        startup_s=np.full_like(r, p * params.storage.startup_s),
        storage_s=p / n * r * params.storage.per_byte_s,
    )


def two_d(params: ClassParameters, r: ArrayLike, g: ArrayLike) -> Terms:
    """A process's data over one of g groups of w = ceil(n/g) servers, q = ceil(p/g) processes a group (Table 2, 2-D).

    Where g does not divide n, the formula counts g*w > n servers and may undercut what n servers can do: offer it only
    groups of equal size (`group_counts`).
    """
    r, g = np.asarray(r, dtype=np.float64), np.asarray(g, dtype=np.int64)
    p, c = params.p, params.c
    q, w = -(-p // g), -(-params.n // g)
    like = np.zeros(np.broadcast_shapes(r.shape, g.shape))
    return Terms(
        establish_s=np.maximum(c * w, q) * params.e + like,
        transfer_s=np.maximum(c, q / w) * r * params.t + like,
        startup_s=q * params.storage.startup_s + like,
        storage_s=q / w * r * params.storage.per_byte_s + like,
    )


def group_counts(n: int) -> list[int]:
    """The numbers of groups of equal size: the divisors of n, from 1 (which is 1-DH) to n (1-DV)."""
    return [g for g in range(1, n + 1) if n % g == 0]


@dataclass(frozen=True)
class HybridPair:
    """Stripes h and s in bytes (not rounded), and the price of the request on them."""

    h: float
    s: float
    terms: Terms

    @property
    def cost_s(self) -> float:
        return float(self.terms.total_s)


def pdla_hybrid(params: CostParameters, M: int, N: int, h: ArrayLike, r: float, write: bool) -> Terms:
    """1-DH on M HServers with stripe h and N SServers with stripe s = (r - M*h)/N, elementwise over h (Table 5).

    At h = 0 the HServers drop out of all terms, as in section 1. M >= 0, N >= 1, 0 <= h <= r/(M+N).
    """
    h = np.asarray(h, dtype=np.float64)
    s = (r - M * h) / N
    hdd, ssd = (params.hdd.write, params.ssd.write) if write else (params.hdd.read, params.ssd.read)
    p, c = params.p, params.c
    used = (h > 0) & (M > 0)
    on_hdd = np.where(used, hdd.startup_s + h * hdd.per_byte_s, 0.0)
    hdd_decides = on_hdd > ssd.startup_s + s * ssd.per_byte_s
    return Terms(
        establish_s=np.maximum(p, c * (np.where(used, M, 0) + N)) * params.e,
        transfer_s=np.maximum(c * r * params.t, p * s * params.t),
        startup_s=p * np.where(hdd_decides, hdd.startup_s, ssd.startup_s),
        storage_s=p * np.where(hdd_decides, h * hdd.per_byte_s, s * ssd.per_byte_s),
    )


def pdla_by_corners(params: CostParameters, M: int, N: int, r: float, write: bool) -> HybridPair:
    """The cheapest pair by the linear program in two variables, whose optimum lies on a corner.

    With s = (r - M*h)/N the price is convex and piecewise linear in 0 < h <= r/(M+N); its corners are the ends, where
    both classes finish together, and where the busier link changes. h = 0, without HServers, stands apart. The end
    h = s belongs to the closure only: a result there means "as near as the step allows". Raises ValueError for N < 1 or
    r <= 0.
    """
    _check(N, r)
    hdd, ssd = (params.hdd.write, params.ssd.write) if write else (params.hdd.read, params.ssd.read)
    end = r / (M + N)
    corners = [0.0]
    if M > 0:
        # The price tends to more than its value at 0 when h does: the smallest float is a corner of the open part.
        corners += [np.nextafter(0.0, 1.0), end]
        slope = hdd.per_byte_s + M / N * ssd.per_byte_s
        if slope > 0:
            corners.append((ssd.startup_s - hdd.startup_s + r / N * ssd.per_byte_s) / slope)
        corners.append(r / M * (1 - params.c * N / params.p))
    return _cheapest(params, M, N, np.array(sorted(h for h in corners if 0 <= h <= end)), r, write)


def pdla_by_scan(params: CostParameters, M: int, N: int, r: float, write: bool, step_bytes: float) -> HybridPair:
    """The cheapest pair among h = 0, step, 2*step ... below s. Raises ValueError for N < 1, r <= 0 or step <= 0."""
    _check(N, r)
    if not step_bytes > 0:
        raise ValueError(f"step {step_bytes}: must be above 0")
    count = int(np.ceil(r / (M + N) / step_bytes)) if M > 0 else 1
    h = np.arange(max(1, count)) * step_bytes
    return _cheapest(params, M, N, h[(h == 0) | (h < r / (M + N))], r, write)


def _check(N: int, r: float) -> None:
    if N < 1 or not r > 0:
        raise ValueError(f"no pair for requests of {r} bytes on {N} SServers: both must be above 0")


def _cheapest(params: CostParameters, M: int, N: int, h: np.ndarray, r: float, write: bool) -> HybridPair:
    """The candidate with the least price; the smallest h among equals."""
    best = float(h[int(np.argmin(pdla_hybrid(params, M, N, h, r, write).total_s))])
    return HybridPair(best, (r - M * best) / N, pdla_hybrid(params, M, N, best, r, write))
