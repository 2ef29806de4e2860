"""LANL-Trace's text as rows: MPI-IO calls in the mpi layer, the system calls in and beside them in the posix layer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..clock import Clock
from ..records import UNKNOWN_OFFSET, Batch, Gathered, Names, Notes, Process, row
from ..strace.calls import Calls, Made
from ..strace.descriptors import Table, Task
from ..strace.reader import outcome
from ..strace.syntax import LINE, Call, number_of
from ..text import BadLineError, Lines, quoted
from .folding import Fold, Folded
from .mpi_io import MpiCalls, Sanitised, word

_WHENCE = ("SEEK_SET", "SEEK_CUR", "SEEK_END")
_FLAGS = {getattr(os, name): name for name in ("O_CREAT", "O_EXCL", "O_TRUNC", "O_APPEND", "O_CLOEXEC", "O_DIRECT")}
_FLAG_AT = {"open": 1, "openat": 2}


class _Thread:
    """One process or thread of one file."""

    def __init__(self, pid: int) -> None:
        self.fold = Fold()
        self.task = Task(pid, Process(pid), Table(), [""])
        self.mpi = MpiCalls()


def _system_call(call: Call, task: Task) -> Call:
    """A call as strace would print it: flags and whence by name, an offset of two words in one."""
    name = call.name.removeprefix("SYS_").removesuffix("64") if call.name != "SYS_pread64" else "pread64"
    name = {"pwrite": "pwrite64", "pread": "pread64", "lseek": "lseek", "_llseek": "lseek"}.get(name, name)
    given = list(call.arguments)
    if name in _FLAG_AT and len(given) > _FLAG_AT[name]:
        flags = word(given[_FLAG_AT[name]]) or 0
        given[_FLAG_AT[name]] = "|".join(text for bit, text in _FLAGS.items() if flags & bit == bit) or "O_RDONLY"
        if name == "openat" and word(given[0]) in (-100, 0xFFFFFF9C):
            given[0] = "AT_FDCWD"
    if name in ("pread64", "pwrite64") and len(given) > 4:
        low, high = word(given[3]), word(given[4])
        given[3] = str((high << 32) + low) if low is not None and high is not None else "?"
    result = call.result
    if call.name == "SYS__llseek" and len(given) > 4 and result == 0:
        given, result = _long_seek(given, task)
    elif name == "lseek" and len(given) > 2:
        whence = number_of(given[2])
        given[2] = _WHENCE[whence] if whence in (0, 1, 2) else "SEEK_SET"
    error = call.errno
    if result is not None and -4096 < result < -1 and call.name.startswith("SYS_"):
        # The kernel's own way to return an error.
        result, error = -1, -result
    return Call(name, given, result, None, error, call.duration_ns)


def _long_seek(given: list[str], task: Task) -> tuple[list[str], int | None]:
    """_llseek(fd, high, low, result, whence): where it went is behind a pointer, so it is reckoned."""
    high, low, whence = word(given[1]), word(given[2]), word(given[4])
    fd = word(given[0])
    opened = task.table.opened.get(-1 if fd is None else fd)
    offset = None if high is None or low is None else (high << 32) + low
    base = {0: 0, 1: None if opened is None else opened.position, 2: None if opened is None else opened.file.size}
    start = base.get(-1 if whence is None else whence)
    result = None if offset is None or start is None else start + offset
    if result is None and opened is not None:
        opened.position = None
    return [given[0], str(offset or 0), _WHENCE[whence] if whence in (0, 1, 2) else "SEEK_SET"], result


class _Trace:
    """All files of one import."""

    def __init__(self, names: Names, notes: Notes) -> None:
        self.names = names
        self.calls = Calls(names, notes)
        self.gathered = Gathered()
        self.seq = 0

    def take(self, thread: _Thread, folded: Folded) -> Sanitised | None:
        """The row of a call. Raises BadLineError."""
        self.seq += 1
        times = {"start_ns": folded.start_ns, "end_ns": folded.end_ns, "thread": thread.task.tid, "seq": self.seq}
        if folded.call.name.startswith(("MPI_", "PMPI_")):
            found = thread.mpi.fields(folded)
            if found is None:
                return None
            sanitised, fields = found
            if sanitised.offset is None:
                fields["flags"] |= UNKNOWN_OFFSET
            fields |= {"offset": sanitised.offset or 0, "file": self.names.code(sanitised.file)}
            self.gathered.add(thread.task.process, row(**times, **fields))
            return sanitised
        if not folded.call.name.startswith("SYS_") and folded.inside:
            return None  # a library call whose system calls stand for it
        call = _system_call(folded.call, thread.task)
        made: Made | None = self.calls.made(thread.task, call)
        if made is not None and made.path:
            folded.path = made.path
            fields = {**made.numbers(self.names), **outcome(call)}
            self.gathered.add(thread.task.process, row(**times, **fields))
        return None


def sanitised(lines: Sequence[str]) -> list[Sanitised]:
    """The MPI-IO calls in a trace of one process, as PIONEER's table 2.3 has them."""
    trace, thread, clock = _Trace(Names(Path("/")), Notes()), _Thread(0), Clock()
    found: list[Sanitised | None] = []
    for line in lines:
        match = LINE.fullmatch(line)
        if match is None:
            raise BadLineError(f"{quoted(line)} is not 'time call(...) = result'")
        folded = thread.fold.take(match[4], match[3], clock.ns(match[3]))
        if folded is not None:
            found.append(trace.take(thread, folded))
    return [each for each in found if each is not None]


def read_lanl(files: Sequence[Path], names: Names, notes: Notes) -> Iterator[Batch]:
    """Reads traces of LANL-Trace or of `ltrace -S -tt -T`, a file for each process."""
    trace = _Trace(names, notes)
    unsized = unfinished = 0
    for number, path in enumerate(files):
        lines = Lines(path, notes)
        clock = Clock()
        threads: dict[int, _Thread] = {}
        for _, line in lines:
            if not line.strip():
                continue
            match = LINE.fullmatch(line)
            if match is None:
                lines.bad(f"{quoted(line)} is not '[pid] time call(...) = result'; trace with ltrace -S -tt -T")
                continue
            pid = int(match[1] or match[2] or number)
            if pid >= 1 << 31:
                lines.bad(f"its pid {pid} is out of range")
                continue
            thread = threads.setdefault(pid, _Thread(pid))
            try:
                folded = thread.fold.take(match[4], match[3], clock.ns(match[3]))
                if folded is not None:
                    trace.take(thread, folded)
            except BadLineError as error:
                lines.bad(str(error))
                continue
            if trace.gathered.is_full:
                yield from trace.gathered.take()
        unsized += sum(thread.mpi.unsized for thread in threads.values())
        unfinished += sum(thread.fold.depth for thread in threads.values())
        notes.is_wall_clock &= clock.is_wall_clock
    if unsized:
        notes.miss(f"{unsized:,} MPI-IO calls use datatypes of unknown size: their bytes are numbers of elements")
    if unfinished:
        notes.miss(f"{unfinished:,} calls had not returned when the trace ended")
    if trace.calls.unplaced:
        notes.miss(f"{trace.calls.unplaced:,} reads and writes have no known offset")
    if not notes.is_wall_clock:
        notes.miss("its times are of the day, without a date")
    yield from trace.gathered.take()
