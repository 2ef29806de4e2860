"""The calls of one process in a collected trace (docs/formats.md, Trace Parquet), as numpy columns.

Only processes that count (those of the MPI job where there is one, not its launchers) and files that count.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import NoRequestsError, WorkloadError
from ...workload.columns import checked_columns, codes_of_text, numbers
from ...workload.counted import BY_DEFAULT, Choice, Touched
from ...workload.trace import opened, read_meta, run_place, trace_file, wanted_files

Int = npt.NDArray[np.int64]
Code = npt.NDArray[np.int32]
Bool = npt.NDArray[np.bool_]

NEEDED = ("op", "file", "offset", "requested", "done", "start_ns", "end_ns")
OPTIONAL = (
    "layer", "rank", "world", "pid", "process", "seq", "thread", "fd", "handle", "comm_size", "errno", "flags", "aux",
    "parent", "parent_thread",
)  # fmt: skip
#: The columns of `Calls` that are read as whole numbers, and what stands for null.
NULLS = {
    "seq": -1, "thread": 0, "fd": -1, "handle": -1, "comm_size": -1, "offset": -1, "requested": 0, "done": 0,
    "start_ns": 0, "end_ns": 0, "errno": 0, "flags": 0, "aux": 0, "parent": -1, "parent_thread": -1,
}  # fmt: skip
EXTENT = "extent"
#: Operations whose ranges tell of views, and the columns that lead to these.
_RANGED = frozenset({EXTENT, "view"})
_OF_RANGES = frozenset({"seq", "parent_thread"})
#: Records that are looked at together.
BATCH = 1 << 16
_NEVER = frozenset({"fork", "exec", "exit", "dup"})


@dataclass(frozen=True, eq=False)
class Calls:
    """The calls of a process on files that count, in the order of the trace; those made inside MPI calls are left out.

    `extents` are the rows that tell what a call of MPI touches, of the same columns.
    """

    rank: int
    #: Numbers into `ops`, and of the file in `Trace.names`.
    op: Code
    ops: tuple[str, ...]
    is_mpi: Bool
    file: Code
    #: New name of a rename or link; -1 for none.
    file2: Code
    columns: Mapping[str, Int]
    extents: Mapping[str, Int]
    #: Rows that the process has in the trace, all of them.
    records: int

    def __len__(self) -> int:
        return len(self.op)

    def take(self, rows: Int) -> Calls:
        """Some of the calls, in this order."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        more = {name: getattr(self, name)[rows] for name in ("op", "is_mpi", "file", "file2")}
        return replace(self, columns=columns, **more)


