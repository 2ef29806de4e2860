"""Reads a collected trace into columns for pictures: reads and writes of the posix layer that moved bytes.

Unlike policies and the recogniser, pictures show requests at unknown offsets, too: in time, not in the file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import native
from ..workload.columns import checked_columns, codes_of_text, numbers
from ..workload.copied import replica_of
from ..workload.counted import Chosen, Touched
from ..workload.trace import (
    FLAG_COPIED,
    FLAG_MANAGED,
    FLAG_UNKNOWN_OFFSET,
    UNKNOWN_END,
    Progress,
    RunEnd,
    no_requests,
    opened,
    partial_reasons,
    read_meta,
    run_end,
    run_place,
    trace_file,
    wanted_files,
)

OPTIONAL = ("layer", "process", "thread", "rank", "pid", "flags", "aux")
Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class Process:
    """Who made requests; `rank` and `pid` are -1 where they are unknown."""

    number: int
    rank: int
    pid: int

    @property
    def name(self) -> str:
        """For people."""
        return f"rank {self.rank}" if self.rank >= 0 else f"process {self.number}"


@dataclass(frozen=True)
class ViewRequests:
    """The requests of a trace, by process and in each by start; columns of one length."""

    source: str
    command: tuple[str, ...]
    partial: tuple[str, ...]
    files: tuple[str, ...]
    processes: tuple[Process, ...]
    #: Nanoseconds since the start of the run.
    start_ns: Numbers
    end_ns: Numbers
    #: Place in `processes`; number of the thread as traced; place in `files`.
    process: Numbers
    thread: Numbers
    file: Numbers
    write: Numbers
    #: Bytes; -1 is an unknown offset.
    offset: Numbers
    size: Numbers
    #: Whether a copy of the file served the read.
    copied: Numbers
    #: The number of that copy among the file's replicas; -1: none, or it is not known.
    replica: Numbers
    #: The columns for the native module.
    trace: Any
    #: Of the files that do not count, how many of each kind.
    left_out: tuple[tuple[str, int], ...] = ()
    end: RunEnd = UNKNOWN_END

    def __len__(self) -> int:
        return len(self.start_ns)


def read_requests(path: Path, files: Chosen = (), progress: Progress | None = None) -> ViewRequests:
    """The requests of a collected trace, on the files that count, as `files` says.

    Raises NoRequestsError where nothing is left, WorkloadError naming the file where it cannot be read.
    """
    source = trace_file(path)
    meta = read_meta(path)
    names: dict[str, int] = {}
    managed: set[str] = set()
    parts: list[dict[str, Numbers]] = []
    with opened(source) as parquet:
        columns = checked_columns(parquet.schema_arrow, source, optional=OPTIONAL)
        for group in range(parquet.num_row_groups):
            parts.append(_group(parquet.read_row_group(group, columns=columns), names, managed))
            if progress:
                progress(group + 1, parquet.num_row_groups)
    held = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
    counted = wanted_files(_touched(held, names, managed), files, place=run_place(meta))
    wanted = counted.files
    place = np.full(len(names) + 1, -1, dtype=np.int64)
    for number, name in enumerate(wanted):
        place[names[name]] = number
    if held:
        held["file"] = place[held["file"]]
        held = {name: column[held["file"] >= 0] for name, column in held.items()}
    if not held or not len(held["file"]):
        raise no_requests(source, files, counted)
    used = np.unique(held["file"])
    renumbered = np.zeros(len(wanted), dtype=np.int64)
    renumbered[used] = np.arange(len(used))
    held["file"] = renumbered[held["file"]]
    found = _requests(held, [wanted[number] for number in used.tolist()], str(source), meta, partial_reasons(path))
    return replace(found, left_out=counted.numbers, end=run_end(path))


def _touched(held: dict[str, Numbers], names: dict[str, int], managed: set[str]) -> dict[str, Touched]:
    """What was done to each file."""
    if not held:
        return {}
    # Lengths may be any: sums of a damaged trace's must not turn negative.
    moved = np.bincount(held["file"], weights=held["size"], minlength=len(names))
    written = np.bincount(held["file"][held["write"]], minlength=len(names))
    return {name: Touched(int(moved[number]), name in managed, bool(written[number])) for name, number in names.items()}


def _requests(
    held: dict[str, Numbers], files: list[str], source: str, meta: dict[str, Any], partial: tuple[str, ...]
) -> ViewRequests:
    start = held["start_ns"]
    _, first, process = np.unique(held["process"], return_index=True, return_inverse=True)
    if ((np.diff(process) < 0) | ((np.diff(process) == 0) & (np.diff(start) < 0))).any():
        order = np.lexsort((start, process))
        held = {name: column[order] for name, column in held.items()}
        process = process[order]
        first = np.flatnonzero(np.diff(process, prepend=-1))
    who = tuple(Process(*(int(held[name][row]) for name in ("process", "rank", "pid"))) for row in first.tolist())
    command = meta.get("command", [])
    columns = [
        np.ascontiguousarray(held["start_ns"]), np.ascontiguousarray(np.maximum(held["end_ns"], held["start_ns"])),
        process.astype(np.uint32), held["file"].astype(np.uint32), held["write"].astype(np.uint8),
        np.ascontiguousarray(held["offset"]), np.ascontiguousarray(held["size"]),
    ]  # fmt: skip
    start_ns, end_ns, process, file, write, offset, size = columns
    return ViewRequests(
        source, tuple(str(word) for word in command) if isinstance(command, list) else (), partial, tuple(files), who,
        start_ns, end_ns, process, held["thread"], file, write, offset, size, held["copied"], held["replica"],
        native.make("ViewTrace", *columns, len(files)),
    )  # fmt: skip


def _group(table: Any, names: dict[str, int], managed: set[str]) -> dict[str, Numbers]:
    """What a row group tells; new paths are added to `names`, those of managed files to `managed`, too."""
    op_code, ops = codes_of_text(table, "op")
    file_code, paths = codes_of_text(table, "file")
    done = numbers(table, "done", 0)
    keep = np.isin(op_code, [code for code, op in enumerate(ops) if op in ("read", "write")])
    keep &= (done > 0) & (file_code >= 0)
    if "layer" in table.column_names:
        layer_code, layers = codes_of_text(table, "layer")
        keep &= ~np.isin(layer_code, [code for code, layer in enumerate(layers) if layer == "mpi"])
    rows = np.flatnonzero(keep)
    used = np.unique(file_code[rows])
    placed = np.zeros(len(paths) + 1, dtype=np.int64)
    for code in used.tolist():
        placed[code] = names.setdefault(paths[code], len(names))
    flags = numbers(table, "flags", 0)[rows]
    copied = (flags & FLAG_COPIED) != 0
    code = file_code[rows]
    managed.update(paths[each] for each in np.unique(code[(flags & FLAG_MANAGED) != 0]).tolist())
    offset = numbers(table, "offset", -1)[rows]
    return {
        "start_ns": numbers(table, "start_ns", 0)[rows],
        "end_ns": numbers(table, "end_ns", 0)[rows],
        "process": numbers(table, "process", 0)[rows],
        "thread": numbers(table, "thread", 0)[rows],
        "rank": numbers(table, "rank", -1)[rows],
        "pid": numbers(table, "pid", -1)[rows],
        "file": placed[code],
        "write": np.isin(op_code[rows], [code for code, op in enumerate(ops) if op == "write"]),
        "offset": np.where((flags & FLAG_UNKNOWN_OFFSET) != 0, -1, np.maximum(offset, -1)),
        "size": done[rows],
        "copied": copied,
        "replica": replica_of(numbers(table, "aux", 0)[rows], copied),
    }
