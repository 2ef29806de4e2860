"""The workload: for every file its data requests as one structured array, and who made them.

It is what every policy takes, wherever it came from: a collected trace, a synthetic pattern, a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

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


#: What `collect` counts in meta.json that makes a trace less than the run, and how one of it and more are told.
LOSSES = {
    "dropped": ("record was", "records were", " dropped for want of space"),
    "incomplete": ("record was", "records were", " cut by a kill"),
    "cut_logs": ("log of a thread was", "logs of threads were", " cut off after the run, with whatever stood behind"),
    "missing": ("record is", "records are", " missing between others"),
    "damaged": ("damaged record was", "damaged records were", " skipped"),
    "empty_logs": ("log was", "logs were", " never begun (a kill, or no space)"),
    "names_lost": ("name of a file was", "names of files were", " lost for want of space"),
    "unnamed": ("record has", "records have", " no name of a file"),
}


def reasons_of(meta: dict[str, Any]) -> tuple[str, ...]:
    """Why a trace, whose meta.json this is, is not the whole run: phrases."""
    reasons = meta.get("partial", [])
    told = [str(reason) for reason in reasons] if isinstance(reasons, list) else [str(reasons)]
    counts = {key: meta.get(key) for key in LOSSES}
    for key, count in counts.items():
        if isinstance(count, int) and count > 0:
            one, more, what = LOSSES[key]
            told.append(f"{count:,} {one if count == 1 else more}{what}")
    return tuple(told)
