"""strace's text as rows: lines of all files in the order of their times, halves of calls joined, tasks made by fork."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import WorkloadError
from ..clock import Clock
from ..records import OP, Batch, Gathered, Names, Notes, Process, row
from ..text import BadLineError, Lines, quoted
from .calls import CALLS, Calls
from .descriptors import Opened, Table, Task
from .syntax import EXITED, LINE, RESUMED, SIGNAL, UNFINISHED, UNRETURNED, Call, parse_call

_FORKS = ("clone", "clone3", "fork", "vfork")
#: Calls that never return.
_LAST = ("exit", "exit_group")
_OWN_PID = re.compile(r"\.([0-9]{1,10})\Z")
#: Files of one import at most: all are open at once.
FILES_MAX = 900


@dataclass(slots=True)
class _Line:
    """A line with its time, before it is known whose."""

    time_ns: int
    number: int
    pid: int
    rest: str
    source: _Source


class _Source:
    """One file: its lines, its clock, and which pids are its own."""

    def __init__(self, number: int, path: Path, notes: Notes) -> None:
        self.path = path
        self.lines = Lines(path, notes)
        self.clock = Clock()
        # `strace -ff -o F` writes F.<pid> for each, and no pid before the time.
        named = _OWN_PID.search(path.name)
        self.own_pid = int(named[1]) if named else number
        self._is_named = named is not None
        #: Whether the lines have no pid, so that its descriptors may be shared with other files'.
        self.is_alone = False

    def __iter__(self) -> Iterator[_Line]:
        for number, line in self.lines:
            if not line or line.startswith("strace: "):
                continue
            match = LINE.fullmatch(line)
            if match is None:
                self.lines.bad(f"{quoted(line)} is not '[pid] time call(...) = result'; trace with -f -ttt -T -y")
                continue
            pid = match[1] or match[2]
            self.is_alone = pid is None and self._is_named
            try:
                time_ns = self.clock.ns(match[3])
            except BadLineError as error:
                self.lines.bad(str(error))
                continue
            yield _Line(time_ns, number, self.own_pid if pid is None else int(pid), match[4], self)


@dataclass(slots=True)
class _Pending:
    """A call that has not returned; `dropped` is what a close has let go of already."""

    line: _Line
    text: str
    dropped: tuple[int, Opened | None] | None = None


class _Machine:
    """All tasks of the trace."""

    def __init__(self, names: Names, notes: Notes) -> None:
        self.names = names
        self.notes = notes
        self.calls = Calls(names, notes)
        self.tasks: dict[tuple[int, int], Task] = {}
        self.pending: dict[tuple[int, int], _Pending] = {}
        self.gathered = Gathered()
        self.seq = 0
        self.without_duration = 0

    def key(self, line: _Line, pid: int) -> tuple[int, int]:
        # Files with a pid before each line are whole traces, of one machine each; those without belong together.
        return (0 if line.source.is_alone else id(line.source), pid)

    def task(self, line: _Line) -> Task:
        """Whose line it is. A new one is the child of the fork that has not returned yet, where there is one."""
        key = self.key(line, line.pid)
        task = self.tasks.get(key)
        if task is None:
            forks = [
                (other, pending.text)
                for (space, other), pending in self.pending.items()
                if space == key[0] and pending.text.partition("(")[0] in _FORKS
            ]
            if forks:
                other, text = forks[-1]
                task = self.forked(line, self.tasks[key[0], other], line.pid, text)
            else:
                task = self.tasks[key] = Task(line.pid, Process(line.pid), Table(), [""])
        return task

    def forked(self, line: _Line, parent: Task, pid: int, text: str) -> Task:
        """The child that a fork made, if it is not known already."""
        key = self.key(line, pid)
        if key in self.tasks:
            return self.tasks[key]
        table = parent.table if "CLONE_FILES" in text else parent.table.copy()
        cwd = parent.cwd if "CLONE_FS" in text else [*parent.cwd]
        if "CLONE_THREAD" in text:
            process = parent.process
        else:
            process = Process(pid, parent.process.pid, command=parent.process.command)
        made = self.tasks[key] = Task(pid, process, table, cwd)
        return made

    def take(self, line: _Line) -> None:
        """What one line tells. Raises BadLineError."""
        rest = line.rest
        if rest.startswith("+++"):
            self._exited(line)
        elif rest.startswith("---"):
            if SIGNAL.fullmatch(rest) is None:
                raise BadLineError(f"{quoted(rest)} is not a signal")
        elif rest.startswith("<..."):
            self._resumed(line)
        elif rest.endswith("<unfinished ...>"):
            self._unfinished(line)
        elif rest.endswith(UNRETURNED):
            self.task(line)
        else:
            self._returned(line, line, rest, None)

    def _exited(self, line: _Line) -> None:
        match = EXITED.fullmatch(line.rest)
        if match is None:
            raise BadLineError(f"{quoted(line.rest)} is not an end of a process")
        task = self.task(line)
        key = self.key(line, line.pid)
        self.pending.pop(key, None)
        if task.tid == task.process.pid:
            self._row(task, (line.time_ns, line.time_ns), op=OP["exit"], aux=int(match[1] or 0))
        # The number may come again as another's.
        del self.tasks[key]

    def _unfinished(self, line: _Line) -> None:
        match = UNFINISHED.fullmatch(line.rest)
        if match is None:
            raise BadLineError(f"{quoted(line.rest)} is not an unfinished call")
        task = self.task(line)
        dropped = None
        if match[1] == "close":
            # The number is free at once: another thread may get it before this call returns.
            fd, opened = self.calls.opened(task, match[2])
            dropped = (fd, opened)
            task.table.drop(fd)
        text = line.rest[: -len("<unfinished ...>")].rstrip()
        self.pending[self.key(line, line.pid)] = _Pending(line, text, dropped)

    def _resumed(self, line: _Line) -> None:
        match = RESUMED.fullmatch(line.rest)
        if match is None:
            raise BadLineError(f"{quoted(line.rest)} is not a resumed call")
        pending = self.pending.pop(self.key(line, line.pid), None)
        if pending is None or not pending.text.startswith(f"{match[1]}("):
            raise BadLineError(f"resumes {match[1]}, which had not begun")
        tail = match[2]
        # Where the first half ends in a comma, strace may have printed the blank behind it on either.
        joined = f"{pending.text} {tail}" if pending.text.endswith(",") else f"{pending.text}{tail}"
        if not pending.text.endswith((",", "(")) and tail and tail[0] not in "),":
            joined = f"{pending.text}, {tail}"
        self._returned(pending.line, line, joined, pending)

    def _returned(self, begun: _Line, ended: _Line, text: str, pending: _Pending | None) -> None:
        task = self.task(begun)
        name = text.partition("(")[0]
        if name in _LAST:
            return
        if name in _FORKS:
            call = parse_call(text)
            if call.result is not None and call.result > 0:
                self.forked(begun, task, call.result, text)
                self._row(task, self._span(begun, ended, call), op=OP["fork"], done=call.result)
            return
        if name not in CALLS:
            if not (name.isidentifier() and len(text) > len(name)):
                raise BadLineError(f"{quoted(text)} is not a call")
            return
        call = parse_call(text)
        if pending is not None and pending.dropped is not None:
            fd, opened = pending.dropped
            if opened is not None:
                fields = {"op": OP["close"], "file": self.names.code(opened.file.path), "fd": fd}
                self._row(task, self._span(begun, ended, call), **fields, **outcome(call))
            return
        made = self.calls.made(task, call)
        if made is not None and made.path:
            self._row(task, self._span(begun, ended, call), **made.numbers(self.names), **outcome(call))

    def _span(self, begun: _Line, ended: _Line, call: Call) -> tuple[int, int]:
        if call.duration_ns is not None:
            return begun.time_ns, begun.time_ns + call.duration_ns
        self.without_duration += 1
        return begun.time_ns, max(begun.time_ns, ended.time_ns)

    def _row(self, task: Task, span: tuple[int, int], **fields: int) -> None:
        self.seq += 1
        made = row(start_ns=span[0], end_ns=span[1], thread=min(task.tid, 2**31 - 1), seq=self.seq, **fields)
        self.gathered.add(task.process, made)

    def finish(self) -> None:
        """What remains to be said."""
        if self.pending:
            self.notes.miss(f"{len(self.pending):,} calls had not returned when the trace ended")
        if self.calls.copied_bytes:
            self.notes.miss(
                f"{self.calls.copied_bytes:,} bytes went from file to file (copy_file_range, sendfile): they are no "
                "reads and writes of either"
            )
        if self.calls.unplaced:
            self.notes.miss(
                f"{self.calls.unplaced:,} reads and writes have no known offset: their descriptors were open before "
                "the trace began, or append to files of unknown size"
            )
        if self.without_duration:
            self.notes.miss(f"{self.without_duration:,} calls have no duration: trace with -T")


def outcome(call: Call) -> dict[str, int]:
    """What a call returned, as columns of a row."""
    result = -1 if call.result is None else call.result
    return {"done": result if -1 <= result < 1 << 48 else 0 if result > 0 else -1, "errno": min(call.errno, 4095)}


def read_strace(files: Sequence[Path], names: Names, notes: Notes) -> Iterator[Batch]:
    """Reads the texts of `strace -f -ttt -T -y` (or -yy), or those of `-ff -o` together."""
    if len(files) > FILES_MAX:
        raise WorkloadError(
            f"{files[0]}: is one of {len(files):,} files, at most {FILES_MAX} are read at once; "
            "trace with 'strace -f -o FILE', which writes one"
        )
    machine = _Machine(names, notes)
    sources = [_Source(number, path, notes) for number, path in enumerate(files)]
    for line in heapq.merge(*sources, key=lambda line: line.time_ns):
        try:
            machine.take(line)
        except BadLineError as error:
            line.source.lines.bad(str(error), line.number)
        if machine.gathered.is_full:
            yield from machine.gathered.take()
    machine.finish()
    notes.is_wall_clock = all(source.clock.is_wall_clock for source in sources)
    if not notes.is_wall_clock:
        notes.miss("its times are of the day, without a date: trace with -ttt")
    yield from machine.gathered.take()
