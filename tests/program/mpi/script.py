"""Scripts of MPI-IO calls, and which bytes of the file each call must touch.

Worked out here from the same words, one by one, by type maps that are written out (MPI 4.1, sections 5.1 and 14.3),
without anything of the product.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Range = tuple[int, int]


@dataclass(frozen=True)
class Type:
    """A datatype: how a script names it, the (offset, bytes) that it shows, lower bound and extent."""

    name: str
    shown: tuple[Range, ...]
    lower: int
    extent: int
    lines: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return sum(length for _, length in self.shown)


def named(name: str, size: int) -> Type:
    return Type(name, ((0, size),), 0, size)


BYTE, INT, DOUBLE = named("byte", 1), named("int", 4), named("double", 8)
SHORT_INT = Type("short_int", ((0, 2), (4, 4)), 0, 8)
_numbers = itertools.count()


def _made(
    words: str, inner: Sequence[Type], starts: Sequence[tuple[int, Type]], bounds: tuple[int, int] | None = None
) -> Type:
    """Elements at byte offsets; bounds that are not given follow from them."""
    shown = tuple((at + offset, length) for at, t in starts for offset, length in t.shown)
    low = min((at + t.lower for at, t in starts), default=0)
    high = max((at + t.lower + t.extent for at, t in starts), default=0)
    lower, extent = bounds or (low, high - low)
    name = f"t{next(_numbers)}"
    lines = [line for t in inner for line in t.lines]
    lines.append(f"type {name} {words}")
    return Type(name, shown, lower, extent, tuple(dict.fromkeys(lines)))


def _blocks(t: Type, blocks: Iterable[tuple[int, int]]) -> list[tuple[int, Type]]:
    return [(at + k * t.extent, t) for at, length in blocks for k in range(length)]


def contiguous(n: int, t: Type) -> Type:
    return _made(f"contiguous {n} {t.name}", [t], _blocks(t, [(0, n)]))


def vector(n: int, length: int, stride: int, t: Type) -> Type:
    return _made(
        f"vector {n} {length} {stride} {t.name}", [t], _blocks(t, [(k * stride * t.extent, length) for k in range(n)])
    )


def hvector(n: int, length: int, stride: int, t: Type) -> Type:
    return _made(f"hvector {n} {length} {stride} {t.name}", [t], _blocks(t, [(k * stride, length) for k in range(n)]))


def indexed(lengths: Sequence[int], at: Sequence[int], t: Type) -> Type:
    words = f"indexed {len(at)} {' '.join(map(str, [*lengths, *at]))} {t.name}"
    return _made(words, [t], _blocks(t, [(d * t.extent, n) for d, n in zip(at, lengths, strict=True)]))


def hindexed(lengths: Sequence[int], at: Sequence[int], t: Type) -> Type:
    words = f"hindexed {len(at)} {' '.join(map(str, [*lengths, *at]))} {t.name}"
    return _made(words, [t], _blocks(t, zip(at, lengths, strict=True)))


def indexed_block(length: int, at: Sequence[int], t: Type) -> Type:
    words = f"indexed_block {len(at)} {length} {' '.join(map(str, at))} {t.name}"
    return _made(words, [t], _blocks(t, [(d * t.extent, length) for d in at]))


def hindexed_block(length: int, at: Sequence[int], t: Type) -> Type:
    words = f"hindexed_block {len(at)} {length} {' '.join(map(str, at))} {t.name}"
    return _made(words, [t], _blocks(t, [(d, length) for d in at]))


def struct(lengths: Sequence[int], at: Sequence[int], types: Sequence[Type]) -> Type:
    """Resized at once: how far a struct reaches is the library's choice."""
    words = f"struct {len(at)} {' '.join(map(str, [*lengths, *at]))} {' '.join(t.name for t in types)}"
    starts = [start for d, n, t in zip(at, lengths, types, strict=True) for start in _blocks(t, [(d, n)])]
    plain = _made(words, types, starts)
    return resized(plain, 0, plain.lower + plain.extent + 16)


def resized(t: Type, lower: int, extent: int) -> Type:
    return _made(f"resized {lower} {extent} {t.name}", [t], [(0, t)], (lower, extent))


def dup(t: Type) -> Type:
    return _made(f"dup {t.name}", [t], [(0, t)], (t.lower, t.extent))


