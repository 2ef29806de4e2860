"""The two kinds of stripes that H2DP gives a region: a pair on hybrid servers, or r/M on HServers alone."""

from __future__ import annotations

import numpy as np

from ..cluster import Cluster
from ..layout import Stripes, rotate, stripes_over
from ..model.general import Int
from ..units import STRIPE_FALLBACK_BYTES
from .regions import RegionTable
from .space import stripe_over


def hybrid_stripes(cluster: Cluster, number: int, h: int, s: int) -> Stripes:
    """HServers with width h, then SServers with width s; the first of each class rotates with the region's number."""
    hdd = stripes_over(rotate(cluster.hservers, number), h) if h else ()
    ssd = stripes_over(rotate(cluster.sservers, number), s) if s else ()
    return hdd + ssd


def hserver_stripes(cluster: Cluster, number: int, request_bytes: int) -> Stripes:
    """HServers only with stripe r/M."""
    if not cluster.hservers:
        return ()
    return stripes_over(rotate(cluster.hservers, number), stripe_over(len(cluster.hservers), request_bytes))


def region_requests(table: RegionTable, whole: RegionTable) -> Int:
    """r of every region in a window: the largest request there; a region that was not touched takes its file's.

    `whole` is the table of the whole trace.
    """
    largest = np.zeros(int(whole.file.max()) + 1, dtype=np.int64)
    np.maximum.at(largest, whole.file, whole.request_bytes)
    of_file = np.where(largest > 0, largest, STRIPE_FALLBACK_BYTES)[table.file]
    return np.where(table.request_bytes > 0, table.request_bytes, of_file)
