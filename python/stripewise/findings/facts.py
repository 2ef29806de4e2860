"""What findings are made of: the requests of each file as arrays, and the calls by name beside them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import WorkloadError
from ..pattern.records import FileRecords, TraceRecords, is_wanted, read_records
from ..workload.columns import TEXTS, codes_of_text, numbers
from ..workload.trace import partial_reasons, trace_file
from .price import Asked

#: Calls that ask for a name or an inode and move no bytes.
BY_NAME = frozenset({
    "open", "close", "stat", "access", "statfs", "unlink", "rename", "link", "symlink", "readlink", "mkdir", "rmdir",
    "mknod", "opendir", "readdir", "truncate", "setattr", "getattr",
})  # fmt: skip
#: Files of a program's own code, which its start looks for in many places: no habit of its I/O.
CODE = re.compile(r"/site-packages/|/lib/python3|/__pycache__|\.pyc?$|\.so(\.|$)|\.pth$")


@dataclass(frozen=True)
class MetadataCalls:
    """Calls by name on the program's own files."""

    #: By operation.
    counts: dict[str, int]
    files: int
    #: Seconds in them: of all processes, and of the one that spent the most.
    total_s: float
    longest_s: float
    #: Paths that each process opened, by its number.
    openers: dict[str, frozenset[int]]

    @property
    def calls(self) -> int:
        """All of them."""
        return sum(self.counts.values())


NOTHING = MetadataCalls({}, 0, 0.0, 0.0, {})


@dataclass(frozen=True)
class Wanted:
    """Bytes that a program asked for by MPI-IO, of one file."""

    read: int
    written: int


class FileFacts:
    """The requests of one file, by process and in each by start."""

    def __init__(self, records: FileRecords, openers: int, wanted: Wanted | None = None) -> None:
        if (np.diff(records.rank) < 0).any():
            records = _by_process(records)
        self.records = records
        #: Processes that opened it; 0 where the trace has no opens.
        self.openers = openers
        #: What MPI-IO calls moved; None where the trace has none of the file.
        self.wanted = wanted
        self.size = records.size
        self.offset = records.offset
        self.write = np.array([kind.op == "write" for kind in records.kinds])[records.kind]
        #: The ranks that moved bytes, and which of them each request is of.
        self.ranks, self.rank = np.unique(records.rank, return_inverse=True)

    @property
    def path(self) -> str:
        """Of the file."""
        return self.records.path

    def of(self, write: bool) -> FileFacts | None:
        """Its writes, or its reads; None where there are none."""
        chosen = np.flatnonzero(self.write == write)
        if not len(chosen):
            return None
        return self if len(chosen) == len(self.write) else FileFacts(_rows(self.records, chosen), self.openers)

    @property
    def who(self) -> str:
        """What its processes are called."""
        return "rank" if self.records.is_ranked else "process"

    @property
    def who_all(self) -> str:
        """The same of several."""
        return "ranks" if self.records.is_ranked else "processes"

    @cached_property
    def asked(self) -> Asked:
        """For prices."""
        return Asked.each(self.size, self.write, self.rank.astype(np.int64), len(self.ranks))

    @cached_property
    def follows(self) -> npt.NDArray[np.bool_]:
        """Whether a request begins where the one before it of the same process and operation ended."""
        found = np.zeros(len(self.size), dtype=bool)
        order = np.lexsort((np.arange(len(self.size)), self.write, self.rank))
        key = (self.rank * 2 + self.write)[order]
        end = (self.offset + self.size)[order]
        found[order[1:]] = (key[1:] == key[:-1]) & (self.offset[order][1:] == end[:-1])
        return found

    @cached_property
    def io_s(self) -> npt.NDArray[np.float64]:
        """Seconds of each of `ranks` in requests."""
        spent = (self.records.end_ns - self.records.start_ns) / 1e9
        return np.bincount(self.rank, weights=spent, minlength=len(self.ranks)).astype(np.float64)


def _by_process(records: FileRecords) -> FileRecords:
    return _rows(records, np.lexsort((records.start_ns, records.rank)))


def _rows(records: FileRecords, order: npt.NDArray[np.intp]) -> FileRecords:
    columns = ("rank", "stream", "kind", "offset", "size", "start_ns", "end_ns")
    return replace(records, **{name: getattr(records, name)[order] for name in columns})


