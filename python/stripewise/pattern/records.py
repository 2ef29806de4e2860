"""Reads a collected trace into the records of each file, field by field, for the recogniser.

A record is a read or a write that moved bytes at a known offset. Its *kind* stands for all its fields but offset, bytes
done, and times: operation, layer, bytes short of what was asked, errno, flags, aux. A *stream* is what one thread did
through one descriptor.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import WorkloadError
from ..plan.application import application_of
from ..workload.columns import checked_columns, codes_of_text, numbers
from ..workload.copied import replica_of
from ..workload.counted import Chosen, Counted, Touched
from ..workload.ranges import ranges_of
from ..workload.trace import (
    FLAG_COPIED,
    FLAG_MANAGED,
    no_requests,
    opened,
    read_meta,
    run_place,
    trace_file,
    wanted_files,
    with_mpi_alone,
)

#: Operations of each layer that move bytes.
DATA_OPS = {"posix": {"read": "read", "write": "write"}, "mpi": {"mpi_read": "read", "mpi_write": "write"}}
#: Columns of whole numbers, and what stands where they are missing or null.
OPTIONAL = {
    "process": -1, "rank": -1, "world": -1, "thread": -1, "fd": -1, "handle": -1, "requested": -1, "errno": 0,
    "flags": 0, "aux": 0,
}  # fmt: skip
#: The fields that a kind stands for, beside operation.
KIND_FIELDS = ("short", "errno", "flags", "aux")

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Kind:
    """What records have in common beside place, size and time."""

    #: read or write.
    op: str
    #: Bytes asked for and not done.
    short: int = 0
    errno: int = 0
    flags: int = 0
    aux: int = 0


@dataclass(frozen=True)
class FileRecords:
    """The records of one file: arrays of one length, by process, in each by start."""

    path: str
    #: Whether `rank` is an MPI rank: known of all records.
    is_ranked: bool
    #: Rank in MPI_COMM_WORLD, or the number of the process where ranks are unknown.
    rank: Numbers
    #: Number of the stream.
    stream: npt.NDArray[np.uint64]
    #: Place in `kinds`.
    kind: npt.NDArray[np.uint32]
    kinds: tuple[Kind, ...]
    offset: Numbers
    size: Numbers
    start_ns: Numbers
    end_ns: Numbers
    #: Which reads copies of the file have served; None: none.
    copied: npt.NDArray[np.bool_] | None = None
    #: By the number of the replica; -1: none, or it is not known.
    replica: Numbers | None = None

    def __len__(self) -> int:
        return len(self.offset)


@dataclass(frozen=True)
class TraceRecords:
    """A trace for the recogniser."""

    source: str
    application: str
    #: Processes of the run.
    processes: int
    files: tuple[FileRecords, ...]
    #: Of the files that do not count, how many of each kind.
    left_out: tuple[tuple[str, int], ...] = ()

    @property
    def is_ranked(self) -> bool:
        """Whether ranks are known of all files."""
        return all(file.is_ranked for file in self.files)


def read_records(
    path: str | os.PathLike[str],
    files: Chosen = (),
    layer: str = "posix",
    only: Collection[str] | None = None,
) -> TraceRecords:
    """The records of `layer` in a collected trace, files with most bytes first; `files` says which, `only` has paths.

    Without `only`, those that count; managed or not makes no difference. Raises NoRequestsError where nothing is left,
    WorkloadError naming the file where it cannot be read.
    """
    source = trace_file(Path(path))
    meta = read_meta(Path(path))
    command = meta.get("command", [])

    def counted(touched: dict[str, Touched]) -> Counted:
        if only is not None:
            return Counted(tuple(name for name in touched if name in only))
        return wanted_files(touched, files, place=run_place(meta), prefers_managed=False)

    with opened(source) as parquet:
        table = parquet.read(columns=checked_columns(parquet.schema_arrow, source, optional=(*OPTIONAL, "layer")))
    try:
        found, which = _records(table, layer, counted)
    except WorkloadError as error:
        raise WorkloadError(f"{source}: {error}") from error
    if not found.files:
        nothing = no_requests(source, files, which, f"{layer} read or write")
        if layer == "posix" and only is None and len(_records(table, "mpi", counted)[0].files):
            raise with_mpi_alone(nothing)
        raise nothing
    application = application_of(str(word) for word in command) if isinstance(command, list) else ""
    return replace(found, source=str(source), application=application, left_out=which.numbers)


def codes_of(columns: Iterable[npt.NDArray[Any]]) -> tuple[npt.NDArray[np.uint64], Numbers]:
    """A number for each combination of values in the columns, and the first row of each combination."""
    codes: npt.NDArray[Any] | None = None
    for column in columns:
        # Most columns say one thing only.
        if len(column) and (column == column[0]).all():
            continue
        _, inverse = np.unique(column, return_inverse=True)
        codes = inverse if codes is None else codes * (int(inverse.max()) + 1) + inverse
        _, codes = np.unique(codes, return_inverse=True)
    if codes is None:
        rows = len(next(iter(columns)))
        return np.zeros(rows, dtype=np.uint64), np.zeros(min(rows, 1), dtype=np.int64)
    _, first = np.unique(codes, return_index=True)
    return codes.astype(np.uint64), first.astype(np.int64)


def _records(table: Any, layer: str, counted: Callable[[dict[str, Touched]], Counted]) -> tuple[TraceRecords, Counted]:
    """The records of the files that count, and which ones these are."""
    op_code, ops = codes_of_text(table, "op")
    file_code, paths = codes_of_text(table, "file")
    wanted = DATA_OPS[layer]
    keep = np.isin(op_code, [code for code, op in enumerate(ops) if op in wanted])
    keep &= np.asarray(table.column("offset").is_valid()) & (numbers(table, "done", 0) > 0)
    if "layer" in table.column_names:
        layer_code, layers = codes_of_text(table, "layer")
        keep &= np.isin(layer_code, [code for code, name in enumerate(layers) if name == layer])
    # What the launcher of an MPI job reads of the system is no part of the job.
    which = counted(_touched(table, np.flatnonzero(keep & (file_code >= 0)), (op_code, ops), (file_code, paths)))
    kept = set(which.files)
    keep &= np.isin(file_code, [code for code, path in enumerate(paths) if path in kept])
    rows = np.flatnonzero(keep)
    if not len(rows):
        return TraceRecords("", "", 1, ()), which
    ranges = ranges_of(table, rows) if layer == "mpi" else None
    if ranges is not None:
        rows = rows[ranges.call]
    columns = {name: numbers(table, name, default)[rows] for name, default in OPTIONAL.items()}
    taken = {name: numbers(table, name, 0)[rows] for name in ("offset", "done", "start_ns", "end_ns")}
    if ranges is not None:
        # A record is a range: what a call was cut short by is none's.
        taken["offset"], taken["done"] = ranges.offset, ranges.size
        columns["requested"] = ranges.size
    op_code, file_code = op_code[rows], file_code[rows]
    is_asked = "requested" in table.column_names
    # Who served a read is no part of what was asked.
    copied = (columns["flags"] & FLAG_COPIED) != 0
    replica = replica_of(columns["aux"], copied)
    columns["flags"], columns["aux"] = columns["flags"] & ~FLAG_COPIED, np.where(copied, 0, columns["aux"])
    columns["short"] = columns["requested"] - taken["done"] if is_asked else np.zeros(len(rows), dtype=np.int64)
    handle = columns["handle" if layer == "mpi" else "fd"]
    order = np.argsort(file_code, kind="stable")
    begins = np.flatnonzero(np.diff(file_code[order], prepend=-2))
    files = []
    for begin, end in zip(begins.tolist(), [*begins.tolist()[1:], len(order)], strict=True):
        mine = order[begin:end]
        is_ranked = bool((columns["rank"][mine] >= 0).all())
        process = columns["rank" if is_ranked else "process"][mine]
        kind, first = codes_of([op_code[mine], *(columns[name][mine] for name in KIND_FIELDS)])
        stream, _ = codes_of([columns["process"][mine], process, columns["thread"][mine], handle[mine]])
        kinds = tuple(
            Kind(wanted[ops[op_code[row]]], *(int(columns[name][row]) for name in KIND_FIELDS))
            for row in mine[first].tolist()
        )
        offset, size, start, end_ns = (
            np.ascontiguousarray(taken[name][mine]) for name in ("offset", "done", "start_ns", "end_ns")
        )
        by_copy = (copied[mine], replica[mine]) if copied[mine].any() else (None, None)
        files.append(
            FileRecords(
                paths[file_code[mine[0]]], is_ranked, process, stream, kind.astype(np.uint32), kinds,
                offset, size, start, end_ns, *by_copy,
            )
        )  # fmt: skip
    # A job is its ranks where they are known; what its launcher does beside is told by the numbers of processes.
    ranks = np.unique(columns["rank"][columns["rank"] >= 0])
    world = int(columns["world"].max(initial=-1))
    processes = max(world, len(ranks) or len(np.unique(columns["process"])), 1)
    files.sort(key=lambda file: (-float(file.size.sum(dtype=np.float64)), file.path))
    return TraceRecords("", "", processes, tuple(files)), which


def _touched(
    table: Any, rows: Numbers, ops: tuple[Numbers, list[str]], files: tuple[Numbers, list[str]]
) -> dict[str, Touched]:
    """What these rows did to each of their files."""
    codes, paths = files
    file = codes[rows]
    count = len(paths)
    # Lengths may be any: sums of a damaged trace's must not turn negative.
    moved = np.bincount(file, weights=numbers(table, "done", 0)[rows], minlength=count)
    is_write = np.isin(ops[0][rows], [code for code, op in enumerate(ops[1]) if op.endswith("write")])
    written = np.bincount(file[is_write], minlength=count)
    managed = np.bincount(file[(numbers(table, "flags", 0)[rows] & FLAG_MANAGED) != 0], minlength=count)
    return {
        paths[code]: Touched(int(moved[code]), bool(managed[code]), bool(written[code]))
        for code in np.unique(file).tolist()
    }
