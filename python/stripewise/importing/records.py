"""What readers of foreign traces hand over: rows in numpy arrays, the processes that made them, and what is not known.

Text appears in rows as a number: operations by their place in `OPS`, paths by their place in `Names`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import WorkloadError

#: Operations by name (docs/formats.md, "Trace log"); those from `mpi_open` on are of the mpi layer.
OPS = (
    "open", "close", "read", "write", "seek", "truncate", "fallocate", "sync", "stat", "statfs", "access", "unlink",
    "rename", "dup", "lock", "fcntl", "fork", "exec", "mmap", "munmap", "mkdir", "rmdir", "link", "symlink",
    "readlink", "opendir", "readdir", "setattr", "advise", "copy", "exit", "getattr", "mknod",
    "mpi_open", "mpi_close", "mpi_read", "mpi_write", "mpi_seek", "view", "mpi_set_size", "mpi_preallocate",
    "mpi_sync", "mpi_delete", "mpi_get_size", "mpi_wait", "mpi_atomicity", "extent",
)  # fmt: skip
OP = {name: number for number, name in enumerate(OPS)}
#: From here on operations are of the mpi layer.
MPI_FIRST = OP["mpi_open"]

#: Bits of `flags` (docs/formats.md, "Trace log").
MPI, MANAGED, COLLECTIVE, NONBLOCKING, IMPLICIT_OFFSET, UNKNOWN_OFFSET, VECTOR, DIRECT, APPEND, STDIO = (
    1 << bit for bit in range(10)
)

#: One call. Times in ns on the reader's clock, offset, requested and done in bytes; `file`, `file2`: places in `Names`,
#: -1 none; `fd` is the number of the MPI handle in the mpi layer, -1 unknown, and `aux` the size of its communicator.
ROW = np.dtype(
    [
        ("start_ns", "i8"), ("end_ns", "i8"), ("offset", "i8"), ("requested", "i8"), ("done", "i8"), ("seq", "i8"),
        ("thread", "i4"), ("file", "i4"), ("file2", "i4"), ("fd", "i4"), ("flags", "i4"), ("aux", "i4"),
        ("errno", "i2"), ("op", "i2"),
    ]
)  # fmt: skip
Rows = NDArray[np.void]
#: No time, offset or count that a foreign trace tells may be beyond: about 146 years, 2^62 bytes.
NUMBER_MAX = 1 << 62
#: A row of a call on nothing, to be changed by `dataclasses`-like keyword: see `row`.
_FIELDS = tuple(ROW.names or ())
_BLANK: dict[str, int] = {**dict.fromkeys(_FIELDS, 0), "file": -1, "file2": -1, "fd": -1}


def row(**given: int) -> tuple[int, ...]:
    """One call as a tuple in the order of `ROW`; what is not given is 0, or -1 for names and descriptors."""
    filled = {**_BLANK, **given}
    return tuple(filled[name] for name in _FIELDS)


def blank(count: int) -> Rows:
    """So many rows of calls on nothing."""
    rows = np.zeros(count, dtype=ROW)
    rows["file"] = rows["file2"] = rows["fd"] = -1
    return rows


@dataclass
class Process:
    """Who made calls, as far as the trace tells; -1 = unknown."""

    pid: int = -1
    parent_pid: int = 0
    rank: int = -1
    world: int = -1
    host: str = ""
    command: list[str] = field(default_factory=list)


class Names:
    """Paths by number; relative ones stand below `base`. Bytes that are not UTF-8, which come as surrogates, become the
    text `\\xNN`."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}
        self._places: dict[str, int] = {}
        #: Whether a path was relative.
        self.has_relative = False

    def code(self, text: str) -> int:
        """The number of a path, a new one when it is new; -1 for an empty one. What begins with `<` is no path."""
        if not text:
            return -1
        code = self._codes.get(text)
        if code is None:
            self.has_relative |= not text.startswith(("/", "<"))
            whole = text if text.startswith("<") else os.path.normpath(self.base / text)
            shown = whole.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            # One path may be written in several ways.
            code = self._codes[text] = self._places.setdefault(shown, len(self.texts))
            if code == len(self.texts):
                self.texts.append(shown)
        return code


@dataclass
class Notes:
    """What a reader has to say beside its rows. With `lenient`, what is bad is counted in `skipped`."""

    lenient: bool = False
    skipped: dict[str, int] = field(default_factory=dict)
    #: Why the trace is not the whole run, each one a phrase.
    partial: list[str] = field(default_factory=list)
    #: Whether time 0 of the rows is 1970.
    is_wall_clock: bool = True
    #: Further keys of meta.json.
    extra: dict[str, Any] = field(default_factory=dict)

    def miss(self, reason: str) -> None:
        """The trace is partial for this reason; said once."""
        if reason not in self.partial:
            self.partial.append(reason)

    def bad(self, place: str, why: str, cure: str) -> None:
        """A bad line or record: WorkloadError that says where, why and what to do; with `lenient`, one more skipped."""
        if not self.lenient:
            raise WorkloadError(f"{place}: {why}; {cure}")
        source = place.split(": ", 1)[0]
        self.skipped[source] = self.skipped.get(source, 0) + 1


@dataclass(frozen=True)
class Batch:
    """Rows of one process, in the order of its calls or not."""

    process: Process
    rows: Rows


class Reader(Protocol):
    """A format: yields batches of the processes in `files`; the same `Process` object means the same process.

    Raises WorkloadError naming file, line and cure.
    """

    def __call__(self, files: Sequence[Path], names: Names, notes: Notes) -> Iterator[Batch]: ...


class Gathered:
    """Rows that a reader makes one by one, by process, until there are enough for an array."""

    ROWS_MAX = 1 << 15

    def __init__(self) -> None:
        self._held: dict[int, tuple[Process, list[tuple[int, ...]]]] = {}
        self._count = 0

    def add(self, process: Process, made: tuple[int, ...]) -> None:
        """One more call, as `row` gives it."""
        held = self._held.get(id(process))
        if held is None:
            held = self._held[id(process)] = (process, [])
        held[1].append(made)
        self._count += 1

    @property
    def is_full(self) -> bool:
        """Whether it is time to take them."""
        return self._count >= self.ROWS_MAX

    def take(self) -> Iterator[Batch]:
        """All that is held, by process."""
        for process, rows in self._held.values():
            yield Batch(process, np.array(rows, dtype=ROW))
        self._held.clear()
        self._count = 0