@dataclass(eq=False)
class Trace:
    """A trace that is open: which row groups hold which rank, and the names found so far."""

    source: Path
    parquet: Any
    columns: list[str]
    choice: Choice
    meta: Mapping[str, Any]
    #: By rank the row groups.
    groups: dict[int, list[int]]
    processes: int
    #: By rank the number of the process in meta.json; -1 unknown.
    process_of: dict[int, int]
    #: Names of files that count, by number.
    names: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)
    _touched: dict[str, Touched] = field(default_factory=dict)

    @property
    def ranks(self) -> list[int]:
        """Ranks that were traced, ascending."""
        return sorted(self.groups)

    def calls(self, rank: int) -> Calls:
        """The calls of a rank. Raises WorkloadError."""
        groups = self.groups[rank]
        kept = self._table(groups, ("op", "file", "file2", "layer", "parent"))
        views = any(op in _RANGED for op in kept.column("op").chunk(0).dictionary.to_pylist()) if len(kept) else False
        more = [name for name in NULLS if name != "parent" and (views or name not in _OF_RANGES)]
        calls = self._of_table(rank, kept, self._table(groups, more))
        # Where the trace does not tell what was made inside calls of MPI (imported ones do not), the times do.
        tells = "parent" in kept.column_names and kept.column("parent").null_count < len(kept)
        return calls if tells or not calls.is_mpi.any() else calls.take(np.flatnonzero(~_inside_mpi(calls)))

    def _table(self, groups: list[int], wanted: Iterable[str]) -> Any:
        there = [name for name in wanted if name in self.columns or (name == "file2" and self._has_file2)]
        return self.parquet.read_row_groups(groups, columns=there).unify_dictionaries()

    @property
    def _has_file2(self) -> bool:
        return "file2" in self.parquet.schema_arrow.names

    def rows(self, rank: int) -> int:
        """Records of a rank."""
        return sum(self.parquet.metadata.row_group(group).num_rows for group in self.groups[rank])

    def first(self, rank: int, most: int) -> list[tuple[Code, tuple[str, ...]]]:
        """The operations of the first `most` records or a few more, in parts, without those made inside others."""
        names = [name for name in ("op", "file", "parent") if name in self.columns]
        found: list[tuple[Code, tuple[str, ...]]] = []
        seen = 0
        for batch in self.parquet.iter_batches(BATCH, row_groups=self.groups[rank], columns=names):
            op, ops, _, keep = self._kept(pa.Table.from_batches([batch]))
            found.append((op[keep], ops))
            seen += len(op)
            if seen >= most:
                break
        return found

    def _kept(self, table: Any) -> tuple[Code, tuple[str, ...], Code, Bool]:
        op, ops = codes_of_text(table, "op")
        file, paths = codes_of_text(table, "file")
        known = np.append(np.array(self._known(paths), np.int32), np.int32(-1))
        code = known[file]
        dropped = np.array([name == EXTENT or name in _NEVER for name in ops] + [True])
        keep = (code >= 0) & ~dropped[op]
        if "parent" in table.column_names and table.column("parent").null_count < table.num_rows:
            keep &= np.asarray(table.column("parent").is_null())
        return op.astype(np.int32), tuple(ops), code, keep

    def _of_table(self, rank: int, table: Any, more: Any) -> Calls:
        op, ops, file, keep = self._kept(table)
        is_extent = np.array([name == EXTENT for name in ops] + [False])[op] & (file >= 0)
        keep_rows, extent_rows = np.flatnonzero(keep), np.flatnonzero(is_extent)
        given = {name: numbers(table if name == "parent" else more, name, null) for name, null in NULLS.items()}
        layer = np.zeros(table.num_rows, np.bool_)
        if "layer" in table.column_names:
            code, layers = codes_of_text(table, "layer")
            layer = np.array([name == "mpi" for name in layers] + [False])[code]
        file2 = np.full(table.num_rows, -1, np.int32)
        if "file2" in table.column_names and table.column("file2").null_count < table.num_rows:
            code2, paths = codes_of_text(table, "file2")
            file2 = np.append(np.array(self._known(paths), np.int32), np.int32(-1))[code2]
        return Calls(
            rank=rank,
            op=op[keep_rows],
            ops=ops,
            is_mpi=layer[keep_rows],
            file=file[keep_rows],
            file2=file2[keep_rows],
            columns={name: column[keep_rows] for name, column in given.items()},
            extents={name: column[extent_rows] for name, column in given.items()} if len(extent_rows) else {},
            records=table.num_rows,
        )

    def _known(self, paths: list[str]) -> list[int]:
        """Numbers of names; -1 for those that do not count."""
        whole = [self._whole(path) for path in paths]
        fresh = {name: self._touched.get(name, Touched(0)) for name in whole if name not in self._numbers}
        fresh.pop("", None)
        if fresh:
            place = run_place(self.meta)
            found = wanted_files(fresh, self.choice, place=place, prefers_managed=False, least_bytes=0)
            counted = set(found.files)
            for name in fresh:
                self._numbers[name] = len(self.names) if name in counted else -1
                if name in counted:
                    self.names.append(name)
        return [self._numbers.get(name, -1) for name in whole]

    def _whole(self, path: str) -> str:
        """A name from the root on: calls that take a path note it as the program wrote it, seen from its directory."""
        place = run_place(self.meta)
        if not path or path.startswith(("/", "<")) or not place.startswith("/"):
            return path
        return os.path.normpath(os.path.join(place, path))


