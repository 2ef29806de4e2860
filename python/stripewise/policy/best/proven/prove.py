"""What is proven of a problem: the larger of what the servers' work over all cells and the requests' own time prove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....cluster import Cluster
from ....model.general import Float
from ....workload.requests import FileRequests, Workload
from ...toolkit.regions import build_regions, checked_size
from ...toolkit.windows import WindowTable
from .kinds import are_merged
from .limits import Asked, Prices, asked, dual_bound
from .proof import ROUNDING, Priced, Touched, cells_of, least_s, priced_s

#: Bytes of all files' regions together at most.
ADDRESSES_MAX = 1 << 62


@dataclass(frozen=True)
class Proven:
    """Seconds that no layout undercuts, all windows together.

    `seconds` where every access pays its startup, `continued_s` even if every access continues the one before it.
    """

    seconds: float
    continued_s: float

    def or_more(self, other: Proven) -> Proven:
        """The larger of both."""
        return Proven(max(self.seconds, other.seconds), max(self.continued_s, other.continued_s))


class Proof:
    """The requests as they are proven: not cut anywhere, for a layout need not cut them there."""

    def __init__(self, windows: Sequence[WindowTable], cluster: Cluster, rooms: Float, processes: int) -> None:
        self.cluster, self.processes = cluster, processes
        self.workloads = [each.workload for each in windows]
        self.asked = [_asked(each) for each in self.workloads]
        touched = [[] if each is None else _touched(each) for each in self.workloads]
        self.seconds = sum(least_s(each, cluster, rooms) for each in touched)
        # Where kinds had to be merged, the prices of single servers prove more.
        self.demands = [cells_of(each) if each else None for each in touched] if are_merged(cluster) else []
        self.rooms = rooms
        self.continued_s = self.seconds
        if any(target.continued_part < 1 for target in cluster.active):
            self.continued_s = sum(least_s(each, cluster, rooms, True) for each in touched)
            self.continued_s = max(
                self.continued_s, dual_bound(self.asked, _continuing(cluster), processes, self._none)
            )

    @property
    def _none(self) -> list[list[Prices]]:
        return [[] for _ in self.asked]

    def at(self, priced: Sequence[Sequence[Priced]]) -> Proven:
        """What is proven with these prices of every window beside."""
        alone_s = dual_bound(
            self.asked, self.cluster, self.processes, [[one.prices for one in each] for each in priced]
        )
        seconds = max(self.seconds, alone_s * (1 - ROUNDING), self._by_servers(priced))
        plain = self.continued_s if any(target.continued_part < 1 for target in self.cluster.active) else seconds
        return Proven(seconds, plain)

    def _by_servers(self, priced: Sequence[Sequence[Priced]]) -> float:
        """The cells at the prices of single servers, all windows together; 0 where kinds tell as much."""
        total = 0.0
        for demand, each in zip(self.demands, priced, strict=False):
            if demand is not None:
                found = [priced_s(demand, self.cluster, self.rooms, one) for one in each]
                total += max(found, default=0.0)
        return total


def whole_bytes(workload: Workload) -> int:
    """A length that holds any of the files whole; 0 where so many cannot be numbered through."""
    largest = max(checked_size(file, workload.source) for file in workload.files)
    length = 1 << max(12, int(largest).bit_length())
    return length if length * len(workload.files) <= ADDRESSES_MAX else 0


def _asked(workload: Workload | None) -> Asked:
    if workload is None or not (length := whole_bytes(workload)):
        return asked(None)
    return asked(build_regions(workload, length))


def _touched(workload: Workload) -> list[Touched]:
    if not (length := whole_bytes(workload)):
        return [_plainly(file, workload) for file in workload.files]
    table = build_regions(workload, length)
    made = []
    for region in range(table.regions):
        of = slice(int(table.first[region]), int(table.first[region + 1]))
        count = table.count[of].astype(np.float64)
        size_bytes = int(table.valid_bytes[region])
        made.append(Touched(table.offset[of], table.size[of], table.write[of], count, size_bytes))
    return made


def _plainly(file: FileRequests, workload: Workload) -> Touched:
    moved = file.requests[file.requests["size"] > 0]
    return Touched(
        moved["offset"].astype(np.int64), moved["size"].astype(np.int64), moved["write"].astype(bool),
        np.full(len(moved), float(workload.weight)), checked_size(file, workload.source),
    )  # fmt: skip


def _continuing(cluster: Cluster) -> Cluster:
    """The cluster where every access continues the one before it."""
    return replace(
        cluster,
        targets=tuple(
            replace(
                target,
                startup_read_s=target.startup_read_s * target.continued_part,
                startup_write_s=target.startup_write_s * target.continued_part,
            )
            for target in cluster.targets
        ),
    )