@dataclass(frozen=True)
class RunFacts:
    """A run: files by bytes, most first."""

    source: str
    processes: int
    files: tuple[FileFacts, ...]
    metadata: MetadataCalls
    trace: TraceRecords | None
    #: Whether some requests were made up from counters: their order and places prove little.
    is_estimated: bool = False

    @property
    def requests(self) -> int:
        """That moved bytes."""
        return sum(len(file.size) for file in self.files)

    @property
    def bytes_moved(self) -> int:
        """By all of them."""
        return sum(int(file.size.sum()) for file in self.files)


def facts_of(path: str | os.PathLike[str], files: Sequence[str] = (), only: Collection[str] | None = None) -> RunFacts:
    """The facts of a collected trace; `files` are shell patterns of paths to keep, `only` those of requests to keep.

    Raises WorkloadError naming the file where it cannot be read, or holds neither a request nor a call by name.
    """
    metadata, wanted = _beside(Path(path), files)
    try:
        trace = read_records(path, files)
    except WorkloadError:
        if not metadata.calls:
            raise
        trace = None
    if trace is not None and only is not None:
        trace = replace(trace, files=tuple(each for each in trace.files if each.path in only))
    found = [] if trace is None else [
        FileFacts(each, len(metadata.openers.get(each.path, ())), wanted.get(each.path)) for each in trace.files
    ]  # fmt: skip
    found.sort(key=lambda file: -int(file.size.sum()))
    processes = max(1, len(set().union(*metadata.openers.values())) if metadata.openers else 1)
    return RunFacts(
        str(trace_file(Path(path))),
        processes if trace is None else trace.processes,
        tuple(found),
        metadata,
        trace,
        any("estimated" in reason for reason in partial_reasons(Path(path))),
    )


def _beside(path: Path, files: Sequence[str]) -> tuple[MetadataCalls, dict[str, Wanted]]:
    """What is not a request of the posix layer: calls by name, and bytes that MPI-IO calls moved by path."""
    source = trace_file(path)
    try:
        texts = [name for name in TEXTS if name in pq.read_schema(source).names]
        with pq.ParquetFile(source, read_dictionary=texts) as parquet:
            names = set(parquet.schema_arrow.names)
            if not {"op", "file", "start_ns", "end_ns"} <= names:
                return NOTHING, {}
            columns = ["op", "file", "start_ns", "end_ns", "layer", "process", "done"]
            table = parquet.read(columns=[name for name in columns if name in names])
    except (OSError, pa.ArrowException) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise WorkloadError(f"{source}: cannot be read as Parquet ({said}); collect it again") from error
    op_code, ops = codes_of_text(table, "op")
    file_code, paths = codes_of_text(table, "file")
    ours = [
        code for code, name in enumerate(paths)
        if name and is_wanted(name, files) and (files or CODE.search(name) is None)
    ]  # fmt: skip
    keep = np.isin(op_code, [code for code, op in enumerate(ops) if op in BY_NAME]) & np.isin(file_code, ours)
    rows = np.flatnonzero(keep)
    if not len(rows):
        return NOTHING, _wanted(table, op_code, ops, file_code, paths)
    op, file = op_code[rows], file_code[rows]
    process = numbers(table, "process", 0)[rows]
    spent = (numbers(table, "end_ns", 0) - numbers(table, "start_ns", 0))[rows] / 1e9
    counted = np.bincount(op, minlength=len(ops)).tolist()
    _, of = np.unique(process, return_inverse=True)
    pairs = np.unique(
        np.column_stack([file, process])[np.isin(op, [c for c, name in enumerate(ops) if name == "open"])], axis=0
    )
    openers: dict[str, set[int]] = {}
    for code, number in pairs.tolist():
        openers.setdefault(paths[code], set()).add(number)
    found = MetadataCalls(
        {name: count for name, count in zip(ops, counted, strict=True) if count},
        len(np.unique(file)),
        float(spent.sum()),
        float(np.bincount(of, weights=spent).max()),
        {name: frozenset(each) for name, each in openers.items()},
    )
    return found, _wanted(table, op_code, ops, file_code, paths)


def _wanted(table: Any, op_code: Any, ops: list[str], file_code: Any, paths: list[str]) -> dict[str, Wanted]:
    """Bytes by MPI-IO calls."""
    done = np.maximum(numbers(table, "done", 0), 0)
    sums = []
    for op in ("mpi_read", "mpi_write"):
        chosen = np.isin(op_code, [code for code, name in enumerate(ops) if name == op]) & (file_code >= 0)
        sums.append(
            np.bincount(file_code[chosen], weights=done[chosen], minlength=len(paths)).astype(np.int64).tolist()
        )
    return {path: Wanted(read, written) for path, read, written in zip(paths, *sums, strict=True) if read or written}
