"""Halves of calls put together: what is between `MPI_File_open(.. <unfinished ...>` and `<... MPI_File_open resumed>`
was called inside it (PIONEER, section 2.6.1, table 2.3)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..strace.syntax import Call, parse_call
from ..text import BadLineError, quoted

_UNFINISHED = re.compile(r"(\w{1,60})\((.*?),? ?<unfinished \.\.\.>", re.ASCII)
_RESUMED = re.compile(r"<\.\.\. (\w{1,60}) resumed> ?(.*)", re.ASCII)
_NAME = re.compile(r"(\w{1,60})\(", re.ASCII)
#: What is parsed: a trace has all library calls, with values that only ltrace understands.
_LIBRARY = re.compile(r"(?:p?(?:read|write)(?:64)?|open(?:64)?|lseek(?:64)?|close|fsync|fdatasync)\Z")
#: Calls inside each other at most; a trace has some three.
_DEPTH_MAX = 64


@dataclass(slots=True)
class Folded:
    """A call that returned, and the system calls inside it, which came before it as `Folded` of their own; `path` is
    the file of a system call, once it is known."""

    call: Call
    stamp: str
    start_ns: int
    end_ns: int
    depth: int
    inside: list[Folded] = field(default_factory=list)
    path: str = ""


def is_wanted(name: str) -> bool:
    """Whether calls of this name say something about files."""
    return name.startswith(("SYS_", "MPI_File_", "PMPI_File_")) or _LIBRARY.match(name) is not None


@dataclass(slots=True)
class _Open:
    """A call that has not returned."""

    name: str
    text: str
    stamp: str
    time_ns: int
    inside: list[Folded] = field(default_factory=list)


class Fold:
    """The calls of one thread, from its lines in order."""

    def __init__(self) -> None:
        self._open: list[_Open] = []

    @property
    def depth(self) -> int:
        """Calls that have not returned."""
        return len(self._open)

    def take(self, rest: str, stamp: str, time_ns: int) -> Folded | None:
        """One line behind its time; a call when it has returned, if it is one of those wanted. Raises BadLineError."""
        if rest.startswith(("---", "+++")):
            return None
        if rest.startswith("<..."):
            return self._resumed(rest, time_ns)
        if rest.endswith("<unfinished ...>"):
            match = _UNFINISHED.fullmatch(rest)
            if match is None or self.depth >= _DEPTH_MAX:
                raise BadLineError(f"{quoted(rest)} is not an unfinished call")
            self._open.append(_Open(match[1], f"{match[1]}({match[2]}", stamp, time_ns))
            return None
        match = _NAME.match(rest)
        if match is None:
            raise BadLineError(f"{quoted(rest)} is not a call")
        return self._returned(match[1], rest, stamp, time_ns, time_ns, [])

    def _resumed(self, rest: str, time_ns: int) -> Folded | None:
        match = _RESUMED.fullmatch(rest)
        names = [each.name for each in self._open]
        if match is None or match[1] not in names:
            raise BadLineError(f"{quoted(rest)} resumes what had not begun")
        # What is open above it was left by a jump, or its line was lost.
        while self._open[-1].name != match[1]:
            self._open.pop()
        begun = self._open.pop()
        return self._returned(begun.name, begun.text + match[2], begun.stamp, begun.time_ns, time_ns, begun.inside)

    def _returned(
        self, name: str, text: str, stamp: str, start_ns: int, end_ns: int, inside: list[Folded]
    ) -> Folded | None:
        if not is_wanted(name):
            # What an unknown call made inside was made inside the one around it.
            if self._open:
                self._open[-1].inside += inside
            return None
        call = parse_call(text)
        if call.duration_ns is not None:
            end_ns = start_ns + call.duration_ns
        folded = Folded(call, stamp, start_ns, max(start_ns, end_ns), self.depth, inside)
        if self._open and name.startswith("SYS_"):
            self._open[-1].inside.append(folded)
        return folded
