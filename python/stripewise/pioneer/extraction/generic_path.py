"""What a generic workload path is (thesis, section 2.5.1): the root's requests, annotated with who makes them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .calls import Bool, Int
from .subgroups import Subgroup

#: Numbers of `who` in a path (crates/workpath/src/node.rs).
ALL, ROOT, CHILDREN, FIRST_GROUP = 0, 1, 2, 16
#: Kinds of communicators in a path (crates/workpath/src/tables.rs).
WORLD, SELF, BLOCKS, CONGRUENT = "world", "self", "blocks", "congruent"
#: The columns that every path has.
_COLUMNS = (
    "op", "file", "who", "offset", "size", "shift", "start_ns", "end_ns", "slack_ns", "comm", "collective", "session",
    "piece", "distance", "pieces", "tile", "other",
)  # fmt: skip


@dataclass(frozen=True)
class GwpFile:
    """A file of a path; its name is relative, with {rank} where the rank stands."""

    template: str
    #: One of profile.CLASSES.
    file_class: str
    #: Bytes that it has before the run, as far as what is read tells.
    bytes: int
    is_directory: bool


@dataclass(frozen=True)
class Communicator:
    """Which ranks open a file together: `count` consecutive ones (blocks), those of one rest divided by it (congruent),
    all (world) or each by itself (self)."""

    kind: str
    count: int = 0

    @property
    def text(self) -> str:
        """As in a profile: `world`, `self`, `blocks-4`, `congruent-4`."""
        return self.kind if self.kind in (WORLD, SELF) else f"{self.kind}-{self.count}"


@dataclass(frozen=True, eq=False)
class Calls:
    """Requests of one rank alone: columns as those of a path."""

    op: Int
    size: Int
    start_ns: Int
    end_ns: Int


@dataclass(frozen=True, eq=False)
class Gwp:
    """Columns of one length, a row for each request, in the root's order; a row's sequence id is its number plus 1."""

    #: Number of the operation (operations.py).
    op: Int
    #: Number in `files`.
    file: Int
    #: 0 all ranks, 1 the root, 2 all but the root, 16 + g group g.
    who: Int
    #: First byte in the file, of the root (of children-only requests the chosen child's, less its rank times the
    #: shift); -1: none.
    offset: Int
    #: Bytes; of an open its mode, of a change of size the new one.
    size: Int
    #: Bytes that the offset grows by with each rank.
    shift: Int
    start_ns: Int
    end_ns: Int
    #: From the end of the previous request of the same process to the start; what passed between a nonblocking call
    #: and its wait is added.
    slack_ns: Int
    #: Number in `communicators`; -1 outside MPI.
    comm: Int
    collective: Bool
    #: Number of the open session; -1: outside.
    session: Int
    #: Views: bytes of a piece (0: bytes as they lie), from piece to piece, pieces, from one set of them to the next.
    piece: Int
    distance: Int
    pieces: Int
    tile: Int
    #: The other file of a rename or link; -1.
    other: Int
    files: tuple[GwpFile, ...]
    communicators: tuple[Communicator, ...]
    processes: int
    groups: tuple[Subgroup, ...]
    #: Rows of the trace that were looked at.
    records: int = 0
    application: str | None = None
    #: Long slacks of ranks differ independently (pauses.py).
    apart: bool = False
    #: All ranks wait for each other before the slack (meetings.py), which is without that waiting; None: nowhere.
    together: Bool | None = None
    #: The root's waiting that the slack is without, ns; None: there is none.
    waited_ns: Int | None = None
    #: Of a part of a path the sequence ids that its rows have in the whole; None: they are counted through.
    whole_ids: Int | None = None
    #: All requests of the first group's chosen child; None: there is no child, or its requests are not known.
    child: Calls | None = None

    def __len__(self) -> int:
        return len(self.op)

    @property
    def is_together(self) -> Bool:
        """`together` as a column."""
        return np.zeros(len(self), np.bool_) if self.together is None else self.together

    @property
    def ids(self) -> Int:
        """Global sequence ids: 1, 2, 3, ... (thesis, figure 2.5)."""
        return np.arange(1, len(self.op) + 1) if self.whole_ids is None else self.whole_ids

    def take(self, rows: Int | Bool) -> Gwp:
        """These rows alone, with all files."""
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        maybe = {name: getattr(self, name) for name in ("together", "waited_ns", "whole_ids")}
        return replace(self, **columns, **{name: each[rows] for name, each in maybe.items() if each is not None})

    def part(self, kept: Bool) -> Gwp:
        """The requests of some files alone (`kept`, by number of the file), with the ids that they have here.

        Files that a rename or link leads from one to the other should be kept together: of one whose other file is
        not kept the other is unknown (-1).
        """
        rows = np.flatnonzero(kept[self.file])
        number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
        return replace(
            self.take(rows),
            file=number[self.file[rows]],
            other=number[self.other[rows]],
            files=tuple(each for each, is_kept in zip(self.files, kept.tolist(), strict=True) if is_kept),
            whole_ids=self.ids[rows],
        )

    @property
    def duration_ns(self) -> int:
        """From the first start to the last end."""
        return int(self.end_ns.max() - self.start_ns.min()) if len(self.op) else 0
