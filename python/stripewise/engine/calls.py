"""The calls of MPI-IO on a file, as a trace has them: who asked for which ranges, and how these lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..errors import WorkloadError
from ..pattern.records import FileRecords

Int = npt.NDArray[np.int64]

#: Flags of calls (docs/formats.md).
COLLECTIVE = 4
#: Calls that hints do not change: by the shared file pointer.
SHARED = 2048
#: Of a file's bytes: so many in one piece with others of the same process make regions.
IN_REGIONS = 0.5
OFFSET_MAX = (1 << 63) - 1


@dataclass(frozen=True, eq=False)
class Calls:
    """Calls of one operation, all collective or none: a row each, by start; their ranges one call behind the other."""

    path: str
    write: bool
    is_collective: bool
    #: Whether processes are ranks of MPI; which ones call, and the place among these of who makes each call.
    is_ranked: bool
    ranks: Int
    rank: Int
    #: Where the ranges of each call begin, and at last where they end.
    first: Int
    offset: Int
    size: Int
    start_ns: Int
    end_ns: Int

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def processes(self) -> int:
        """That call."""
        return len(self.ranks)

    @cached_property
    def bytes(self) -> int:
        """That they move."""
        return int(self.size.sum(dtype=np.float64))

    @cached_property
    def low(self) -> Int:
        """The first byte of each call."""
        return np.minimum.reduceat(self.offset, self.first[:-1])

    @cached_property
    def high(self) -> Int:
        """The end of each call."""
        return np.maximum.reduceat(self.offset + self.size, self.first[:-1])

    @cached_property
    def request_bytes(self) -> int:
        """Of a call, the median."""
        return max(1, int(np.median(np.add.reduceat(self.size.astype(np.float64), self.first[:-1]))))

    @cached_property
    def _by_place(self) -> tuple[Int, Int]:
        """Rank and size of every range, by offset, those at one place by start."""
        order = np.argsort(self.offset, kind="stable")
        return np.repeat(self.rank, np.diff(self.first))[order], self.size[order]

    @cached_property
    def is_strided(self) -> bool:
        """Whether data of one process is separated by data of others (section 3.2.2): less than half of the bytes has a
        range of the same process before or behind it. One process has the file to itself.
        """
        if self.processes < 2:
            return False
        rank, size = self._by_place
        same = rank[1:] == rank[:-1]
        inside = np.append(same, False) | np.insert(same, 0, False)
        return bool(size[inside].sum(dtype=np.float64) < IN_REGIONS * size.sum(dtype=np.float64))

    @cached_property
    def region_bytes(self) -> int:
        """What one process has in one piece, on average: ranges with nobody else's between them."""
        rank, size = self._by_place
        pieces = 1 + int((rank[1:] != rank[:-1]).sum())
        return max(1, int(size.sum(dtype=np.float64)) // pieces)


def calls_of(records: FileRecords) -> Iterator[Calls]:
    """The calls in the records of the mpi layer that hints can change: writes and reads, collective ones and others.

    Raises WorkloadError for ranges that no file has.
    """
    if (records.offset < 0).any() or (records.size > OFFSET_MAX - np.maximum(records.offset, 0)).any():
        raise WorkloadError(f"{records.path}: the trace has calls beyond any file's end; collect the run anew")
    kinds = [(kind.op == "write", bool(kind.flags & COLLECTIVE), kind.flags & SHARED == 0) for kind in records.kinds]
    for write in (True, False):
        for collective in (True, False):
            chosen = np.array([kind == (write, collective, True) for kind in kinds], dtype=bool)
            rows = np.flatnonzero(chosen[records.kind])
            if len(rows):
                yield _calls(records, rows, write, collective)


def _calls(records: FileRecords, rows: Int, write: bool, collective: bool) -> Calls:
    # Ranges of a call stand one behind the other, and no thread begins two calls at once.
    stream, start, end = records.stream[rows], records.start_ns[rows], records.end_ns[rows]
    changes = np.ones(len(rows), dtype=bool)
    changes[1:] = (stream[1:] != stream[:-1]) | (start[1:] != start[:-1]) | (end[1:] != end[:-1])
    begins = np.flatnonzero(changes)
    ranks, rank = np.unique(records.rank[rows[begins]], return_inverse=True)
    order = np.lexsort((rank, start[begins]))
    lengths = np.diff(np.append(begins, len(rows)))[order]
    first = np.concatenate([[0], np.cumsum(lengths)])
    taken = rows[np.repeat(begins[order] - first[:-1], lengths) + np.arange(len(rows))]
    return Calls(
        records.path, write, collective, records.is_ranked, ranks, rank[order].astype(np.int64), first,
        records.offset[taken], records.size[taken], start[begins][order], end[begins][order],
    )  # fmt: skip
