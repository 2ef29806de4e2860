"""A run as bins of time: bytes moved, operations begun, data operations among them (thesis, section 2.7.2).

Every metric of the comparison is one of these columns or a quotient of two. Bins without any operation are part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.int64]
#: More bins than this are no picture of anything, and a sign of a width in the wrong unit.
BINS_MAX = 10_000_000


@dataclass(frozen=True)
class Timeline:
    """Columns of one length, a value for each bin of `width_ns`: bytes moved, operations and data operations begun."""

    width_ns: int
    bytes: Numbers
    operations: Numbers
    data: Numbers

    @property
    def ratio(self) -> NDArray[np.float64]:
        """Data operations over all operations, bin by bin; 0 in a bin in which none begins."""
        return self.data / np.maximum(self.operations, 1)

    @property
    def busy(self) -> NDArray[np.bool_]:
        """Bins in which an operation begins or bytes move."""
        return (self.operations > 0) | (self.bytes > 0)

    @property
    def cumulative(self) -> Numbers:
        """Bytes moved until the end of each bin."""
        return np.cumsum(self.bytes)


def timeline(
    start_ns: ArrayLike, end_ns: ArrayLike, bytes_moved: ArrayLike, is_data: ArrayLike, width_ns: int, bins: int
) -> Timeline:
    """The operations of a run in `bins` bins of `width_ns` each, from time 0 on.

    An operation counts in the bin in which it begins; its bytes are spread evenly over its duration, and together they
    are whole numbers: a run that lies within the bins moves exactly the sum of `bytes_moved`. What begins outside of
    the bins is left out, and so is the part of a request beyond them. Columns are of one length; a request that ends
    before it begins counts as one that takes no time. Raises ValueError for a width or a number of bins below 1, or
    above `BINS_MAX`.
    """
    if width_ns < 1 or not 1 <= bins <= BINS_MAX:
        raise ValueError(f"a timeline has 1 to {BINS_MAX:,} bins of 1 ns or more, not {bins:,} of {width_ns:,} ns")
    start = np.asarray(start_ns, dtype=np.int64)
    end = np.maximum(np.asarray(end_ns, dtype=np.int64), start)
    moved = np.asarray(bytes_moved, dtype=np.int64)
    data = np.asarray(is_data, dtype=bool)
    inside = (start >= 0) & (start < width_ns * bins)
    start, end, moved, data = start[inside], end[inside], moved[inside], data[inside]
    first = start // width_ns
    return Timeline(
        width_ns=width_ns,
        bytes=_spread(start, end, moved, width_ns, bins),
        operations=np.bincount(first, minlength=bins).astype(np.int64),
        data=np.bincount(first[data], minlength=bins).astype(np.int64),
    )


def bins_of(duration_ns: int, width_ns: int) -> int:
    """How many bins of `width_ns` a run of this duration fills; at least one."""
    return max(1, -(-int(duration_ns) // width_ns))


def _spread(start: Numbers, end: Numbers, moved: Numbers, width_ns: int, bins: int) -> Numbers:
    """Bytes by bin: all of a request's in its only bin, else by the time that it spends in each."""
    duration = np.maximum(end - start, 1)
    first = start // width_ns
    last = np.maximum(end - 1, start) // width_ns
    single = first == last
    found = np.bincount(first[single], weights=moved[single], minlength=bins)
    longer = ~single
    if longer.any():
        found = found + _long(start[longer], end[longer], moved[longer] / duration[longer], width_ns, bins)
    # Rounded as a sum, so that nothing is lost; what is left of rounding in bins without bytes goes as well.
    sums: Numbers = np.rint(np.cumsum(found)).astype(np.int64)
    sums[1:] -= sums[:-1].copy()
    return sums


def _long(start: Numbers, end: Numbers, rate: NDArray[Any], width_ns: int, bins: int) -> NDArray[Any]:
    """The same of requests in several bins, of bytes per ns: both ends, and all that lie between, by differences."""
    first, last = start // width_ns, (end - 1) // width_ns
    at_ends = np.bincount(first, weights=rate * ((first + 1) * width_ns - start), minlength=bins)
    inside = last < bins
    tail = rate[inside] * (end - last * width_ns)[inside]
    at_ends += np.bincount(last[inside], weights=tail, minlength=bins)
    step = np.bincount(first + 1, weights=rate * width_ns, minlength=bins + 1)[: bins + 1]
    step -= np.bincount(np.minimum(last, bins), weights=rate * width_ns, minlength=bins + 1)
    return np.asarray(at_ends + np.cumsum(step)[:bins])
