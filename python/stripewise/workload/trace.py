"""Reads a collected trace (trace.parquet and meta.json, docs/formats.md) into a workload.

Streams row group by row group and keeps only what policies price: reads and writes of the posix layer that moved at
least a byte at a known offset. Which files: those given by --file, else managed ones, else those that somebody may
tune (counted.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import NoRequestsError, UsageError, WorkloadError
from ..units import quoted
from .columns import TEXTS, checked_columns, codes_of_text, numbers
from .counted import (
    EXCLUDED,
    KIND_OF,
    KINDS,
    LARGE_BYTES,
    OUTSIDE,
    SMALL,
    Choice,
    Chosen,
    Counted,
    Touched,
    left_out_text,
    one_of,
)
from .requests import REQUEST_DTYPE, FileRequests, Requests, Workload, reasons_of

#: Bits of the column `flags` (docs/formats.md).
FLAG_MANAGED = 1 << 1
#: Read from a copy of the file (`stripewise replicate`).
FLAG_COPIED = 1 << 13
FLAG_CREATED = 1 << 14
FLAG_UNKNOWN_OFFSET = 1 << 5
META_VERSION = 1
#: Process ids that are told apart in a request's rank, a signed number of 32 bits.
PIDS = (1 << 31) - 2
#: Traces of a directory of several that an error names.
RUNS_SHOWN = 8
#: The name of a trace's file in its directory, and what files of Parquet begin with.
TABLE = "trace.parquet"
PARQUET_MAGIC = b"PAR1"
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
    bytes: int = 0
    written: bool = False

    def add(self, more: _File) -> None:
        """What another row group tells of the same file."""
        self.parts += more.parts
        self.pids |= more.pids
        self.ranks |= more.ranks
        self.world = max(self.world, more.world)
        self.managed = self.managed or more.managed
        self.end = max(self.end, more.end)
        self.bytes += more.bytes
        self.written = self.written or more.written


def is_profile(path: Path) -> bool:
    """Whether a path names the profile of a workload and no trace: a file that ends in `.json`."""
    return path.suffix == ".json" and path.is_file()


def trace_file(path: Path) -> Path:
    """The Parquet file meant by `path`: itself, or trace.parquet in the directory."""
    if path.is_dir():
        inside = path / TABLE
        if not inside.exists():
            if (path / "store.toml").exists():
                raise WorkloadError(f"{path}: is a store and no trace; 'stripewise store info {quoted(path)}' shows it")
            if runs := runs_inside(path):
                raise WorkloadError(f"{path}: has no trace.parquet, but {runs}")
            raw = any(path.iterdir())
            cure = "run 'stripewise collect' on it first" if raw else "trace a run with 'stripewise run --trace'"
            raise WorkloadError(f"{path}: has no trace.parquet; {cure}")
        return inside
    if path.is_symlink() and os.readlink(path).startswith("/stripewise:"):
        shown = f"'stripewise store layout {quoted(path)}' shows how it lies"
        raise WorkloadError(f"{path}: is a managed file and no trace; {shown}")
    if not path.exists():
        log = "a Darshan log that is there, or " if path.suffix == ".darshan" else ""
        raise WorkloadError(f"{path}: does not exist; give {log}the directory that 'stripewise collect' wrote")
    if not path.is_file():
        raise WorkloadError(f"{path}: is no trace; give the directory that 'stripewise collect' wrote")
    return path


def runs_inside(path: Path) -> str:
    """The collected traces in a directory of such, as `tune --trace` makes it, and what to do; empty without any."""
    found = sorted(str(each.parent) for each in path.glob("*/trace.parquet"))
    if len(found) < 2:
        return "".join(f"the collected trace of a run: {each}; give that" for each in found)
    more = f" and {len(found) - RUNS_SHOWN} more" if len(found) > RUNS_SHOWN else ""
    return f"collected traces of several runs: {', '.join(found[:RUNS_SHOWN])}{more}; give one"


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
    return reasons_of(read_meta(path))


def run_place(meta: Mapping[str, Any]) -> str:
    """The working directory of the run, as paths in its trace are written; empty where it is unknown."""
    place = meta.get("cwd")
    return place if isinstance(place, str) else ""


def _begins_otherwise(path: Path) -> bool:
    """Whether a file is none of Parquet; one that cannot be read says so to who reads it."""
    with contextlib.suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                return file.read(len(PARQUET_MAGIC)) != PARQUET_MAGIC
    return False


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
        if source.name != TABLE and _begins_otherwise(source):
            raise WorkloadError(f"{source}: is no trace; give the directory that 'stripewise collect' wrote") from error
        if isinstance(error, PermissionError):
            raise WorkloadError(f"{source}: cannot be read ({error.strerror}); let its owner give access") from error
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise WorkloadError(f"{source}: cannot be read as Parquet ({said}); collect it again") from error


@dataclass(frozen=True)
class RunEnd:
    """How a traced run ended, as `stripewise run` noted it: a shell's status, and the signal that ended it, if one did.

    Where the status is unknown, `is_noted` tells whether somebody was to note it.
    """

    status: int | None = None
    signal: int | None = None
    is_noted: bool = False
    #: Of a trace that `patterns predict` made: nothing ran.
    is_predicted: bool = False
    #: The signal that `run` got meanwhile to end it; the program may have caught it, and ended well but early.
    interrupted_by: int | None = None

    @property
    def text(self) -> str:
        """A phrase where it did not end well, or nobody knows; empty where it did, or none was to know."""
        if self.is_predicted:
            return "nothing ran: the trace is a prediction, its times are only an order"
        if self.signal is not None:
            return f"the run failed: it was ended by signal {_signal_name(self.signal)}"
        if self.interrupted_by is not None:
            name = _signal_name(self.interrupted_by)
            return f"the run was interrupted by {name}: it ended with exit status {self.status}"
        if self.status:
            return f"the run failed: it ended with exit status {self.status}"
        if self.status is None and self.is_noted:
            return "how the run ended is unknown: 'stripewise run' was killed, or the run had not ended yet"
        return ""


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else str(number)


#: Of a run of which nobody noted it.
UNKNOWN_END = RunEnd()


def run_end(path: Path) -> RunEnd:
    """How the run of a trace ended, as meta.json says. Raises as `read_meta` does."""
    meta = read_meta(path)
    found = [meta.get(key) for key in ("exit_status", "signal", "interrupted_by")]
    status, number, by = (each if isinstance(each, int) and not isinstance(each, bool) else None for each in found)
    return RunEnd(status, number, "exit_status" in meta, meta.get("predicted") is True, by)


def wanted_files(
    touched: Mapping[str, Touched],
    files: Chosen = (),
    *,
    place: str = "",
    held: Callable[[str], bool] = lambda path: False,
    prefers_managed: bool = True,
    least_bytes: int | None = None,
) -> Counted:
    """Of the files that a run touched those that count, most bytes first, and of what kind the others are.

    Where `files` names some, those. Else what the user's rules say, then the managed ones and those `held` in a store;
    where there are managed ones, and they are preferred, no others. Else those of no kind of `KINDS`, or, where that is
    not certain, large ones and those that were written below `place`, the run's working directory; of these, those with
    `least_bytes` (None: those of the choice), or where all have less, all.
    """
    choice = files if isinstance(files, Choice) else Choice(tuple(files))
    named = _matcher([os.path.abspath(glob) for glob in choice.only])
    heeded = choice.rules if choice.only or choice.all_files else choice.rules + choice.own
    rules = [(_matcher([rule.glob, f"{rule.glob}/*"]), rule.counts) for rule in heeded]
    least = choice.least_bytes if least_bytes is None else least_bytes
    managed_alone = prefers_managed and any(each.managed for each in touched.values())
    below = f"{place.rstrip('/')}/" if place.strip("/") else None
    kept: dict[str, bool] = {}
    left_out: dict[str, str] = {}
    for name in sorted(filter(None, touched), key=lambda name: (-touched[name].bytes, name)):
        file = touched[name]
        said = next((counts for matches, counts in rules if matches(name)), None)
        if choice.only and not said and not named(name):
            continue
        if said is None and not (choice.only or choice.all_files or file.managed):
            kind = _kind_of(name, file, below) or (OUTSIDE if managed_alone else "")
            if kind and not held(name):
                left_out[name] = kind
            else:
                kept[name] = file.bytes >= least or held(name)
        elif said is False:
            left_out[name] = EXCLUDED
        else:
            kept[name] = True
    if any(kept.values()):
        left_out |= {name: SMALL for name, is_enough in kept.items() if not is_enough}
    numbers = sorted(Counter(left_out.values()).items(), key=lambda row: (-row[1], row[0]))
    return Counted(tuple(name for name in kept if name not in left_out), left_out, tuple(numbers))


def _matcher(globs: Sequence[str]) -> Callable[[str], object]:
    return re.compile(one_of(globs)).match if globs else lambda name: None


def _kind_of(name: str, file: Touched, below: str | None) -> str:
    """The kind that leaves a file out; empty where none does."""
    found = KIND_OF.match(name)
    kind = KINDS[int(str(found.lastgroup)[1:])] if found else None
    is_ours = file.bytes >= LARGE_BYTES or (file.written and below is not None and name.startswith(below))
    return "" if kind is None or (is_ours and not kind.is_certain) else kind.name


def no_requests(source: Path, files: Chosen, counted: Counted, what: str = "read or write") -> NoRequestsError:
    """What to raise where no wanted file has a request."""
    patterns = files.only if isinstance(files, Choice) else files
    where = f" on files matching {', '.join(patterns)}" if patterns else ""
    left_out = left_out_text(counted.numbers)
    unnamed = read_meta(source).get("unnamed", 0)
    if unnamed and not left_out and not where:
        return NoRequestsError(
            f"{source}: {unnamed:,} records have no name of a file (a log of names is cut off, or lost), and no others "
            f"hold a {what} that moved a byte; trace the run again"
        )
    other = "give another --file" if where else "trace a run that does I/O"
    cure = f"{left_out}; --all-files includes them" if left_out else other
    return NoRequestsError(f"{source}: holds no {what} that moved a byte{where}; {cure}")


def check_no_part(flag: str, out: Path, trace: Path) -> None:
    """UsageError where `out` names a part of the trace, which would be replaced."""
    parts = [trace_file(trace), trace_file(trace).with_name("meta.json")]
    if any(os.path.realpath(out) == os.path.realpath(path) for path in parts):
        raise UsageError(f"{flag}: {out} is a part of the trace; give another name")


def with_mpi_alone(nothing: NoRequestsError) -> NoRequestsError:
    """The same of a trace that has calls of MPI-IO, but nothing of what these asked the system for."""
    return NoRequestsError(
        f"{nothing}, with --layers both; it has MPI-IO calls alone, of which 'patterns --layer mpi' tells"
    )


def is_mpi_alone(source: Path) -> bool:
    """Whether a trace has bytes that MPI-IO calls moved, and none of reads and writes below them; ends at the first."""
    found = False
    with opened(source) as parquet:
        columns = ["layer", "op", "done"]
        if not set(columns) <= set(parquet.schema_arrow.names):
            return False
        for group in range(parquet.num_row_groups):
            table = parquet.read_row_group(group, columns=columns)
            (layer_code, layers), (op_code, ops) = codes_of_text(table, "layer"), codes_of_text(table, "op")
            moved = numbers(table, "done", 0) > 0
            moved &= np.isin(op_code, [code for code, op in enumerate(ops) if op.endswith(("read", "write"))])
            is_mpi = np.isin(layer_code, [code for code, layer in enumerate(layers) if layer == "mpi"])
            if (moved & ~is_mpi).any():
                return False
            found = found or bool(moved.any())
    return found


def read_trace(
    path: str | os.PathLike[str],
    files: Chosen = (),
    progress: Progress | None = None,
    held: Callable[[str], bool] = lambda path: False,
) -> Workload:
    """The workload in a collected trace, files with most bytes first.

    `files` says which ones, shell patterns or more, `held` which ones a store holds. Raises NoRequestsError when it
    holds nothing to plan with, WorkloadError naming the file when it cannot be read.
    """
    source = trace_file(Path(path))
    meta = read_meta(Path(path))
    found = _found(source, progress)
    counted = wanted_files(_touched(found), files, place=run_place(meta), held=held)
    kept = counted.files
    if not kept:
        nothing = no_requests(source, files, counted)
        raise with_mpi_alone(nothing) if not found and is_mpi_alone(source) else nothing
    command = meta.get("command", [])
    joined = _in_order(lambda name: _joined(found[name]), kept)
    return Workload(
        files=tuple(FileRequests(name, rows, found[name].end) for name, rows in zip(kept, joined, strict=True)),
        processes=_processes([found[name] for name in kept]),
        source=str(source),
        command=tuple(str(word) for word in command) if isinstance(command, list) else (),
        partial=reasons_of(meta),
        left_out=counted.numbers,
    )


def touched_files(path: Path, files: Chosen = ()) -> tuple[dict[str, Touched], Counted]:
    """What a traced run did to each file, and which ones count in a plan. Raises WorkloadError as `read_trace` does."""
    touched = _touched(_found(trace_file(path)))
    return touched, wanted_files(touched, files, place=run_place(read_meta(path)))


def _touched(found: Mapping[str, _File]) -> dict[str, Touched]:
    return {name: Touched(file.bytes, file.managed, file.written) for name, file in found.items()}


def _found(source: Path, progress: Progress | None = None) -> dict[str, _File]:
    """All files with requests."""
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
    return found


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
    rank, pid = numbers(table, "rank", -1)[rows], numbers(table, "pid", -1)[rows]
    requests["rank"] = np.where(rank < 0, unranked(pid), rank)
    requests["write"] = np.isin(op_code, writes)[rows]
    offset = requests["offset"] = numbers(table, "offset", 0)[rows]
    size = requests["size"] = done[rows]
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    ends = np.append(begins[1:], len(rows))
    reach = np.maximum.reduceat(offset + size, begins).tolist()
    # Lengths may be any: sums of a damaged trace's must not turn negative.
    moved = [int(each) for each in np.add.reduceat(size.astype(np.float64), begins)]
    written = np.logical_or.reduceat(requests["write"], begins).tolist()
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
                moved[number],
                written[number],
            ),
        )
        for number, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True))
    ]


def unranked(pid: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """What stands for the rank of processes outside MPI: the requests of each stay its own; -1 without a pid."""
    return np.where(pid < 0, -1, -2 - pid % PIDS)


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
