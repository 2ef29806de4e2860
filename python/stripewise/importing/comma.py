"""CSV: one record per line under a header of names; ours (docs/traces/importing.md), and one with the fields of IOSIG.

Lines are parsed by pyarrow a few megabytes at a time; a piece that it refuses is gone through line by line, so that the
line that is wrong is named.
"""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from ..errors import WorkloadError
from .mpi_names import mpi_operation
from .records import (
    COLLECTIVE,
    MANAGED,
    MPI_FIRST,
    NUMBER_MAX,
    OP,
    UNKNOWN_OFFSET,
    Batch,
    Names,
    Notes,
    Process,
    Rows,
    blank,
)
from .text import BadLineError, Lines, integer, quoted

#: Lines that are parsed at once.
PIECE_LINES = 1 << 16
#: Longest request that is believed: 2^48 bytes.
SIZE_MAX = 1 << 48
_INT32_MAX = (1 << 31) - 1
#: Columns of whole numbers with their least and greatest value.
_INTEGERS: dict[str, tuple[int, int]] = {
    "process": (0, _INT32_MAX), "pid": (-1, _INT32_MAX), "rank": (-1, _INT32_MAX), "world": (-1, _INT32_MAX),
    "thread": (-1, _INT32_MAX), "seq": (0, NUMBER_MAX - 1), "fd": (-1, _INT32_MAX), "handle": (-1, _INT32_MAX),
    "comm_size": (0, _INT32_MAX), "offset": (0, NUMBER_MAX - 1), "requested": (0, SIZE_MAX), "size": (0, SIZE_MAX),
    "done": (-1, SIZE_MAX), "errno": (0, 4095), "flags": (0, _INT32_MAX), "aux": (-_INT32_MAX, _INT32_MAX),
}  # fmt: skip
_TEXTS = ("host", "layer", "op", "file", "file2")
_YES_NO = ("collective", "managed")
#: Units of time and how many ns they are.
_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIMES = {f"{what}_{unit}": factor for what in ("start", "end") for unit, factor in _UNITS.items()}
_ALIASES = {"operation": "op", "path": "file"}
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no", "")


def _kind(name: str) -> Any:
    """The type of a column in pyarrow's terms."""
    if name in _INTEGERS or name == "file_id" or name.endswith("_ns"):
        return pa.int64()
    return pa.float64() if name in _TIMES else pa.string()


class _Table:
    """One file: its header, and pieces of its lines as columns."""

    def __init__(self, path: Path, notes: Notes) -> None:
        self.lines = Lines(path, notes)
        self._numbered = ((n, line) for n, line in self.lines if line.strip() and not line.startswith("#"))
        number, first = next(self._numbered, (1, ""))
        self.header = [_ALIASES.get(name.strip(), name.strip()) for name in first.lstrip("\ufeff").split(",")]
        self.is_mapping = set(self.header) == {"file_id", "file"}
        if not self.is_mapping:
            self._check_header(f"{path}: line {number}")

    def _check_header(self, where: str) -> None:
        known = {*_INTEGERS, *_TEXTS, *_YES_NO, *_TIMES, "file_id"}
        cure = "write the header as in docs/traces/importing.md"
        for name in self.header:
            if name not in known:
                near = difflib.get_close_matches(name, sorted(known), 1)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
                raise WorkloadError(f"{where}: column {quoted(name)} is not a known one; {hint}")
            if self.header.count(name) > 1:
                raise WorkloadError(f"{where}: column {quoted(name)} stands twice; {cure}")
        for choice in (("op",), ("file", "file_id"), ("offset",), ("done", "requested", "size"), _units("start")):
            if not set(choice) & set(self.header):
                raise WorkloadError(f"{where}: has no column {' or '.join(choice)}; {cure}")

    def pieces(self) -> Iterator[tuple[Any, list[int]]]:
        """Tables of columns with the numbers of their lines."""
        while piece := list(islice(self._numbered, PIECE_LINES)):
            numbers, lines = [n for n, _ in piece], [line for _, line in piece]
            table = self._fast(lines)
            yield self._slow(piece) if table is None else (table, numbers)

    def _fast(self, lines: list[str]) -> Any:
        data = "\n".join(lines).encode("utf-8", "surrogateescape")
        kinds = {name: _kind(name) for name in self.header}
        try:
            table = pacsv.read_csv(
                io.BytesIO(data),
                pacsv.ReadOptions(column_names=self.header, use_threads=False),
                pacsv.ParseOptions(ignore_empty_lines=False),
                pacsv.ConvertOptions(column_types=kinds, null_values=[""], strings_can_be_null=True),
            )
        except (pa.ArrowException, ValueError):
            return None
        return table if table.num_rows == len(lines) else None

    def _slow(self, piece: list[tuple[int, str]]) -> tuple[Any, list[int]]:
        columns: dict[str, list[Any]] = {name: [] for name in self.header}
        numbers = []
        for number, line in piece:
            try:
                cells = self._cells(line)
            except (BadLineError, csv.Error) as error:
                self.lines.bad(str(error), number)
                continue
            numbers.append(number)
            for name, cell in zip(self.header, cells, strict=True):
                columns[name].append(cell)
        return pa.table({name: pa.array(cells, _kind(name)) for name, cells in columns.items()}), numbers

    def _cells(self, line: str) -> list[Any]:
        cells = next(csv.reader([line], strict=True))
        if len(cells) != len(self.header):
            raise BadLineError(f"has {len(cells)} fields, the header {len(self.header)}")
        return [_cell(name, cell) for name, cell in zip(self.header, cells, strict=True)]