@contextmanager
def open_trace(path: Path, choice: Choice = BY_DEFAULT) -> Iterator[Trace]:
    """Opens a collected trace. Raises WorkloadError, also in the body, where it cannot be read."""
    source, meta = trace_file(path), read_meta(path)
    with opened(source) as parquet:
        columns = checked_columns(parquet.schema_arrow, source, NEEDED, OPTIONAL)
        rows = [_process(parquet, group, columns) for group in range(parquet.num_row_groups)]
        known = [row for row in rows if row is not None]
        ranked = [row for row in known if row[0] >= 0]
        groups: dict[int, list[int]] = {}
        process_of: dict[int, int] = {}
        world = 0
        numbers_of: dict[tuple[int, int], int] = {}
        for rank, of, process, pid, group in ranked or known:
            world = max(world, of)
            # Without ranks processes count in the order in which they stand.
            number = rank if ranked else numbers_of.setdefault((process, pid), len(numbers_of))
            groups.setdefault(number, []).append(group)
            process_of[number] = process
        if not groups:
            raise NoRequestsError(f"{source}: holds no records; trace a run that does I/O")
        processes = max(world if ranked else 0, max(groups) + 1)
        trace = Trace(source, parquet, columns, choice, meta, groups, processes, process_of)
        trace._touched.update(_touched(meta))
        if not ranked:
            _drop_idle(trace)
        yield trace


def _process(parquet: Any, group: int, columns: list[str]) -> tuple[int, int, int, int, int] | None:
    """Rank, world, process, pid of a row group by its first row, and its number; None of one without rows."""
    names = [name for name in ("rank", "world", "process", "pid") if name in columns]
    if not parquet.metadata.row_group(group).num_rows:
        return None
    table = parquet.read_row_group(group, columns=names or columns[:1])
    found = {name: int(numbers(table.slice(0, 1), name, -1)[0]) for name in names}
    for name in ("rank", "process"):
        if name in found and len(pc.unique(table.column(name))) > 1:
            raise WorkloadError(
                f"{parquet.metadata.row_group(group).column(0).file_path or 'trace.parquet'}: row group {group} holds "
                f"several of '{name}'; give a trace that 'stripewise collect' wrote"
            )
    return found.get("rank", -1), found.get("world", -1), found.get("process", -1), found.get("pid", -1), group


def _inside_mpi(calls: Calls) -> Bool:
    """The posix calls that began and ended while a call of MPI of the same thread was under way."""
    start, end, thread = (calls.columns[name] for name in ("start_ns", "end_ns", "thread"))
    found = np.zeros(len(calls), np.bool_)
    for each in np.unique(thread).tolist():
        outer = np.flatnonzero(calls.is_mpi & (thread == each))
        inner = np.flatnonzero(~calls.is_mpi & (thread == each))
        if len(outer) and len(inner):
            outer = outer[np.argsort(start[outer], kind="stable")]
            at = np.searchsorted(start[outer], start[inner], side="right") - 1
            around = outer[np.maximum(at, 0)]
            found[inner] = (at >= 0) & (end[inner] <= end[around])
    return found


def _touched(meta: Mapping[str, Any]) -> dict[str, Touched]:
    found = {}
    files = meta.get("files")
    for row in files if isinstance(files, list) else []:
        if isinstance(row, dict) and isinstance(row.get("path"), str):
            read, written = (row.get(key) for key in ("bytes_read", "bytes_written"))
            moved = sum(each for each in (read, written) if isinstance(each, int))
            found[row["path"]] = Touched(moved, row.get("managed") is True, bool(written))
    return found


def _drop_idle(trace: Trace) -> None:
    """Of processes without ranks those that touch no file that counts (shells, launchers) go; the others close up."""
    busy = [rank for rank in trace.ranks if any(len(op) for op, _ in trace.first(rank, trace.rows(rank)))]
    if busy and len(busy) < len(trace.groups):
        groups, process_of = trace.groups, trace.process_of
        trace.groups = {number: groups[rank] for number, rank in enumerate(busy)}
        trace.process_of = {number: process_of[rank] for number, rank in enumerate(busy)}
        trace.processes = len(busy)
