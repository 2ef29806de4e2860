"""Rows of foreign traces become trace.parquet and meta.json (docs/formats.md), as `stripewise collect` writes them.

Rows wait in memory until there are four million, then in one file per process; a process is then written in row groups
by start time. Memory: those rows (320 MB) and 16 bytes for each row of the largest process.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .. import __version__
from ..errors import WorkloadError
from ..workload.trace import META_VERSION
from .records import COLLECTIVE, MANAGED, MPI_FIRST, OP, OPS, ROW, UNKNOWN_OFFSET, Batch, Names, Notes, Process, Rows
from .totals import Totals

Codes = np.ndarray[Any, np.dtype[np.int64]]
#: Rows of a row group at most.
GROUP_ROWS = 1 << 20
#: Rows that wait in memory at most; a row is 80 bytes.
WAITING_ROWS = 1 << 22
TOOL = f"stripewise {__version__}"
_TEXT = pa.dictionary(pa.int32(), pa.string())
_SCHEMA = pa.schema(
    [
        pa.field(name, kind, nullable=optional)
        for name, kind, optional in (
            ("process", pa.int32(), False), ("pid", pa.int32(), False), ("rank", pa.int32(), True),
            ("world", pa.int32(), True), ("thread", pa.int32(), False), ("host", _TEXT, False),
            ("seq", pa.int64(), False), ("layer", _TEXT, False), ("op", _TEXT, False), ("file", _TEXT, True),
            ("file2", _TEXT, True), ("fd", pa.int32(), True), ("handle", pa.int32(), True),
            ("comm_size", pa.int32(), True), ("offset", pa.int64(), True), ("requested", pa.int64(), False),
            ("done", pa.int64(), False), ("start_ns", pa.int64(), False), ("end_ns", pa.int64(), False),
            ("collective", pa.bool_(), False), ("managed", pa.bool_(), False), ("errno", pa.int32(), False),
            ("flags", pa.int32(), False), ("aux", pa.int32(), True), ("ordinal", pa.int64(), True),
            ("parent", pa.int64(), True), ("parent_thread", pa.int32(), True),
        )
    ]
)  # fmt: skip
#: Columns in which no value repeats.
_DELTAS = ("seq", "start_ns", "end_ns", "offset")


class _Held:
    """The rows of one process until all are there."""

    def __init__(self, process: Process, place: Path) -> None:
        self.process = process
        self.place = place
        self.parts: list[Rows] = []
        self.spilled = 0

    def spill(self) -> None:
        if self.parts:
            with open(self.place, "ab") as file:
                for part in self.parts:
                    file.write(part.data)
            self.spilled += sum(map(len, self.parts))
            self.parts = []

    def rows(self) -> Rows:
        """All of them; those in the file are mapped, not read."""
        if self.spilled:
            self.spill()
            return np.memmap(self.place, dtype=ROW, mode="r", shape=(self.spilled,))
        return np.concatenate(self.parts) if self.parts else np.empty(0, dtype=ROW)


class TraceWriter:
    """Writes one trace. Used as a context; what it made is in place after `finish`, and gone otherwise."""

    def __init__(self, out: Path, names: Names, notes: Notes) -> None:
        self.out = out
        self.names = names
        self.notes = notes
        self._held: dict[int, _Held] = {}
        self._totals = Totals(names.texts)
        self._waiting = 0
        self._zero_ns = np.iinfo(np.int64).max
        self._end_ns = 0

    def __enter__(self) -> TraceWriter:
        self.out.mkdir(parents=True, exist_ok=True)
        self._scratch = self.out / f".import.{os.getpid()}.tmp"
        self._scratch.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)

    def add(self, batch: Batch) -> None:
        """Takes the rows of a batch."""
        rows = batch.rows
        if not len(rows):
            return
        held = self._held.get(id(batch.process))
        if held is None:
            held = self._held[id(batch.process)] = _Held(batch.process, self._scratch / str(len(self._held)))
        held.parts.append(rows)
        self._totals.add(rows)
        self._zero_ns = min(self._zero_ns, int(rows["start_ns"].min()))
        self._end_ns = max(self._end_ns, int(rows["end_ns"].max()))
        self._waiting += len(rows)
        if self._waiting > WAITING_ROWS:
            for each in self._held.values():
                each.spill()
            self._waiting = 0

    def finish(self, imported: dict[str, Any]) -> dict[str, Any]:
        """Writes both files; `imported` is what meta.json says of the source. Returns meta.json.

        Raises WorkloadError when there is not one record.
        """
        if not self._held:
            raise WorkloadError(f"{imported['files'][0]['path']}: holds no record; give a trace of a run that does I/O")
        order = sorted(self._held.values(), key=lambda held: (held.process.rank < 0, held.process.rank))
        processes = []
        alone = self._only_mpi()
        metadata = {
            b"stripewise.version": str(META_VERSION).encode(),
            b"stripewise.tool": TOOL.encode(),
            b"stripewise.zero_unix_ns": str(self._zero_unix_ns()).encode(),
        }
        table = self._scratch / "trace.parquet"
        paths = pa.array(self.names.texts, pa.string())
        with pq.ParquetWriter(
            table,
            _SCHEMA.with_metadata(metadata),
            store_schema=False,
            use_dictionary=[name for name in _SCHEMA.names if name not in _DELTAS],
            column_encoding=dict.fromkeys(_DELTAS, "DELTA_BINARY_PACKED"),
        ) as writer:
            for number, held in enumerate(order):
                count, threads = 0, set()
                for rows in _by_start(held.rows()):
                    count += len(rows)
                    threads |= set(np.unique(rows["thread"]).tolist())
                    rows = _as_requests(rows, alone)
                    writer.write_table(_columns(number, held.process, rows, paths, self._zero_ns), GROUP_ROWS)
                described = {**asdict(held.process), "threads": len(threads), "records": count, "dropped": 0}
                processes.append({"process": number, **described})
                held.parts = []
        meta = self._meta(processes, imported)
        text = json.dumps(meta, allow_nan=False)
        with open(self._scratch / "meta.json", "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with open(table, "rb") as written:
            os.fsync(written.fileno())
        # The old meta.json first: a trace never stands beside that of another.
        (self.out / "meta.json").unlink(missing_ok=True)
        os.replace(table, self.out / "trace.parquet")
        os.replace(self._scratch / "meta.json", self.out / "meta.json")
        return meta

    def _only_mpi(self) -> Codes:
        """Files of which nothing but MPI-IO calls is known, and a word about them where there are any."""
        alone = self._totals.only_mpi()
        if len(alone):
            self.notes.miss(
                f"of {len(alone):,} file(s) only MPI-IO calls are known; they stand as requests of the posix layer, "
                "as they were before collective buffering"
            )
        return alone

    def _zero_unix_ns(self) -> int:
        return int(self._zero_ns) if self.notes.is_wall_clock else 0

    def _meta(self, processes: list[dict[str, Any]], imported: dict[str, Any]) -> dict[str, Any]:
        first = processes[0]
        return {
            "version": META_VERSION,
            "tool": TOOL,
            "command": first["command"],
            "records": sum(entry["records"] for entry in processes),
            **dict.fromkeys(("dropped", "incomplete", "missing", "damaged", "empty_logs", "names_lost"), 0),
            "unnamed": self._totals.unnamed,
            "zero_unix_ns": self._zero_unix_ns(),
            "duration_ns": max(0, self._end_ns - int(self._zero_ns)),
            "processes": processes,
            "files": self._totals.files(),
            "skipped": [
                {"file": file, "why": f"{count:,} bad lines or records"} for file, count in self.notes.skipped.items()
            ],
            "imported": imported,
            "partial": self.notes.partial,
            **self.notes.extra,
        }


def _as_requests(rows: Rows, alone: Codes) -> Rows:
    """The rows with MPI-IO calls on the files `alone` as those of the posix layer, which is what plans are made for."""
    if not len(alone):
        return rows
    changed = rows.copy()
    taken = np.isin(rows["file"], alone)
    for name in ("open", "close", "read", "write", "seek", "sync"):
        changed["op"][taken & (rows["op"] == OP[f"mpi_{name}"])] = OP[name]
    return changed


def _by_start(rows: Rows) -> Iterator[Rows]:
    """The rows by start and, of one start, by number; a row group's at a time, each with its number in `seq`."""
    start = np.ascontiguousarray(rows["start_ns"])
    is_sorted = bool((start[1:] >= start[:-1]).all())
    order = None if is_sorted else np.argsort(start, kind="stable")
    for begin in range(0, len(rows), GROUP_ROWS):
        part = rows[begin : begin + GROUP_ROWS] if order is None else _gather(rows, order[begin : begin + GROUP_ROWS])
        yield part