def _array(words: str, t: Type, sizes: Sequence[int], owned: Sequence[Sequence[int]], order: str) -> Type:
    """Of an array, the elements whose index is owned in every dimension, in the order of the file."""
    dims = range(len(sizes)) if order == "C" else range(len(sizes) - 1, -1, -1)
    places = []
    for index in itertools.product(*(owned[d] for d in dims)):
        at = 0
        for d, i in zip(dims, index, strict=True):
            at = at * sizes[d] + i
        places.append((at * t.extent, t))
    whole = t.extent
    for size in sizes:
        whole *= size
    return _made(words, [t], places, (0, whole))


def subarray(sizes: Sequence[int], parts: Sequence[int], starts: Sequence[int], order: str, t: Type) -> Type:
    words = f"subarray {len(sizes)} {' '.join(map(str, [*sizes, *parts, *starts]))} {order} {t.name}"
    owned = [range(s, s + n) for s, n in zip(starts, parts, strict=True)]
    return _array(words, t, sizes, owned, order)


def darray(
    rank: int, sizes: Sequence[int], how: str, given: Sequence[int], grid: Sequence[int], order: str, t: Type
) -> Type:
    """`how` has a letter for each dimension: b(lock), c(yclic), n(one); -1 is the default argument."""
    total = 1
    for count in grid:
        total *= count
    numbers = [" ".join(map(str, each)) for each in ([total, rank, len(sizes), *sizes], how, [*given, *grid])]
    words = f"darray {' '.join(numbers)} {order} {t.name}"
    place, places = rank, []
    for count in reversed(grid):
        places.insert(0, place % count)
        place //= count
    owned = []
    for size, kind, argument, count, mine in zip(sizes, how, given, grid, places, strict=True):
        block = argument if argument > 0 else -(-size // count) if kind == "b" else 1
        owned.append([i for i in range(size) if kind == "n" or i // block % count == mine])
    return _array(words, t, sizes, owned, order)


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Sorted, neighbours as one."""
    found: list[list[int]] = []
    for at, length in sorted(r for r in ranges if r[1]):
        if found and found[-1][0] + found[-1][1] == at:
            found[-1][1] += length
        else:
            found.append([at, length])
    return [(at, length) for at, length in found]


@dataclass
class View:
    """What a rank sees of the file."""

    displacement: int = 0
    etype: Type = BYTE
    filetype: Type = BYTE

    def ranges(self, position: int, count: int) -> list[Range]:
        """The bytes behind `count` bytes of data from `position` on."""
        found = []
        size = self.filetype.size
        tile, rest = divmod(position, size)
        while count > 0:
            for offset, length in self.filetype.shown:
                if rest >= length:
                    rest -= length
                    continue
                take = min(length - rest, count)
                if take > 0:
                    found.append((self.displacement + tile * self.filetype.extent + offset + rest, take))
                count -= take
                rest = 0
                if count <= 0:
                    break
            tile += 1
        return joined(found)


@dataclass
class Call:
    """What the trace must tell of a call."""

    op: str
    collective: bool
    nonblocking: bool
    asked: int
    #: None: any share of what `Script.shared` has.
    ranges: list[Range] | None


@dataclass
class Script:
    """A script for some ranks, written call by call."""

    processes: int
    lines: list[list[str]] = field(default_factory=list)
    calls: list[list[Call]] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    #: Bytes of the view's data before the shared pointer.
    shared_at: int = 0
    shared: list[list[Range]] = field(default_factory=list)
    defined: list[set[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        each = range(self.processes)
        self.lines, self.calls = [[] for _ in each], [[] for _ in each]
        self.views, self.own, self.defined = [View() for _ in each], [0 for _ in each], [set() for _ in each]

    def all(self, line: str) -> None:
        for lines in self.lines:
            lines.append(line)

    def define(self, rank: int, t: Type) -> str:
        for line in t.lines:
            if line not in self.defined[rank]:
                self.defined[rank].add(line)
                self.lines[rank].append(line)
        return t.name

    def open(self, comm: str = "world", mode: str = "w", key: str = "-", value: str = "-") -> None:
        self.all(f"open {mode} {comm} {key} {value}")
        self.views, self.own, self.shared_at = [View() for _ in self.views], [0 for _ in self.own], 0

    def view(self, displacements: Sequence[int], etype: Type, filetypes: Sequence[Type]) -> None:
        for rank, (at, filetype) in enumerate(zip(displacements, filetypes, strict=True)):
            self.define(rank, etype)
            self.lines[rank].append(f"view {at} {etype.name} {self.define(rank, filetype)}")
            self.views[rank], self.own[rank] = View(at, etype, filetype), 0
        self.shared_at = 0

    def seek(self, to: Sequence[int], whence: str = "set") -> None:
        for rank, n in enumerate(to):
            self.lines[rank].append(f"seek {n} {whence}")
            self.own[rank] = n * self.views[rank].etype.size + (self.own[rank] if whence == "cur" else 0)

    def seek_shared(self, to: int, whence: str = "set") -> None:
        self.all(f"seek_shared {to} {whence}")
        self.shared_at = to * self.views[0].etype.size + (self.shared_at if whence == "cur" else 0)

    def move(
        self,
        name: str,
        counts: Sequence[int],
        memory: Type,
        offsets: Sequence[int] | None = None,
        slot: int | None = None,
        large: bool = False,
    ) -> None:
        """A call of all ranks that moves `counts` elements of `memory` each; `offsets` are in etypes."""
        begun = name.removesuffix("_begin")
        op = "mpi_read" if "read" in name else "mpi_write"
        nonblocking = slot is not None or name.endswith("_begin")
        collective = "_all" in name or "_ordered" in name
        for rank, count in enumerate(counts):
            view, asked = self.views[rank], count * memory.size
            self.define(rank, memory)
            at = "" if offsets is None else f"{offsets[rank]} "
            end = "" if slot is None else f" {slot}"
            self.lines[rank].append(f"{name}{'_c' if large else ''} {at}{count} {memory.name}{end}")
            ranges: list[Range] | None
            if offsets is not None:
                ranges = view.ranges(offsets[rank] * view.etype.size, asked)
            elif "shared" in name:
                self.shared.append(view.ranges(self.shared_at, asked))
                self.shared_at += asked
                ranges = None
            elif "ordered" in name:
                ranges = view.ranges(self.shared_at, asked)
                self.shared_at += asked
            else:
                ranges = view.ranges(self.own[rank], asked)
                self.own[rank] += asked
            self.calls[rank].append(Call(op, collective, nonblocking, asked, ranges))
        if name.endswith("_begin"):
            self.all(f"{begun}_end")


EXPLICIT = ["write_at", "read_at", "write_at_all", "read_at_all"]
OWN = ["write", "read", "write_all", "read_all"]
COMPLETIONS = ["wait", "test", "waitall", "testall", "waitany", "testany", "waitsome", "testsome"]


def filetypes(rank: int, processes: int) -> list[tuple[Type, bool]]:
    """A filetype of each kind, and whether those of all ranks share the file between them without overlap."""
    side = [processes, 1]
    return [
        (BYTE, False),
        (contiguous(5, INT), False),
        (resized(vector(4, 2, 5, INT), 0, 96), False),
        (hvector(3, 1, 40, vector(2, 1, 3, INT)), False),
        (resized(indexed([2, 0, 3, 1], [0, 3, 5, 10], INT), 0, 64), False),
        (hindexed([1, 2, 1], [4, 20, 44], INT), False),
        (indexed_block(2, [0, 4, 8, 12, 19], INT), False),
        (hindexed_block(1, [8, 24, 28], INT), False),
        (struct([1, 2, 1], [0, 12, 40], [INT, INT, DOUBLE]), False),
        (SHORT_INT, False),
        (dup(resized(INT, 0, 4 * processes)), False),
        (subarray([6, 4 * processes], [6, 4], [0, 4 * rank], "C", INT), True),
        (subarray([4 * processes, 5], [4, 5], [4 * rank, 0], "F", INT), True),
        (subarray([3, 4, 2 * processes, 2], [2, 3, 2, 2], [1, 0, 2 * rank, 0], "C", INT), True),
        (darray(rank, [9, 7], "bc", [-1, 2], side, "C", INT), True),
        (darray(rank, [11, 6], "cn", [3, -1], side, "F", INT), True),
    ]


def every_call(processes: int, seed: int, large: bool, pairs: bool = True, brief: bool = False) -> Script:
    """Each kind of view, and in each a mixture of all calls by explicit offset and by individual pointer."""
    script, chance = Script(processes), random.Random(seed)
    by_rank = [filetypes(rank, processes) for rank in range(processes)]
    script.open()
    # No read is short, whatever the other ranks have written so far.
    script.all("set_size 1048576")
    for kind in range(len(by_rank[0])):
        shares = by_rank[0][kind][1]
        if by_rank[0][kind][0] is SHORT_INT and not pairs:
            continue
        views = [types[kind][0] for types in by_rank]
        # SHORT_INT is seen by the byte: no etype of its own.
        etype = BYTE if views[0] in (BYTE, SHORT_INT) else INT
        script.view([64 if shares else rank * (1 << 16) + 8 for rank in range(processes)], etype, views)
        memory = resized(INT, 0, 12) if kind % 2 else INT
        for step in range(3 if brief else 10):
            begun = 0
            some = [chance.randint(1, 9) for _ in range(processes)]
            at = [chance.randint(0, 6) for _ in range(processes)]
            script.move(EXPLICIT[step % 4], some, memory, at, large=large and step % 3 == 0)
            script.move(OWN[(step + kind) % 4], some, memory, large=large and step % 3 == 1)
            if step % 5 == 0:
                # Nonblocking, several at a time, and completed by one family or another.
                for name, offsets in (("iwrite_at", at), ("iwrite", None), ("iread_at", at), ("iread", None)):
                    # One after the other: they touch the same bytes.
                    script.move(name, some, memory, offsets, slot=0, large=large)
                    script.all(f"complete {COMPLETIONS[chance.randrange(8)]} 1")
                for begun in range(3):
                    script.move("iwrite_at", some, memory, [n + 40 * (begun + 1) for n in at], slot=begun)
                script.all(f"complete {COMPLETIONS[(kind + step) % 8]} {begun + 1}")
                for name, offsets in (
                    ("iwrite_at_all", at),
                    ("iwrite_all", None),
                    ("iread_at_all", at),
                    ("iread_all", None),
                ):
                    script.move(name, some, memory, offsets, slot=0)
                    script.all(f"complete {COMPLETIONS[(kind + 3) % 8]} 1")
                for name, offsets in (
                    ("write_at_all_begin", at),
                    ("write_all_begin", None),
                    ("read_at_all_begin", at),
                    ("read_all_begin", None),
                ):
                    script.move(name, some, memory, offsets, large=large and step == 0)
            if step == 4:
                script.seek([chance.randint(0, 20) for _ in range(processes)])
            if step == 7:
                script.seek([3] * processes, "cur")
        script.all("sync")
        script.all("barrier")
    script.all("get_size")
    script.all("close")
    return script


def pointers(processes: int, large: bool) -> Script:
    """The shared file pointer: by all ranks in order, and by each on its own."""
    script = Script(processes)
    script.open()
    script.all("set_size 65536")
    spread = resized(vector(2, 1, 2, INT), 0, 16)
    for etype, filetype in ((BYTE, BYTE), (INT, spread)):
        script.view([32] * processes, etype, [filetype] * processes)
        script.move("write_ordered", [2 + rank for rank in range(processes)], INT, large=large)
        script.move("read_ordered", [1 + 2 * rank for rank in range(processes)], INT)
        script.seek_shared(6)
        script.move("write_ordered_begin", list(range(processes)), INT)
        script.seek_shared(4, "cur")
        script.move("read_ordered_begin", [3] * processes, INT, large=large)
        script.all("barrier")
        script.seek_shared(200)
        for name, slot in (("read_shared", None), ("iread_shared", 0), ("write_shared", None), ("iwrite_shared", 0)):
            script.move(name, [4] * processes, INT, slot=slot, large=large)
            if slot is not None:
                script.all("complete wait 1")
        script.all("barrier")
        script.seek_shared(400)
        script.move("write_ordered", [5] * processes, INT)
    script.all("close")
    return script


def sessions(processes: int) -> Script:
    """Files of one rank, of some, and the same file again, with the calls that move nothing."""
    script = Script(processes)
    for comm in ("self", "half", "world", "world"):
        script.open(comm)
        script.all("preallocate 4096")
        script.all("atomicity 1")
        script.move("write_at", [8] * processes, INT, [64 * rank for rank in range(processes)])
        script.all("atomicity 0")
        script.move("read_at_all", [8] * processes, INT, [64 * rank for rank in range(processes)])
        script.all("close")
    script.open("world", "r")
    # Behind the end of the file.
    script.move("read_at", [8192] * processes, BYTE, [100 * rank for rank in range(processes)])
    script.all("close")
    return script
