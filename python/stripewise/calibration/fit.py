"""A line through times of requests over their sizes that a heavy tail does not bend.

Theil-Sen: the slope is the median over pairs of samples of different sizes, the startup the median of what is left
without the transfer. Up to 29 % of the samples may be anything.
"""

from __future__ import annotations

import numpy as np
from numpy.random import default_rng
from numpy.typing import ArrayLike, NDArray

from ..cluster.calibration import Fit

#: Up to so many pairs are all taken, of more so many at chance: the median of so many slopes is good for a thousandth.
PAIRS_MAX = 500_000
#: Percentiles of the startup that stand for the T_min and T_max of SLAL: robust against a few outliers.
SPREAD_PERCENTILES = (5.0, 95.0)
_SEED = 20_000
#: Below what any clock tells: keeps a share of nothing finite.
_TIME_MIN_S = 1e-12


def theil_sen(sizes: ArrayLike, times: ArrayLike, seed: int = _SEED) -> tuple[float, float]:
    """Startup and time per byte of samples (sizes in bytes, times in seconds, both of shape (n,)), neither negative.

    Raises ValueError when there are not two different sizes.
    """
    x, y = np.asarray(sizes, dtype=float), np.asarray(times, dtype=float)
    if x.shape != y.shape or x.ndim != 1 or np.unique(x).size < 2:
        raise ValueError("a line needs samples of at least two sizes")
    first, second = _pairs(x.size, seed)
    step = x[second] - x[first]
    apart = step != 0
    slope = float(np.median((y[second][apart] - y[first][apart]) / step[apart]))
    startup = float(np.median(y - slope * x))
    if slope < 0:
        return float(np.median(y)), 0.0
    if startup < 0:
        return 0.0, float(np.median(y / np.maximum(x, 1.0)))
    return startup, slope


def _pairs(count: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if count * (count - 1) // 2 <= PAIRS_MAX:
        first, second = np.triu_indices(count, 1)
        return first, second
    chance = default_rng(seed)
    first = chance.integers(0, count, PAIRS_MAX)
    second = (first + chance.integers(1, count, PAIRS_MAX)) % count
    return first, second


def fit_line(sizes: ArrayLike, times: ArrayLike) -> Fit:
    """The line through samples, with how well it fits (see Fit)."""
    x, y = np.asarray(sizes, dtype=float), np.asarray(times, dtype=float)
    startup, slope = theil_sen(x, y)
    line = startup + slope * x
    off = (y - line) / np.maximum(line, _TIME_MIN_S)
    distances = [abs(float(np.median(off[x == size]))) for size in np.unique(x)]
    small = x <= np.median(x)
    low, high = np.percentile(np.maximum(y[small] - slope * x[small], 0.0), SPREAD_PERCENTILES)
    return Fit(
        startup_s=startup,
        per_byte_s=slope,
        startup_min_s=float(low),
        startup_max_s=float(high),
        residual=float(np.median(np.abs(off))),
        misfit=float(max(distances)),
        samples=int(x.size),
    )
