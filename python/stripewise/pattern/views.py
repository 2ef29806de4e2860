"""The reads of a file by MPI-IO calls that copies can serve, and which reads of descriptors these calls made.

The runtime looks a call's ranges up before the MPI library sieves them: all of its bytes come from copies, or none.
Then the reads that the trace has below the call are never made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .records import FileRecords
from .report import FilePatterns

Int = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

#: Flags of calls that are the MPI library's: nonblocking ones, and by the shared file pointer (docs/formats.md).
LEFT_TO_MPI = 8 | 2048


@dataclass(frozen=True, eq=False)
class Views:
    """Ranges that calls read: arrays of one shape, those of a call one behind the other in its order."""

    #: Number of the call, ascending from 0 on.
    call: Int
    rank: Int
    offset: Int
    size: Int
    #: Of the call, on the trace's clock.
    start_ns: Int
    end_ns: Int

    @property
    def first(self) -> Int:
        """The first range of each call."""
        return np.flatnonzero(np.diff(self.call, prepend=-1))

    def call_of(self, rank: Int, start_ns: Int) -> Int:
        """The number of the call in which something of these processes began; -1: in none."""
        first = self.first
        found = np.full(len(rank), -1, np.int64)
        for each in np.unique(rank).tolist():
            mine, asked = first[self.rank[first] == each], np.flatnonzero(rank == each)
            mine = mine[np.argsort(self.start_ns[mine], kind="stable")]
            if not len(mine):
                continue
            at = np.searchsorted(self.start_ns[mine], start_ns[asked], side="right") - 1
            inside = (at >= 0) & (start_ns[asked] <= self.end_ns[mine[at]])
            found[asked[inside]] = self.call[mine[at[inside]]]
        return found


def views_of(file: FilePatterns) -> Views | None:
    """Those of a file; None where the trace has no calls of MPI-IO on it beside those that they made, by rank."""
    records, below = file.recognised.records, file.below
    if below is None or not (below.is_ranked and records.is_ranked) or below.copied is not None:
        return None
    is_served = np.array([kind.op == "read" and not kind.flags & LEFT_TO_MPI for kind in records.kinds])
    rows = np.flatnonzero(is_served[records.kind])
    if not len(rows):
        return None
    return of_records(records, rows)


def of_records(records: FileRecords, rows: Int) -> Views:
    """The calls of these records: what one stream began at one time is one call's."""
    order = rows[np.lexsort((rows, records.start_ns[rows], records.stream[rows]))]
    stream, start_ns = records.stream[order], records.start_ns[order]
    begins = np.concatenate([[True], (stream[1:] != stream[:-1]) | (start_ns[1:] != start_ns[:-1])])
    columns = (records.rank, records.offset, records.size, records.start_ns, records.end_ns)
    return Views(np.cumsum(begins) - 1, *(each[order].astype(np.int64) for each in columns))
