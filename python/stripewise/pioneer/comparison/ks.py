"""The two-sample Kolmogorov-Smirnov distance (thesis, section 2.7.2): how far two empirical distributions are apart.

The largest gap between both cumulative distribution functions, from 0 (alike) to 1 (no overlap); ties are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def ks_distance(a: ArrayLike, b: ArrayLike) -> float:
    """The largest difference of the two samples' empirical distribution functions, 0 to 1.

    The samples need not be equally long; the order of their values does not matter. Two empty samples are 0 apart, an
    empty one and any other 1. Raises ValueError where a value is not a number.
    """
    first, second = _sorted(a), _sorted(b)
    if not len(first) or not len(second):
        return 0.0 if len(first) == len(second) else 1.0
    values = np.concatenate([first, second])
    below_first = np.searchsorted(first, values, side="right") / len(first)
    below_second = np.searchsorted(second, values, side="right") / len(second)
    return float(np.abs(below_first - below_second).max())


def _sorted(sample: ArrayLike) -> np.ndarray[Any, Any]:
    found = np.sort(np.asarray(sample).ravel())
    if found.dtype.kind == "f" and len(found) and np.isnan(found[-1]):
        raise ValueError("a sample of the K-S distance has a value that is not a number")
    return found
