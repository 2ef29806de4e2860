"""Whether places follow one stride: an order that a copy can have, and neither chance nor a hot region."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from . import choices


def is_strided(rank: npt.NDArray[np.int64], offset: npt.NDArray[np.int64]) -> bool:
    """Of requests by process, in their order of time; that the whole is repeated does not matter."""
    steps = np.diff(offset)[rank[1:] == rank[:-1]]
    steps = steps[steps != 0]
    most = int(np.unique(steps, return_counts=True)[1].max(initial=0))
    return most > 0 and most >= choices.STRIDED * len(steps)
