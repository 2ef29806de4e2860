"""The requests of one process, sanitised: columns that the steps of the pipeline hand on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .calls import Bool, Code, Int

#: Flags of a record (docs/formats.md, Trace log).
COLLECTIVE, NONBLOCKING, IMPLICIT, UNKNOWN_OFFSET, SHARED_POINTER = 4, 8, 16, 32, 2048


@dataclass(frozen=True, eq=False)
class Records:
    """The requests of one process in the order of their starts: columns of one length."""

    rank: int
    #: Numbers of operations (operations.py).
    op: Code
    #: Numbers of files.
    file: Code
    #: The other file of a rename or link; -1.
    file2: Code
    #: First byte in the file; -1: none, or not known.
    offset: Int
    #: Bytes; of an open its mode, of a change of size the new one.
    size: Int
    start_ns: Int
    end_ns: Int
    #: Time that passed between a nonblocking call and the wait that was folded into it.
    held_ns: Int
    #: Number of the open session in this process, from 0 on in the order of the opens; -1: outside.
    session: Int
    #: Ranks in the communicator of MPI calls; -1.
    comm_size: Int
    #: Number of the MPI file in the process; -1.
    handle: Int
    collective: Bool
    #: Of views: bytes of a piece (0: bytes as they lie), from piece to piece, pieces, and from one set of them to the
    #: next.
    view: Int
    #: Rows of the trace that stand behind these.
    records: int = 0

    def __len__(self) -> int:
        return len(self.op)

    def take(self, rows: Any) -> Records:
        """Some of the rows, in this order."""
        return replace(self, **{name: getattr(self, name)[rows] for name in COLUMNS})


COLUMNS = (
    "op", "file", "file2", "offset", "size", "start_ns", "end_ns", "held_ns", "session", "comm_size", "handle",
    "collective", "view",
)  # fmt: skip
