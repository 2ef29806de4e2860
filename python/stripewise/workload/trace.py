"""Reads a collected trace (trace.parquet and meta.json, docs/formats.md) into a workload.

Streams row group by row group and keeps only what policies price: reads and writes of the posix layer that moved at
least a byte at a known offset. Which files: those given by --file, else the managed ones, else all outside the system's
own directories.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import NoRequestsError, WorkloadError
from .columns import TEXTS, checked_columns, codes_of_text, numbers
from .requests import REQUEST_DTYPE, FileRequests, Requests, Workload

#: Bits of the column `flags` (docs/formats.md).
FLAG_MANAGED = 1 << 1
FLAG_UNKNOWN_OFFSET = 1 << 5
META_VERSION = 1
#: The system's own, and what is no path, as `<STDOUT>` in a Darshan log.
SYSTEM_DIRS = ("/dev/", "/proc/", "/sys/", "/etc/", "/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "<")
#: A program's own code, which its start looks for in many places.
CODE = re.compile(r"/site-packages/|/lib/python3|/__pycache__|\.pyc?$|\.so(\.|$)|\.pth$")
T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[int, int], None]


@dataclass
class _File:
    """What is known of one file so far."""

    parts: list[Requests] = field(default_factory=list)
    pids: set[int] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)
    world: int = 0
    managed: bool = False
    end: int = 0

    def add(self, more: _File) -> None:
        """What another row group tells of the same file."""
        self.parts += more.parts
        self.pids |= more.pids
        self.ranks |= more.ranks
        self.world = max(self.world, more.world)
        self.managed = self.managed or more.managed
        self.end = max(self.end, more.end)


def trace_file(path: Path) -> Path:
    """The Parquet file meant by `path`: itself, or trace.parquet in the directory."""
    if path.is_dir():
        inside = path / "trace.parquet"
        if not inside.exists():
            raw = any(path.iterdir())
            cure = "run 'stripewise collect' on it first" if raw else "trace a run with 'stripewise run --trace'"
            raise WorkloadError(f"{path}: has no trace.parquet; {cure}")
        return inside
    if not path.exists():
        raise WorkloadError(f"{path}: does not exist; give the directory that 'stripewise collect' wrote")
    return path


def read_meta(path: Path) -> dict[str, Any]:
    """meta.json beside the trace; empty when there is none."""
    meta = trace_file(path).with_name("meta.json")
    if not meta.exists():
        return {}
    try:
        data = json.loads(meta.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise WorkloadError(f"{meta}: cannot be read as JSON ({error}); run 'stripewise collect' again") from error
    if not isinstance(data, dict):
        raise WorkloadError(f"{meta}: is not a JSON object; run 'stripewise collect' again")
    version = data.get("version", META_VERSION)
    if isinstance(version, int) and version > META_VERSION:
        raise WorkloadError(
            f"{meta}: version = {version} is newer than this program knows ({META_VERSION}); upgrade stripewise"
        )
    return data


def partial_reasons(path: Path) -> tuple[str, ...]:
    """Why the trace is not the whole run, as meta.json says; nothing where it is. Raises as `read_meta` does."""
    return _reasons(read_meta(path))


#: What `collect` counts in meta.json that makes a trace less than the run, and how it is told.
LOSSES = {
    "dropped": "records were dropped for want of space",
    "incomplete": "records were cut by a kill",
    "missing": "records are missing between others",
    "damaged": "damaged records were skipped",
    "empty_logs": "logs were never begun (a kill, or no space)",
    "names_lost": "names of files were lost for want of space",
    "unnamed": "records have no name of a file",
}


def _reasons(meta: dict[str, Any]) -> tuple[str, ...]:
    reasons = meta.get("partial", [])
    told = [str(reason) for reason in reasons] if isinstance(reasons, list) else [str(reasons)]
    counts = {key: meta.get(key) for key in LOSSES}
    told += [f"{count:,} {LOSSES[key]}" for key, count in counts.items() if isinstance(count, int) and count > 0]
    return tuple(told)


@contextmanager
def opened(source: Path) -> Iterator[pq.ParquetFile]:
    """The Parquet file of a trace, its texts as dictionaries.

    Raises WorkloadError naming it where it cannot be read, now or in the body.
    """
    try:
        # By its bytes: names of files need not be UTF-8.
        with pa.OSFile(os.fsencode(source)) as file:
            texts = [name for name in TEXTS if name in pq.read_schema(file).names]
            with pq.ParquetFile(file, read_dictionary=texts) as parquet:
                yield parquet
    except (OSError, pa.ArrowException) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise WorkloadError(f"{source}: cannot be read as Parquet ({said}); collect it again") from error


def wanted_files(
    names: Iterable[str], patterns: Sequence[str], managed: Collection[str] = (), *, code: bool = True
) -> list[str]:
    """Of these paths the ones that matter, sorted.

    They match one of the shell patterns where some are given. Else they are the managed ones, or where there are none,
    all outside the system's own directories; with `code` false without files of the program's own code.
    """
    named: Iterable[str] = sorted(name for name in names if name)
    if patterns:
        absolute = [os.path.abspath(pattern) for pattern in patterns]
        return [name for name in named if any(fnmatch.fnmatchcase(name, pattern) for pattern in absolute)]
    if managed:
        return [name for name in named if name in managed]
    own = (name for name in named if not name.startswith(SYSTEM_DIRS))
    return [name for name in own if code or CODE.search(name) is None]


def no_requests(source: Path, patterns: Sequence[str], what: str = "read or write") -> NoRequestsError:
    """What to raise where no wanted file has a request."""
    where = f" on files matching {', '.join(patterns)}" if patterns else ""
    return NoRequestsError(f"{source}: holds no {what} that moved a byte{where}; trace a run that does I/O")


def read_trace(path: str | os.PathLike[str], files: Sequence[str] = (), progress: Progress | None = None) -> Workload:
    """The workload in a collected trace.

    `files` are shell patterns of paths to keep. Raises NoRequestsError when it holds nothing to plan with,
    WorkloadError naming the file when it cannot be read.
    """
    source = trace_file(Path(path))
    meta = read_meta(Path(path))
    found: dict[str, _File] = {}
    with opened(source) as parquet:
        columns = checked_columns(parquet.schema_arrow, source)
        groups = parquet.num_row_groups
        tables = (parquet.read_row_group(group, columns=columns) for group in range(groups))
        for group, parts in enumerate(_in_order(_read_group, tables)):
            for name, part in parts:
                found.setdefault(name, _File()).add(part)
            if progress:
                progress(group + 1, groups)
    kept = wanted_files(found, files, {name for name, file in found.items() if file.managed})
    if not kept:
        raise no_requests(source, files)
    command = meta.get("command", [])
    joined = _in_order(lambda name: _joined(found[name]), kept)
    return Workload(
        files=tuple(FileRequests(name, rows, found[name].end) for name, rows in zip(kept, joined, strict=True)),
        processes=_processes([found[name] for name in kept]),
        source=str(source),
        command=tuple(str(word) for word in command) if isinstance(command, list) else (),
        partial=_reasons(meta),
    )


def _in_order(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """`work` of every item, in order, a few at a time beside each other: numpy leaves the interpreter's lock alone."""
    workers = min(8, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        ahead: deque[Future[R]] = deque()
        for item in items:
            ahead.append(pool.submit(work, item))
            if len(ahead) > workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _read_group(table: Any) -> list[tuple[str, _File]]:
    """What one row group tells of each file in it."""
    if not table.num_rows:
        return []
    op_code, ops = codes_of_text(table, "op")
    file_code, names = codes_of_text(table, "file")
    data_ops = [code for code, op in enumerate(ops) if op in ("read", "write")]
    writes = [code for code, op in enumerate(ops) if op == "write"]
    flags = numbers(table, "flags", 0)
    done = numbers(table, "done", 0)
    keep = np.isin(op_code, data_ops) & (done > 0) & (file_code >= 0) & ((flags & FLAG_UNKNOWN_OFFSET) == 0)
    keep &= np.asarray(table.column("offset").is_valid())
    if "layer" in table.column_names:
        layer_code, layers = codes_of_text(table, "layer")
        keep &= ~np.isin(layer_code, [code for code, layer in enumerate(layers) if layer == "mpi"])
    rows = np.flatnonzero(keep)
    if not len(rows):
        return []
    codes = file_code[rows]
    # Stable: the rows of a file stay in their order. 16 bits are sorted by counting.
    order = np.argsort(codes.astype(np.uint16) if len(names) <= 1 << 16 else codes, kind="stable")
    rows, codes = rows[order], codes[order]
    requests = np.zeros(len(rows), dtype=REQUEST_DTYPE)
    requests["start_ns"] = numbers(table, "start_ns", 0)[rows]
    requests["end_ns"] = numbers(table, "end_ns", 0)[rows]
    rank = requests["rank"] = numbers(table, "rank", -1)[rows]
    requests["write"] = np.isin(op_code, writes)[rows]
    offset = requests["offset"] = numbers(table, "offset", 0)[rows]
    size = requests["size"] = done[rows]
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    ends = np.append(begins[1:], len(rows))
    pid = numbers(table, "pid", -1)[rows]
    reach = np.maximum.reduceat(offset + size, begins).tolist()
    world = np.maximum.reduceat(numbers(table, "world", 0)[rows], begins).tolist()
    managed = np.bitwise_or.reduceat(flags[rows], begins) & FLAG_MANAGED
    return [
        (
            names[codes[begin]],
            _File(
                [requests[begin:end]],
                _distinct(pid[begin:end]),
                _distinct(rank[begin:end]),
                world[number],
                bool(managed[number]),
                reach[number],
            ),
        )
        for number, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True))
    ]


def _distinct(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> set[int]:
    # A row group is one process, so nearly always there is one.
    if (numbers == numbers[0]).all():
        return {int(numbers[0])}
    return set(np.unique(numbers).tolist())


def _joined(file: _File) -> Requests:
    joined = np.concatenate(file.parts)
    order = np.argsort(joined["start_ns"], kind="stable")
    # As plain bytes: gathering records field by field takes four times as long.
    return joined.view(f"V{joined.itemsize}")[order].view(joined.dtype)


def _processes(files: Sequence[_File]) -> int:
    """p of the models: the size of the MPI world where it is known, else the processes that did I/O."""
    world = max((file.world for file in files), default=0)
    pids = {pid for file in files for pid in file.pids if pid >= 0}
    ranks = {rank for file in files for rank in file.ranks if rank >= 0}
    return max(1, world if world > 1 else max(len(pids), len(ranks)))
