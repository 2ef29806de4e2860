"""The kinds of stripes that policies give a region: equal ones over all, a pair on hybrid servers, r/M on HServers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...cluster import Cluster, Target
from ...layout import STRIPES_MAX, Stripes, rotate, stripes_over
from ...model.general import Int
from ...units import STRIPE_FALLBACK_BYTES
from .regions import RegionTable
from .space import stripe_over


class EqualStripes:
    """Stripes of one width over `servers` for regions of `region_bytes`; equal cycles are one tuple.

    The first server rotates with the region's number. Where there are more servers than stripes in a region, its cycle
    names those that it reaches, and the next region goes on behind them.
    """

    def __init__(self, servers: Sequence[Target], width: int, region_bytes: int) -> None:
        self.servers = len(servers)
        self.reach = min(self.servers, -(-region_bytes // width), STRIPES_MAX)
        stripes = tuple((server.name, width) for server in servers)
        self._round = stripes + stripes
        self._made: dict[int, Stripes] = {}

    def of(self, number: int) -> Stripes:
        """The stripes of region `number`."""
        first = number * (1 if self.reach == self.servers else self.reach) % self.servers
        if first not in self._made:
            self._made[first] = self._round[first : first + self.reach]
        return self._made[first]


def hybrid_stripes(cluster: Cluster, number: int, h: int, s: int) -> Stripes:
    """HServers with width h, then SServers with width s; the first of each class rotates with the region's number.

    Of more servers than a cycle holds, each class gives its share.
    """
    M, N = len(cluster.hservers) if h else 0, len(cluster.sservers) if s else 0
    m, n = M, N
    if M + N > STRIPES_MAX:
        m = max(min(M, 1), STRIPES_MAX * M // (M + N))
        n = STRIPES_MAX - m
    return stripes_over(_turn(cluster.hservers, number, m), h) + stripes_over(_turn(cluster.sservers, number, n), s)


def _turn(servers: Sequence[Target], number: int, reach: int) -> list[Target]:
    """`reach` of the servers, the first one moved on by one each region; where not all are reached, by all of those."""
    return rotate(servers, number * (1 if reach == len(servers) else reach))[:reach]


def hserver_stripes(cluster: Cluster, number: int, request_bytes: int) -> Stripes:
    """HServers only with stripe r/M; over as many of them as a cycle holds."""
    if not cluster.hservers:
        return ()
    reach = min(len(cluster.hservers), STRIPES_MAX)
    return stripes_over(_turn(cluster.hservers, number, reach), stripe_over(reach, request_bytes))


def region_requests(table: RegionTable, whole: RegionTable) -> Int:
    """r of every region in a window: the largest request there; a region that was not touched takes its file's.

    `whole` is the table of the whole trace.
    """
    largest = np.zeros(int(whole.file.max()) + 1, dtype=np.int64)
    np.maximum.at(largest, whole.file, whole.request_bytes)
    of_file = np.where(largest > 0, largest, STRIPE_FALLBACK_BYTES)[table.file]
    return np.where(table.request_bytes > 0, table.request_bytes, of_file)
