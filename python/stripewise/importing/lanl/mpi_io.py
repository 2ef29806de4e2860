"""MPI-IO calls in ltrace's text: which file a handle is, where its pointer stands, how many bytes a datatype has.

ltrace prints handles and constants as words of the machine, so this knows those of MPICH 1, on which LANL-Trace's
traces were made, and of MPICH 2 and later.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..comma import SIZE_MAX
from ..mpi_names import mpi_operation
from ..records import IMPLICIT_OFFSET, NUMBER_MAX, OP
from ..strace.syntax import text_of
from .folding import Folded

_COMMUNICATORS = {
    91: "MPI_COMM_WORLD", 92: "MPI_COMM_SELF", 0x44000000: "MPI_COMM_WORLD", 0x44000001: "MPI_COMM_SELF",
}  # fmt: skip
#: Bytes of MPICH 1's datatypes, MPI_CHAR to MPI_DOUBLE.
_BYTES = {1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 4, 8: 8, 9: 8, 10: 4, 11: 8}
_WHENCE = {600: 0, 602: 1, 604: 2}


@dataclass(slots=True)
class MpiFile:
    """What a handle is: `position` is None where it is not known, as after a view."""

    path: str
    number: int
    position: int | None = 0


@dataclass(frozen=True)
class Sanitised:
    """One MPI-IO call in the seven dimensions of PIONEER's table 2.3; times as the trace prints them."""

    stamp: str
    operation: str
    file: str
    offset: int | None
    size: int | None
    seconds: str
    extra: str

    def line(self) -> str:
        """As table 2.3 writes it; what is not known is NULL."""
        values = (self.stamp, self.operation, self.file, self.offset, self.size, self.seconds, self.extra)
        return " ".join("NULL" if value is None or value == "" else str(value) for value in values)


def word(argument: str) -> int | None:
    """A word of the machine: decimal or hexadecimal."""
    text = argument.strip()
    if len(text) > 20 or not text.isascii():
        return None
    try:
        return int(text, 16) if text.startswith("0x") else int(text)
    except ValueError:
        return None


def datatype_bytes(argument: str) -> int | None:
    """Bytes of a datatype; None for one that the program made, or of another MPI."""
    value = word(argument)
    if value is None:
        return None
    if value >> 24 == 0x4C:  # a basic datatype of MPICH 2 and later carries its size
        return value >> 8 & 0xFF
    return _BYTES.get(value)


class MpiCalls:
    """The MPI files of one process."""

    def __init__(self) -> None:
        self._handles: dict[str, MpiFile] = {}
        self._unbound: list[MpiFile] = []
        self._numbers = 0
        #: Calls whose bytes are counted in elements, for the datatype's size is not known.
        self.unsized = 0

    def fields(self, folded: Folded) -> tuple[Sanitised, dict[str, int]] | None:
        """The call sanitised, and as columns of a row; None for a call that is not recorded."""
        call = folded.call
        found = mpi_operation(call.name.removeprefix("P"))
        if found is None:
            return None
        op, flags = found
        inside = [each.path for each in folded.inside if each.path]
        fields = {"op": op, "flags": flags & ~IMPLICIT_OFFSET, "done": 0 if call.result == 0 else -1}
        offset: int | None = None
        size: int | None = None
        extra = ""
        if op == OP["mpi_open"]:
            file, extra = self._open(call.arguments, inside)
            fields["aux"] = 1 if extra.startswith("MPI_COMM_SELF") else 0
        else:
            file = self._file(call.arguments[0] if call.arguments else "", inside)
        if op in (OP["mpi_read"], OP["mpi_write"]):
            offset, size = self._transfer(call.name, call.arguments, file, folded)
            fields["requested"] = size or 0
            fields["done"] = (size or 0) if call.result == 0 else -1
            fields["flags"] |= flags & IMPLICIT_OFFSET
        elif op == OP["mpi_seek"]:
            offset = self._seek(call.arguments, file)
        elif op == OP["view"]:
            file.position = None
        seconds = f"{(folded.end_ns - folded.start_ns) / 1e9:.6f}"
        sanitised = Sanitised(folded.stamp, call.name, file.path, offset, size, seconds, extra)
        fields["fd"] = file.number
        return sanitised, fields

    def _open(self, arguments: list[str], inside: list[str]) -> tuple[MpiFile, str]:
        name = (text_of(arguments[1]) if len(arguments) > 1 else None) or (inside[-1] if inside else "")
        self._numbers += 1
        file = MpiFile(name, self._numbers)
        self._unbound.append(file)
        value = word(arguments[0]) if arguments else None
        communicator = _COMMUNICATORS.get(value if value is not None else -1, arguments[0] if arguments else "")
        return file, f"{communicator},{arguments[2]}" if len(arguments) > 2 else communicator

    def _file(self, handle: str, inside: list[str]) -> MpiFile:
        """What a handle is: as known; else the file that the call used inside; else the one that was opened first of
        those whose handle has not been seen yet."""
        file = self._handles.get(handle)
        if file is None:
            named = [each for each in self._unbound if each.path in inside]
            file = (named or self._unbound or [MpiFile(inside[-1] if inside else "", 0, None)])[0]
            if file in self._unbound:
                self._unbound.remove(file)
            self._handles[handle] = file
        return file

    def _transfer(
        self, name: str, arguments: list[str], file: MpiFile, folded: Folded
    ) -> tuple[int | None, int | None]:
        call = name.removeprefix("P")
        is_placed = "_at" in call
        words = arguments[1:]
        offset: int | None = file.position
        if is_placed:
            offset, words = _wide(words, len(arguments) - 1 > 5)
            if file.position is None:
                offset = None
        elif "shared" in call or "ordered" in call:
            offset = None
        # Buffer, number of elements, datatype.
        count = word(words[1]) if len(words) > 2 else None
        each = datatype_bytes(words[2]) if len(words) > 2 else None
        size = None if count is None or count < 0 else count * (1 if each is None else each)
        if count is not None and each is None:
            self.unsized += 1
        if size is not None and size > SIZE_MAX:
            size = None
        if not is_placed and offset is not None and folded.call.result == 0:
            file.position = None if size is None else min(offset + size, NUMBER_MAX - 1)
        return offset, size

    def _seek(self, arguments: list[str], file: MpiFile) -> int | None:
        words = [word(argument) for argument in arguments[1:]]
        # MPI_Offset is one word of 64 bits or two of 32, the lower one first; then comes the whence.
        if len(words) > 2 and words[2] in _WHENCE:
            low, high, whence = words[0], words[1], _WHENCE[words[2] or 0]
            offset = None if low is None or high is None else (high << 32 | low & 0xFFFF_FFFF)
        elif len(words) > 1 and words[1] in _WHENCE:
            offset, whence = words[0], _WHENCE[words[1] or 0]
        else:
            offset, whence = None, 2
        if whence == 1 and offset is not None and file.position is not None:
            offset += file.position
        elif whence != 0:
            offset = None
        file.position = offset if offset is not None and 0 <= offset < NUMBER_MAX else None
        return file.position


def _wide(words: list[str], is_two: bool) -> tuple[int | None, list[str]]:
    """An offset of one word or two at the beginning of `words`, and what follows it."""
    low = word(words[0]) if words else None
    if not is_two:
        return (low if low is not None and 0 <= low < NUMBER_MAX else None), words[1:]
    high = word(words[1])
    offset = None if low is None or high is None else (high << 32) + low
    return (offset if offset is not None and 0 <= offset < NUMBER_MAX else None), words[2:]
