"""What a program file says of itself: its machine, its loader, the libraries and the version of the C library it needs.

Read from the file, never by running it. Only 64-bit little-endian ELF is taken apart; anything else is told by its
kind alone. Files come from users, so every number in them is doubted: a file that lies is `Kind.OTHER`.
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE = 1, 2, 3, 4
DT_NEEDED, DT_STRTAB, DT_VERNEED, DT_VERNEEDNUM = 1, 5, 0x6FFFFFFE, 0x6FFFFFFF
#: More of anything than this is a damaged file.
ENTRIES_MAX = 4096
NAME_BYTES_MAX = 4096
#: The note by which Go's linker marks what it made (.note.go.buildid): its name, and its type.
GO_NOTE = (b"Go\0\0", 4)


class Kind(Enum):
    """What a file is to the loader."""

    DYNAMIC = "dynamic"
    STATIC = "static"
    SCRIPT = "script"
    FOREIGN = "foreign"
    OTHER = "other"


@dataclass(frozen=True)
class Program:
    """A program or library file.

    `machine` is ELF's number, 0 where there is none; `versions` those of symbols; `loader` what starts it: the loader
    of a program, the interpreter of a script; `go` whether Go's linker made it.
    """

    kind: Kind
    machine: int = 0
    needed: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    loader: str = ""
    go: bool = False

    def glibc(self) -> tuple[int, int]:
        """The oldest C library that has all symbols it needs, (0, 0) when it needs none."""
        found = [(0, 0)]
        for version in self.versions:
            numbers = version.removeprefix("GLIBC_").split(".")
            if version.startswith("GLIBC_") and len(numbers) >= 2 and all(n.isdecimal() for n in numbers):
                found.append((int(numbers[0]), int(numbers[1])))
        return max(found)


def read_program(path: Path) -> Program:
    """What is at `path`; OSError when it cannot be read."""
    with path.open("rb") as file:
        head = file.read(64)
        if head[:2] == b"#!":
            words = (head + file.read(NAME_BYTES_MAX)).split(b"\n", 1)[0][2:].split()
            return Program(Kind.SCRIPT, loader=os.fsdecode(words[0]) if words else "")
        if head[:4] != b"\x7fELF" or len(head) < 64:
            return Program(Kind.OTHER)
        if head[4:6] != b"\x02\x01":
            return Program(Kind.FOREIGN)
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            try:
                return _read(data)
            except (struct.error, IndexError, ValueError, UnicodeDecodeError):
                return Program(Kind.OTHER)


def own_machine() -> int:
    """ELF's number of this machine, as the running program has it."""
    return struct.unpack_from("<H", Path("/proc/self/exe").open("rb").read(64), 18)[0]  # type: ignore[no-any-return]


def _read(data: mmap.mmap) -> Program:
    machine = _numbers("<H", data, 18)[0]
    at, (size, count) = _numbers("<Q", data, 32)[0], _numbers("<HH", data, 54)
    if size < 56 or count > ENTRIES_MAX:
        raise ValueError
    loads: list[tuple[int, int, int]] = []
    dynamic: tuple[int, int] | None = None
    loader, go = "", False
    for number in range(count):
        kind, _, offset, address, _, length = _numbers("<IIQQQQ", data, at + number * size)
        if kind == PT_LOAD:
            loads.append((address, length, offset))
        elif kind == PT_DYNAMIC:
            dynamic = (offset, length)
        elif kind == PT_INTERP:
            loader = _name(data, offset)
        elif kind == PT_NOTE:
            go = go or _is_go(data, offset, length)
    if dynamic is None:
        return Program(Kind.STATIC, machine, go=go)
    entries = []
    for number in range(min(dynamic[1] // 16, ENTRIES_MAX)):
        tag, value = _numbers("<QQ", data, dynamic[0] + number * 16)
        if tag == 0:
            break
        entries.append((tag, value))
    table = dict(entries)
    if DT_STRTAB not in table:
        return Program(Kind.DYNAMIC if loader else Kind.STATIC, machine, loader=loader, go=go)
    names = _place(loads, table[DT_STRTAB])
    needed = tuple(_name(data, names + value) for tag, value in entries if tag == DT_NEEDED)
    versions: list[str] = []
    if DT_VERNEED in table:
        versions = _versions(data, _place(loads, table[DT_VERNEED]), table.get(DT_VERNEEDNUM, 0), names)
    # A static program that was built to be placed anywhere has a dynamic section, but neither loader nor needs.
    return Program(Kind.DYNAMIC if loader or needed else Kind.STATIC, machine, needed, tuple(versions), loader, go)


def _is_go(data: mmap.mmap, at: int, length: int) -> bool:
    """Whether one of the notes is that of Go's linker; each is three lengths and what they count, rounded to four."""
    end = at + length
    for _ in range(ENTRIES_MAX):
        if at + 12 > end:
            return False
        name, description, kind = _numbers("<III", data, at)
        if (data[at + 12 : at + 12 + min(name, 16)], kind) == GO_NOTE:
            return True
        at += 12 + (name + 3 & ~3) + (description + 3 & ~3)
    return False


def _versions(data: mmap.mmap, at: int, count: int, names: int) -> list[str]:
    found: list[str] = []
    for _ in range(min(count, ENTRIES_MAX)):
        _, parts, _, part, following = _numbers("<HHIII", data, at)
        part += at
        for _ in range(min(parts, ENTRIES_MAX)):
            _, _, _, name, further = _numbers("<IHHII", data, part)
            found.append(_name(data, names + name))
            part += further
        at += following
        if len(found) > ENTRIES_MAX:
            raise ValueError
    return found


def _numbers(form: str, data: mmap.mmap, at: int) -> tuple[int, ...]:
    if at < 0 or at > len(data):
        raise ValueError
    return struct.unpack_from(form, data, at)


def _place(loads: list[tuple[int, int, int]], address: int) -> int:
    """Where in the file the bytes of an address stand."""
    for start, length, offset in loads:
        if start <= address < start + length:
            return address - start + offset
    raise ValueError


def _name(data: mmap.mmap, at: int) -> str:
    if at < 0 or at > len(data):
        raise ValueError
    end = data.find(b"\0", at, at + NAME_BYTES_MAX)
    if end < 0:
        raise ValueError
    return data[at:end].decode()
