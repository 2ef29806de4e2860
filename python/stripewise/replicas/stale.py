"""What copies that writes invalidate do not serve: blocks that are stale since a write touched them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .. import native
from ..units import GRANULE_BYTES

Int = npt.NDArray[np.int64]


def mark_bytes(size_bytes: int) -> int:
    """Bytes of a block of marks of a file of so many bytes."""
    return int(native.call("mark_bytes", size_bytes))


class Stale:
    """The blocks of `block_bytes` that writes have touched, joined where they meet."""

    def __init__(self, offset: Int, size: Int, block_bytes: int = GRANULE_BYTES) -> None:
        order = np.argsort(offset, kind="stable")
        start = offset[order] // block_bytes * block_bytes
        end = np.maximum.accumulate(-(-(offset[order] + size[order]) // block_bytes) * block_bytes)
        first = np.flatnonzero(np.concatenate([[True], start[1:] > end[:-1]])) if len(start) else np.zeros(0, np.int64)
        self._start = start[first]
        self._end = end[np.append(first[1:], len(end)) - 1] if len(start) else end

    def touches(self, offset: Int, size: Int) -> npt.NDArray[np.bool_]:
        """Which of these requests touch one of them."""
        if not len(self._start):
            return np.zeros(len(offset), dtype=bool)
        following = np.searchsorted(self._end, offset, side="right")
        found: npt.NDArray[np.bool_] = np.append(self._start, np.iinfo(np.int64).max)[following] < offset + size
        return found
