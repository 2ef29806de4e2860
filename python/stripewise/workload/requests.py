"""The workload: for every file its data requests as one structured array, and who made them.

It is what every policy takes, wherever it came from: a collected trace, a synthetic pattern, a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..memoize import Memoized

#: Times in ns of the trace's clock, offset and size in bytes; write is true for writes, false for reads. Rank is that
#: in MPI_COMM_WORLD; of processes outside MPI a number below -1 of their own, -1 where nothing tells.
REQUEST_DTYPE = np.dtype(
    [("start_ns", "i8"), ("end_ns", "i8"), ("rank", "i4"), ("write", "?"), ("offset", "i8"), ("size", "i8")], align=True
)
Requests = NDArray[np.void]


@dataclass(frozen=True)
class FileRequests:
    """One file: `size_bytes` is the largest end that is known, `id` the store's name for it if it is managed."""

    path: str
    requests: Requests
    size_bytes: int
    id: str | None = None


@dataclass(frozen=True)
class Workload(Memoized):
    """The files of one run, those of a trace with most bytes first; `processes` client processes made the requests.

    Every request stands for `weight` of its kind: above 1 where the requests are a sample. `partial` says why the trace
    that they are from is not the whole run; nothing, where it is. `left_out` has how many of its files do not count, by
    kind (counted.py).
    """

    files: tuple[FileRequests, ...]
    processes: int
    source: str = "workload"
    command: tuple[str, ...] = field(default=())
    weight: int = 1
    partial: tuple[str, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()

    @property
    def requests(self) -> int:
        """How many requests there are in all."""
        return sum(len(file.requests) for file in self.files)


def dealt(tables: Sequence[Requests], processes: int) -> Sequence[Requests]:
    """The requests of all files by rank; dealt in turn where the ranks do not tell as many processes as there were."""
    ranks = {int(rank) for table in tables for rank in np.unique(table["rank"])}
    if len(ranks) >= processes:
        return tables
    made = [table.copy() for table in tables]
    order = np.argsort(np.concatenate([table["start_ns"] for table in tables]), kind="stable")
    turn = np.empty(len(order), dtype=np.int32)
    turn[order] = np.arange(len(order)) % processes
    low = 0
    for table in made:
        table["rank"] = turn[low : low + len(table)]
        low += len(table)
    return made
