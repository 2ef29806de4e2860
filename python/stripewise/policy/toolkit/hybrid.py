"""Hybrid servers or HServers: the stripes on either, and the walk that H2DP, PADP and PSA share.

They differ in its order and in the stripe pairs. Regions are taken one by one in a policy's order. Each goes on hybrid
servers with the stripes that the policy wants for it while SServer space lasts, else on HServers alone with stripe r/M
(placement.md, SDP), else where room is left.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from ...cluster import Cluster, Target
from ...layout import STRIPES_MAX, Stripes, rotate, stripes_over
from ...model.general import Int
from ...workload.requests import Workload
from ..base import PlanOptions
from .build import region_name
from .regions import RegionTable
from .space import Space, stripe_over


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


class Landing(Enum):
    """Where the walk put a region."""

    #: On hybrid servers, with the stripes that were wanted.
    HYBRID = auto()
    #: On HServers, because nothing else was wanted.
    HSERVERS = auto()
    #: On HServers, because the stripes that were wanted did not fit.
    CROWDED_OUT = auto()
    #: Neither fitted.
    ELSEWHERE = auto()


@dataclass(frozen=True)
class Ground:
    """What a walk stands on: the regions of a workload on a cluster, and r of every region."""

    table: RegionTable
    workload: Workload
    cluster: Cluster
    options: PlanOptions
    request_bytes: Int

    def on_hservers(self) -> list[Stripes]:
        """Every region on HServers alone with stripe r/M; empty stripes where there are no HServers."""
        table = self.table
        return [
            hserver_stripes(self.cluster, int(table.number[g]), int(self.request_bytes[g]))
            for g in range(table.regions)
        ]


def drawn_order(regions: int, seed: int) -> list[int]:
    """All regions in the random order of `seed`: a function of the two numbers alone."""
    order = list(range(regions))
    random.Random(seed).shuffle(order)
    return order


def walk(ground: Ground, order: Iterable[int], wanted: Sequence[Stripes]) -> tuple[list[Stripes], list[Landing]]:
    """Stripes and landing of every region, placed in `order`; `wanted[g]` are its stripes on hybrid servers or empty.

    Raises PlanError, naming file and region, when the data do not fit.
    """
    table = ground.table
    rest = ground.on_hservers()
    placed: list[Stripes] = [()] * table.regions
    landings = [Landing.ELSEWHERE] * table.regions
    space = Space(ground.cluster, ground.options.reserved_bytes)
    for g in order:
        choices = [stripes for stripes in (wanted[g], rest[g]) if stripes]
        placed[g], choice = space.place(
            choices,
            int(table.number[g]),
            int(ground.request_bytes[g]),
            int(table.valid_bytes[g]),
            region_name(ground.workload, table, g),
        )
        if choice < len(choices):
            hybrid = bool(wanted[g]) and choice == 0
            landings[g] = Landing.HYBRID if hybrid else Landing.CROWDED_OUT if wanted[g] else Landing.HSERVERS
    return placed, landings
