"""What a trace tells beside the requests of the posix layer: calls by name, bytes of MPI-IO calls, lengths of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..workload.columns import checked_columns, codes_of_text, numbers
from ..workload.copied import Copied, copied_of
from ..workload.counted import Chosen, Touched
from ..workload.requests import LOSSES
from ..workload.syncs import Syncs, syncs_of
from ..workload.trace import opened, read_meta, run_place, trace_file, wanted_files
from .layers import COLUMNS, MpiCalls, mpi_calls
from .mpi_hints import FileHints, hints_in

#: Calls that ask for a name or an inode and move no bytes.
BY_NAME = (
    "open", "close", "stat", "access", "statfs", "unlink", "rename", "link", "symlink", "readlink", "mkdir", "rmdir",
    "mknod", "opendir", "readdir", "truncate", "setattr", "getattr",
)  # fmt: skip


@dataclass(frozen=True)
class MetadataCalls:
    """Calls by name on the program's own files."""

    #: By operation.
    counts: dict[str, int]
    files: int
    #: Seconds in them: of all processes, and of the one that spent the most.
    total_s: float
    longest_s: float
    #: Numbers of the processes that opened a file, by its path.
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


@dataclass(frozen=True)
class CallFacts:
    """What is known of files by other calls than requests, by path."""

    metadata: MetadataCalls = NOTHING
    wanted: dict[str, Wanted] = field(default_factory=dict)
    #: Reads and writes by MPI-IO, where the trace tells what was made of them.
    layers: dict[str, tuple[MpiCalls, ...]] = field(default_factory=dict)
    #: Bytes: where the furthest request ended, and what the file was cut or grown to.
    lengths: dict[str, int] = field(default_factory=dict)
    #: Whether calls of MPI-IO would be there if the program had made any: so in traces of our library.
    knows_mpi: bool = False
    #: Calls that wait until bytes are on the device.
    syncs: dict[str, Syncs] = field(default_factory=dict)
    #: Reads that copies have served.
    copied: dict[str, Copied] = field(default_factory=dict)
    #: Hints of MPI-IO, of files of which the trace has them.
    hints: dict[str, FileHints] = field(default_factory=dict)


def calls_of(path: Path, files: Chosen) -> CallFacts:
    """Of a collected trace; `files` says which files count. Raises WorkloadError naming the file."""
    source = trace_file(path)
    with opened(source) as parquet:
        columns = checked_columns(
            parquet.schema_arrow,
            source,
            ("op", "file", "start_ns", "end_ns"),
            ("layer", "process", "rank", "done", "offset", *COLUMNS),
        )
        table = parquet.read(columns=columns)
    op, ops = codes_of_text(table, "op")
    file, paths = codes_of_text(table, "file")

    def rows(names: Iterable[str]) -> npt.NDArray[np.bool_]:
        return np.isin(op, [code for code, name in enumerate(ops) if name in names]) & (file >= 0)

    done = np.maximum(numbers(table, "done", 0), 0)

    def moved(name: str) -> list[int]:
        chosen = rows([name])
        found: list[int] = np.bincount(file[chosen], done[chosen], len(paths)).astype(np.int64).tolist()
        return found

    wanted = {
        name: Wanted(read, written)
        for name, read, written in zip(paths, moved("mpi_read"), moved("mpi_write"), strict=True)
        if read or written
    }
    cut = rows(["truncate"]) & (numbers(table, "done", 0) >= 0)
    length = np.zeros(len(paths), dtype=np.int64)
    np.maximum.at(length, file[cut], numbers(table, "offset", 0)[cut])
    lengths = _lengths_in_meta(path)
    for code in np.flatnonzero(length).tolist():
        lengths[paths[code]] = max(int(length[code]), lengths.get(paths[code], 0))
    # A start in many directories is no habit of the program's I/O; a file that moves no byte may be.
    touched = dict.fromkeys(paths, Touched(0))
    meta = read_meta(path)
    place = run_place(meta)
    ours = set(wanted_files(touched, files, place=place, prefers_managed=False, least_bytes=0).files)
    by_name = np.flatnonzero(rows(BY_NAME) & np.isin(file, [code for code, name in enumerate(paths) if name in ours]))
    metadata = _metadata(table, by_name, (op, ops), (file, paths)) if len(by_name) else NOTHING
    syncs = {name: each for name, each in syncs_of(table).items() if name in ours}
    knows_mpi = bool(meta) and "imported" not in meta and "parent" in table.column_names
    if _loses_records(meta):
        # Of calls and the requests below them only some may be there, so neither tells of the other.
        knows_mpi, wanted = False, {}
    layers, copied = mpi_calls(table) if wanted else {}, copied_of(table)
    return CallFacts(metadata, wanted, layers, lengths, knows_mpi, syncs, copied, hints_in(meta))


def _loses_records(meta: Mapping[str, Any]) -> bool:
    """Whether a trace lacks some of the run's records, or the files that they are of."""
    return any(isinstance(meta.get(key), int) and meta[key] > 0 for key in LOSSES)


def _lengths_in_meta(path: Path) -> dict[str, int]:
    """Extents of files, as whoever wrote the trace knew them."""
    files = read_meta(path).get("files", [])
    found: dict[str, int] = {}
    for each in files if isinstance(files, list) else []:
        name, length = (each.get("path"), each.get("extent_bytes")) if isinstance(each, dict) else (None, None)
        if isinstance(name, str) and isinstance(length, int) and length < 1 << 63:
            found[name] = max(length, found.get(name, 0))
    return found


def _metadata(table: Any, rows: Any, ops: tuple[Any, list[str]], files: tuple[Any, list[str]]) -> MetadataCalls:
    """The calls by name in these rows."""
    op, file, paths = ops[0][rows], files[0][rows], files[1]
    process = numbers(table, "process", 0)[rows]
    spent = (numbers(table, "end_ns", 0) - numbers(table, "start_ns", 0))[rows] / 1e9
    counted = np.bincount(op, minlength=len(ops[1])).tolist()
    _, of = np.unique(process, return_inverse=True)
    opens = np.isin(op, [code for code, name in enumerate(ops[1]) if name == "open"])
    openers: dict[str, set[int]] = {}
    for code, number in np.unique(np.column_stack([file, process])[opens], axis=0).tolist():
        openers.setdefault(paths[code], set()).add(number)
    return MetadataCalls(
        {name: count for name, count in zip(ops[1], counted, strict=True) if count},
        len(np.unique(file)),
        float(spent.sum()),
        float(np.bincount(of, weights=spent).max()),
        {name: frozenset(each) for name, each in openers.items()},
    )
