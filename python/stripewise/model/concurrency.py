"""How many requests a job has in flight: what may stand for p where most processes wait (cost-models, Symbols)."""

from __future__ import annotations

import numpy as np

from .general import Int


def mean_in_flight(start_ns: Int, end_ns: Int) -> float:
    """The sum of the requests' durations over the time with any in flight; 1 at least, and where nothing takes time.

    Arrays of one shape, in any order; a request that ends before it starts takes no time.
    """
    order = np.argsort(start_ns, kind="stable")
    start, end = start_ns[order], np.maximum(end_ns, start_ns)[order]
    if len(start) == 0:
        return 1.0
    # Each request adds to the busy time what lies behind all ends before it.
    before = np.concatenate([start[:1], np.maximum.accumulate(end)[:-1]])
    busy_ns = int(np.maximum(end - np.maximum(start, before), 0).sum())
    return max(1.0, float((end - start).sum()) / busy_ns) if busy_ns else 1.0
