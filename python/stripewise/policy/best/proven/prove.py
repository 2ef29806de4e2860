"""What is proven of a problem: the larger of what the servers' work over all cells and the requests' own time prove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....cluster import Cluster
from ....model.general import Float
from ....workload.requests import FileRequests, Workload
from ...toolkit.regions import WindowTable, build_regions, checked_size
from .kinds import are_merged
from .limits import Asked, asked, dual_bound
from .proof import ROUNDING, Priced, Touched, demand_of, least_s, priced_s

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
        self.cluster, self.rooms, self.processes = cluster, rooms, processes
        workloads = [each.workload for each in windows if each.workload is not None]
        self.asked = [_asked(each) for each in workloads]
        touched = [_touched(each) for each in workloads]
        self.demands = [demand_of(each) for each in touched]
        self.of_windows = [number for number, each in enumerate(windows) if each.workload is not None]

        def work_s(continued: bool) -> float:
            each = zip(touched, self.demands, strict=True)
            return sum(least_s(files, demand, cluster, rooms, continued) for files, demand in each)

        self.seconds = work_s(False)
        self.may_continue = any(target.continued_part < 1 for target in cluster.active)
        self.continued_s = self.seconds
        if self.may_continue:
            alone_s = dual_bound(self.asked, _continuing(cluster), processes, [[] for _ in self.asked])
            self.continued_s = max(work_s(True), alone_s * (1 - ROUNDING))

    def at(self, priced: Sequence[Sequence[Priced]]) -> Proven:
        """What is proven with these prices of every window beside."""
        tried = [priced[number] for number in self.of_windows]
        prices = [[one.prices for one in each] for each in tried]
        alone_s = dual_bound(self.asked, self.cluster, self.processes, prices) * (1 - ROUNDING)
        seconds = max(self.seconds, alone_s, self._by_servers(tried))
        return Proven(seconds, self.continued_s if self.may_continue else seconds)

    def _by_servers(self, priced: Sequence[Sequence[Priced]]) -> float:
        """The cells at the prices of single servers, all windows together; 0 where kinds tell as much."""
        if not are_merged(self.cluster):
            return 0.0
        total = 0.0
        for demand, each in zip(self.demands, priced, strict=True):
            if demand is not None:
                total += max((priced_s(demand, self.cluster, self.rooms, one) for one in each), default=0.0)
        return total


def whole_bytes(workload: Workload) -> int:
    """A length that holds any of the files whole; 0 where so many cannot be numbered through."""
    largest = max(checked_size(file, workload.source) for file in workload.files)
    length = 1 << max(12, int(largest).bit_length())
    return length if length * len(workload.files) <= ADDRESSES_MAX else 0


def _asked(workload: Workload) -> Asked:
    length = whole_bytes(workload)
    return asked(build_regions(workload, length) if length else None)


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