def _units(what: str) -> tuple[str, ...]:
    return tuple(f"{what}_{unit}" for unit in _UNITS)


def _cell(name: str, text: str) -> Any:
    if not text:
        return None
    kind = _kind(name)
    if kind == pa.int64():
        return integer(text, name, -NUMBER_MAX, NUMBER_MAX)
    if kind == pa.float64():
        try:
            return float(text)
        except ValueError as error:
            raise BadLineError(f"its {name} {quoted(text)} is not a number") from error
    # Such bytes are no text for pyarrow.
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class _Columns:
    """One piece as numpy columns; `bad` holds, per row, what is wrong with it."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.count = table.num_rows
        self.bad: dict[int, str] = {}

    def refuse(self, rows: np.ndarray[Any, Any], why: str) -> None:
        for place in np.flatnonzero(rows).tolist():
            self.bad.setdefault(place, why)

    def has(self, name: str) -> bool:
        return name in self.table.column_names

    def numbers(self, name: str, default: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """A column of whole numbers in its range; where a cell is empty, or there is no column, the default."""
        if not self.has(name):
            return np.full(self.count, default, dtype=np.int64)
        column = self.table.column(name)
        values = np.asarray(column.fill_null(default).to_numpy()).astype(np.int64)
        low, high = _INTEGERS[name]
        self.refuse(np.asarray(column.is_valid()) & ((values < low) | (values > high)), f"its {name} is out of range")
        return values

    def known(self, name: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        valid = self.table.column(name).is_valid() if self.has(name) else np.zeros(self.count, dtype=bool)
        known: np.ndarray[Any, np.dtype[np.bool_]] = np.asarray(valid, dtype=np.bool_)
        return known

    def times_ns(self, what: str) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """`start` or `end` in ns; None without such a column."""
        for name in _units(what):
            if self.has(name):
                column = self.table.column(name)
                self.refuse(np.asarray(column.is_null()), f"its {name} is empty")
                values = np.asarray(column.fill_null(0).to_numpy())
                scaled = values if name.endswith("_ns") else np.nan_to_num(values * _TIMES[name], nan=-1)
                wrong = (scaled < 0) | (scaled >= NUMBER_MAX)
                self.refuse(wrong, f"its {name} is not a time from 0 on")
                return np.where(wrong, 0, scaled).astype(np.int64)
        return None

    def texts(self, name: str) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[str]]:
        """A column as numbers of its distinct texts; an empty cell is the text ''."""
        if not self.has(name):
            return np.zeros(self.count, dtype=np.int64), [""]
        coded = self.table.column(name).cast(pa.string()).fill_null("").combine_chunks().dictionary_encode()
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.unify_dictionaries().combine_chunks()
        return np.asarray(coded.indices).astype(np.int64), coded.dictionary.to_pylist()

    def truths(self, name: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        codes, words = self.texts(name)
        known = np.array([word.lower() in (*_TRUE, *_FALSE) for word in words] or [True])
        self.refuse(~known[codes], f"its {name} is neither true nor false")
        is_true: np.ndarray[Any, np.dtype[np.bool_]] = np.isin(
            codes, [n for n, w in enumerate(words) if w.lower() in _TRUE]
        )
        return is_true


class _Import:
    """All files of one import: processes by what tells them apart."""

    def __init__(self, names: Names, notes: Notes) -> None:
        self.names = names
        self.notes = notes
        self.paths: dict[int, str] = {}
        self.processes: dict[tuple[Any, ...], Process] = {}

    def learn(self, table: _Table) -> None:
        """A file that maps numbers of files to paths."""
        for piece, _ in table.pieces():
            self.paths.update(zip(piece.column("file_id").to_pylist(), piece.column("file").to_pylist(), strict=True))

    def read(self, table: _Table) -> Iterator[Batch]:
        for piece, numbers in table.pieces():
            columns = _Columns(piece)
            rows = self._rows(columns)
            hosts, words = columns.texts("host")
            who = np.stack(
                [columns.numbers(name, -1) for name in ("process", "pid", "rank", "world")] + [hosts], axis=1
            )
            for place, why in sorted(columns.bad.items()):
                table.lines.bad(why, numbers[place])
            fine = np.ones(len(rows), dtype=bool)
            fine[list(columns.bad)] = False
            rows, who = rows[fine], who[fine]
            kinds, which = np.unique(who, axis=0, return_inverse=True)
            for number, (process, pid, rank, world, host) in enumerate(kinds.tolist()):
                key = (process, pid, rank, words[host])
                made = self.processes.setdefault(key, Process(pid, 0, rank, world, words[host]))
                yield Batch(made, rows[which.reshape(-1) == number])

    def _rows(self, columns: _Columns) -> Rows:
        rows = blank(columns.count)
        for name in ("thread", "fd", "errno", "flags", "aux", "seq"):
            rows[name] = np.clip(columns.numbers(name, -1 if name == "fd" else 0), -_INT32_MAX, NUMBER_MAX)
        self._operations(columns, rows)
        self._files(columns, rows)
        size = columns.numbers("size", 0)
        requested = columns.numbers("requested", 0) if columns.has("requested") else size
        done = columns.numbers("done", 0) if columns.has("done") else size if columns.has("size") else requested
        rows["done"], rows["requested"] = done, requested if columns.has("requested") or columns.has("size") else done
        rows["offset"] = columns.numbers("offset", 0)
        rows["flags"][~columns.known("offset")] |= UNKNOWN_OFFSET
        start = columns.times_ns("start")
        end = columns.times_ns("end")
        assert start is not None  # the header has one
        if end is None:
            self.notes.miss("it has no times of ends: calls take no time")
            end = start
        columns.refuse(end < start, "it ends before it starts")
        rows["start_ns"], rows["end_ns"] = start, end
        return rows

    def _operations(self, columns: _Columns, rows: Rows) -> None:
        codes, words = columns.texts("op")
        layer, layers = columns.texts("layer")
        known = np.array([_operation(word) for word in words] or [(0, 0)], dtype=np.int64)
        op = known[codes, 0]
        columns.refuse(op < 0, "its op is not a known operation (docs/formats.md)")
        stated = np.array([{"posix": 0, "mpi": 1, "": 2}.get(word, 3) for word in layers] or [2])[layer]
        columns.refuse(stated == 3, "its layer is neither posix nor mpi")
        # `read` of the layer mpi is written as the trace has it.
        for name in ("open", "close", "read", "write", "seek", "sync"):
            op[(stated == 1) & (op == OP[name])] = OP[f"mpi_{name}"]
        columns.refuse((stated == 0) & (op >= MPI_FIRST), "its op is of the layer mpi")
        rows["op"] = np.maximum(op, 0)
        rows["flags"] |= known[codes, 1].astype(np.int32)
        rows["flags"][columns.truths("collective")] |= COLLECTIVE
        rows["flags"][columns.truths("managed")] |= MANAGED
        is_mpi = op >= MPI_FIRST
        for field, name in (("fd", "handle"), ("aux", "comm_size")):
            if columns.has(name):
                rows[field][is_mpi] = columns.numbers(name, 0)[is_mpi]

    def _files(self, columns: _Columns, rows: Rows) -> None:
        for name in ("file", "file2"):
            codes, words = columns.texts(name)
            rows[name] = np.array([self.names.code(word) for word in words] or [-1])[codes]
        if columns.has("file_id"):
            column = columns.table.column("file_id")
            numbers = np.asarray(column.fill_null(-1).to_numpy())
            used, places = np.unique(numbers, return_inverse=True)
            known = [self.paths.get(number) or "" for number in used.tolist()]
            columns.refuse(np.array([not path for path in known] or [False])[places], "its file_id has no path")
            rows["file"] = np.array([self.names.code(path) for path in known] or [-1])[places]


def _operation(word: str) -> tuple[int, int]:
    """(place in OPS, flags) of an operation by our name or MPI's; (-1, 0) unknown."""
    if word in OP:
        return OP[word], 0
    return mpi_operation(word) or (-1, 0)


def read_csv(files: Sequence[Path], names: Names, notes: Notes) -> Iterator[Batch]:
    """Reads CSV files; one whose header is `file_id,path` names the files of the others."""
    done = _Import(names, notes)
    # Times of a program's own clock; 1970 is far enough from all of them.
    notes.is_wall_clock = False
    tables = [_Table(path, notes) for path in files]
    for table in tables:
        if table.is_mapping:
            done.learn(table)
    for table in tables:
        if not table.is_mapping:
            yield from done.read(table)
