"""What was asked of MPI-IO and what came of it: calls on a file, and those on descriptors that were made for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..units import format_size
from ..workload.columns import codes_of_text, numbers
from ..workload.ranges import counts_of_ranges

Numbers = npt.NDArray[np.int64]

#: Columns of whole numbers that are looked at.
COLUMNS = ("thread", "seq", "parent", "parent_thread", "requested", "flags", "aux")
_COLLECTIVE, _NONBLOCKING = 4, 8


@dataclass(frozen=True)
class MpiCalls:
    """The reads, or the writes, of one file by MPI-IO, and the calls below that a trace knows for theirs."""

    #: read or write.
    op: str
    calls: int
    collective: int
    nonblocking: int
    #: Bytes done, and the ranges of the file that they lie in.
    bytes: int
    ranges: int
    #: On descriptors: how many that moved bytes, and their bytes.
    reads: int
    read_bytes: int
    writes: int
    written_bytes: int

    @property
    def sentence(self) -> str:
        """Both layers."""
        kind = "collective " if self.collective == self.calls else "independent " if not self.collective else ""
        each = self.ranges / self.calls
        spread = f" in {self.ranges:,} ranges" if each > 1 else ""
        said = (
            f"The program asks MPI-IO for {self.calls:,} {kind}{self.op}(s) of {format_size(self.bytes)} in all{spread}"
        )
        below = [
            f"{count:,} {name}(s) of {format_size(size)}"
            for count, size, name in (
                (self.reads, self.read_bytes, "read"), (self.writes, self.written_bytes, "write"),
            )
            if count
        ]  # fmt: skip
        return f"{said}; made of it: {', '.join(below)}." if below else f"{said}."


def mpi_calls(table: Any) -> dict[str, tuple[MpiCalls, ...]]:
    """By path; of a table with `COLUMNS` beside op, file, offset, done and process."""
    if "parent" not in table.column_names:
        return {}
    op, ops = codes_of_text(table, "op")
    file, paths = codes_of_text(table, "file")
    done, flags = np.maximum(numbers(table, "done", 0), 0), numbers(table, "flags", 0)

    def rows(name: str) -> Numbers:
        return np.flatnonzero(np.isin(op, [code for code, each in enumerate(ops) if each == name]) & (file >= 0))

    found: dict[str, list[MpiCalls]] = {}
    process, parent = numbers(table, "process", 0) << 32, numbers(table, "parent", -1)
    # Threads of processes are few: with a number of theirs above its own, a record has one key.
    threads = np.concatenate([process | numbers(table, "thread", 0), process | numbers(table, "parent_thread", 0)])
    number = np.unique(threads, return_inverse=True)[1].reshape(2, -1) << 40
    key = number[0] | numbers(table, "seq", 0)
    to = np.where(parent >= 0, number[1] | parent, -1)
    # Those that moved no byte, such as reads behind the end of the file, are requests nowhere else.
    children = {name: rows(name)[(to[rows(name)] >= 0) & (done[rows(name)] > 0)] for name in ("read", "write")}
    for name in ("read", "write"):
        calls = rows(f"mpi_{name}")
        if not len(calls):
            continue
        ranges = counts_of_ranges(table, calls)
        order = np.argsort(key[calls])
        below = {}
        for kind, those in children.items():
            at = np.searchsorted(key[calls], to[those], sorter=order)
            hit = order[np.minimum(at, len(calls) - 1)]
            same = (key[calls][hit] == to[those]) & (file[those] == file[calls][hit])
            below[kind] = those[same]
        for code in np.unique(file[calls]).tolist():
            mine = file[calls] == code
            chosen = calls[mine]
            made = {kind: those[file[those] == code] for kind, those in below.items()}
            found.setdefault(paths[code], []).append(
                MpiCalls(
                    name,
                    len(chosen),
                    int(((flags[chosen] & _COLLECTIVE) != 0).sum()),
                    int(((flags[chosen] & _NONBLOCKING) != 0).sum()),
                    int(done[chosen].sum()),
                    int(ranges[mine].sum()),
                    *(n for kind in ("read", "write") for n in (len(made[kind]), int(done[made[kind]].sum()))),
                )
            )
    return {path: tuple(each) for path, each in found.items()}