def _gather(rows: Rows, places: np.ndarray[Any, np.dtype[np.int64]]) -> Rows:
    # As plain bytes: gathering records field by field takes four times as long.
    gathered: Rows = np.asarray(rows).view(f"V{ROW.itemsize}")[places].view(ROW)
    return gathered


def _columns(number: int, process: Process, rows: Rows, paths: Any, zero_ns: int) -> Any:
    """A row group as a table of `_SCHEMA`."""
    count = len(rows)
    op = rows["op"].astype(np.int32)
    is_mpi = op >= MPI_FIRST
    nowhere = (rows["flags"] & UNKNOWN_OFFSET) != 0
    zeros = np.zeros(count, dtype=np.int32)

    def ints(values: Any, null: Any = None, kind: Any = np.int32) -> Any:
        return pa.array(np.ascontiguousarray(values, dtype=kind), mask=null)

    def constant(value: int, is_known: bool = True) -> Any:
        return ints(zeros + value) if is_known else pa.nulls(count, pa.int32())

    def words(codes: Any, texts: Any, null: Any = None) -> Any:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32(), mask=null), texts)

    def named(field: str) -> Any:
        codes = np.ascontiguousarray(rows[field])
        if (codes < 0).all():
            return words(zeros, pa.array([""]), np.ones(count, dtype=bool))
        # A row group tells of few files, all names may be a million.
        used, places = np.unique(codes, return_inverse=True)
        texts = paths.take(pa.array(np.maximum(used, 0)))
        return words(places.astype(np.int32), texts, codes < 0)

    columns = {
        "process": constant(number), "pid": constant(process.pid),
        "rank": constant(process.rank, process.rank >= 0), "world": constant(process.world, process.world >= 0),
        "thread": ints(rows["thread"]), "host": words(zeros, pa.array([process.host])),
        "seq": ints(rows["seq"], kind=np.int64), "layer": words(is_mpi.astype(np.int32), pa.array(["posix", "mpi"])),
        "op": words(op, pa.array(OPS)), "file": named("file"), "file2": named("file2"),
        "fd": ints(rows["fd"], is_mpi), "handle": ints(rows["fd"], ~is_mpi), "comm_size": ints(rows["aux"], ~is_mpi),
        "offset": ints(rows["offset"], nowhere, np.int64), "requested": ints(rows["requested"], kind=np.int64),
        "done": ints(rows["done"], kind=np.int64), "start_ns": ints(rows["start_ns"] - zero_ns, kind=np.int64),
        "end_ns": ints(rows["end_ns"] - zero_ns, kind=np.int64),
        "collective": pa.array((rows["flags"] & COLLECTIVE) != 0), "managed": pa.array((rows["flags"] & MANAGED) != 0),
        "errno": ints(rows["errno"]), "flags": ints(rows["flags"]), "aux": ints(rows["aux"], is_mpi),
        # Calls inside calls are not told apart by any of the formats.
        "ordinal": pa.nulls(count, pa.int64()), "parent": pa.nulls(count, pa.int64()),
        "parent_thread": pa.nulls(count, pa.int32()),
    }  # fmt: skip
    return pa.Table.from_arrays([columns[name] for name in _SCHEMA.names], schema=_SCHEMA)
