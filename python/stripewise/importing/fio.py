"""fio's iolog, versions 2 and 3: `filename action [offset length]`, in version 3 after a time in microseconds.

Every file is the log of one job, so of one process. fio logs when a request is issued and not when it is done, so calls
take no time; version 2 has no times but those of `wait`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import WorkloadError
from .comma import SIZE_MAX
from .records import NUMBER_MAX, OP, Batch, Gathered, Names, Notes, Process, row
from .text import BadLineError, Lines, integer, quoted

_FIRST = re.compile(r"fio version ([0-9]+) iolog")
_MANAGING = {"add": None, "open": "open", "close": "close"}
_DOING = {"read": "read", "write": "write", "sync": "sync", "datasync": "sync", "trim": "fallocate", "wait": None}
#: FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, which a trim of a file is.
_PUNCH = 3


class _Log:
    """One iolog: the clock, and the action on each line."""

    def __init__(self, lines: Lines, names: Names, version: int) -> None:
        self.lines = lines
        self.names = names
        self.version = version
        self.now_ns = 0
        self.has_waits = False
        self.seq = 0

    def row(self, line: str) -> tuple[int, ...] | None:
        """The call that a line stands for; None where it is none. Raises BadLineError."""
        if self.version >= 3:
            stamp, _, line = line.strip().partition(" ")
            self.now_ns = integer(stamp, "time", 0, NUMBER_MAX // 1000 - 1) * 1000
        words = line.split()
        if len(words) >= 2 and words[-1] in _MANAGING:
            name, action, numbers = line.strip()[: -len(words[-1])].rstrip(), words[-1], (0, 0)
        elif len(words) >= 4 and words[-3] in _DOING:
            name, action = line.strip().rsplit(None, 3)[0], words[-3]
            numbers = (
                integer(words[-2], "offset", 0, NUMBER_MAX - 1),
                integer(words[-1], "length", 0, SIZE_MAX),
            )
        else:
            raise BadLineError(f"{quoted(line)} is not an action of fio's (filename action [offset length])")
        return self._made(name, action, *numbers)

    def _made(self, name: str, action: str, offset: int, length: int) -> tuple[int, ...] | None:
        if action == "wait":
            if self.version >= 3:
                raise BadLineError("has a wait, which version 3 does not know")
            self.has_waits = True
            self.now_ns = min(self.now_ns + offset * 1000, NUMBER_MAX - 1)
        op = _MANAGING.get(action) or _DOING.get(action)
        if op is None:
            return None
        if self.version < 3:
            # One nanosecond each, so that they stay in order.
            self.now_ns += 1
        self.seq += 1
        is_data = action in ("read", "write", "trim")
        return row(
            op=OP[op],
            start_ns=self.now_ns,
            end_ns=self.now_ns,
            offset=offset if is_data else 0,
            requested=length if is_data else 0,
            done=length if action in ("read", "write") else 0,
            file=self.names.code(name),
            aux={"datasync": 1, "trim": _PUNCH}.get(action, 0),
            seq=self.seq,
        )


def read_fio(files: Sequence[Path], names: Names, notes: Notes) -> Iterator[Batch]:
    """Reads iologs; each is a process of its own."""
    notes.is_wall_clock = False
    notes.miss("fio logs when requests are issued, not when they are done: calls take no time")
    gathered = Gathered()
    for number, path in enumerate(files):
        process = Process(pid=number)
        lines = Lines(path, notes)
        rest = iter(lines)
        first = next(rest, (1, ""))[1].strip()
        match = _FIRST.fullmatch(first)
        if match is None or match[1] not in ("2", "3"):
            raise WorkloadError(
                f"{path}: line 1: {quoted(first)} is not 'fio version 2 iolog' or 'fio version 3 iolog'; "
                "write the log with fio's --write_iolog"
            )
        log = _Log(lines, names, int(match[1]))
        for _, line in rest:
            if not line.strip():
                continue
            try:
                made = log.row(line)
            except BadLineError as error:
                lines.bad(str(error))
                continue
            if made is not None:
                gathered.add(process, made)
                if gathered.is_full:
                    yield from gathered.take()
        if log.version < 3 and not log.has_waits:
            notes.miss("iologs of version 2 without 'wait' have no times: requests stand 1 ns apart")
    yield from gathered.take()
