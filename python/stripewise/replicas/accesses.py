"""The patterns that managers decide about: the requests of each as arrays, from a trace's report or given by hand.

What ranks do alike is a global pattern where a formula of the rank gives their places, or their places interleave or
tile one range; else each rank's part is a local one. Random requests follow no pattern and have no replica.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..pattern import PatternReport
from ..pattern.local import Segment
from ..pattern.records import FileRecords, codes_of
from ..pattern.report import Described, FilePatterns
from ..pattern.together import GlobalPattern
from ..pattern.views import Views, of_records, views_of
from ..pattern.words import sentence, size_text
from ..units import OFFSET_BYTES_MAX, parse_size

Int = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

#: Requests of a pattern given by hand.
BY_HAND_MAX = 1 << 22


@dataclass(frozen=True, eq=False)
class Below:
    """Reads of descriptors that were made of reads behind views: arrays of one shape, each client's in its order."""

    client: Int
    offset: Int
    size: Int
    #: Of each request of the pattern the number of the call that asked for it.
    call: Int


@dataclass(frozen=True, eq=False)
class Accesses:
    """The requests of a pattern: arrays of one shape, by client ascending, each client's in its order of access."""

    file: str
    #: What is done, in a sentence.
    words: str
    is_global: bool
    client: Int
    write: Bool
    offset: Int
    size: Int
    #: When the first of them began and the last one ended, on the trace's clock.
    start_ns: int = 0
    end_ns: int = 0
    #: What the MPI library read of the file to serve it; None: just these requests.
    below: Below | None = field(default=None, repr=False)
    #: The patterns that it was joined of; none where it is one itself.
    joined_of: tuple[Accesses, ...] = field(default=())

    @property
    def also(self) -> tuple[str, ...]:
        """The sentences of the others that it was joined of."""
        return tuple(each.words for each in self.joined_of[1:])

    @property
    def operation(self) -> str:
        """read, write or both."""
        return "both" if self.write.any() and not self.write.all() else "write" if self.write.any() else "read"

    @property
    def processes(self) -> int:
        """How many take part."""
        return len(np.unique(self.client))

    @property
    def bytes(self) -> int:
        """Of all requests, repeated ones too."""
        return int(self.size.sum())

    @property
    def request_bytes(self) -> int:
        """The mean request, rounded up."""
        return -(-self.bytes // len(self.size))

    @property
    def key(self) -> tuple[Any, ...]:
        """An order of patterns that does not depend on how they are listed."""
        first = int(self.offset.min()), int(self.client[0])
        return (self.start_ns, self.file, *first, len(self.size), self.bytes, self.operation, self.words)

    def joined(self, other: Accesses) -> Accesses:
        """Both as one: what one replica serves, where they have the same blocks."""
        client = np.concatenate([self.client, other.client])
        order = np.argsort(client, kind="stable")
        return replace(
            self,
            client=client[order],
            write=np.concatenate([self.write, other.write])[order],
            offset=np.concatenate([self.offset, other.offset])[order],
            size=np.concatenate([self.size, other.size])[order],
            end_ns=max(self.end_ns, other.end_ns),
            below=self._below_with(other),
            joined_of=(*(self.joined_of or (self,)), *(other.joined_of or (other,))),
        )

    def _below_with(self, other: Accesses) -> Below | None:
        """Of both; what is known of one alone tells nothing of them together."""
        if self.below is None or other.below is None:
            return None
        one, two = self.below, other.below
        client = np.concatenate([one.client, two.client])
        order = np.argsort(client, kind="stable")
        offset, size = np.concatenate([one.offset, two.offset]), np.concatenate([one.size, two.size])
        call = np.concatenate([one.call, two.call + int(one.call.max(initial=-1)) + 1])
        asked = np.argsort(np.concatenate([self.client, other.client]), kind="stable")
        return Below(client[order], offset[order], size[order], call[asked])

    def apart(self) -> tuple[Accesses, ...]:
        """Of patterns that it was joined of, those that write as one, and those that only read; else itself."""
        sides = [[each for each in self.joined_of if each.write.any() == writes] for writes in (True, False)]
        return tuple(reduce(Accesses.joined, side) for side in sides if side) or (self,)


@dataclass(frozen=True)
class Writes:
    """What a run writes of a file, in patterns or not: arrays of one shape, each client's in its order of access.

    `start_ns` is when each began, on the trace's clock; None: before all reads.
    """

    client: Int
    offset: Int
    size: Int
    start_ns: Int | None = None

    def before(self, start_ns: int) -> Writes:
        """Those that began before."""
        if self.start_ns is None:
            return self
        early = self.start_ns < start_ns
        return Writes(self.client[early], self.offset[early], self.size[early], self.start_ns[early])


@dataclass(frozen=True)
class Extent:
    """What a manager must know of a file: its size as far as the trace tells, and the bytes read of it and written.

    `writes` are what wrote them; None where that is not known.
    """

    size_bytes: int
    read_bytes: int
    written_bytes: int = 0
    writes: Writes | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Found:
    """The patterns of a run, what has none (file, sentence, why, bytes), and its files by path."""

    patterns: tuple[Accesses, ...]
    without: tuple[tuple[str, str, str, int], ...]
    extents: dict[str, Extent]
    #: Of files that MPI-IO read, what it was asked for and made of it.
    views: dict[str, Views] = field(default_factory=dict)


def accesses_of(report: PatternReport) -> Found:
    """The patterns in a report, by their start."""
    patterns: list[Accesses] = []
    without = []
    extents = {}
    views = {}
    for file in report.files:
        if (called := views_of(file)) is not None:
            views[file.path] = called
        records = file.recognised.records
        reads = np.array([kind.op == "read" for kind in file.kinds])[records.kind]
        ends = records.offset + records.size
        extents[file.path] = Extent(
            int(ends.max()),
            int(records.size[reads].sum()),
            int(records.size[~reads].sum()),
            _writes(records if file.below is None else file.below) or _writes(records) or _NO_WRITES,
        )
        for described in file.patterns:
            if not described.pattern.segments[0].is_regular:
                why = "random requests follow no pattern"
                without.append((file.path, described.sentence, why, described.bytes))
                continue
            patterns += _of(file, described, report)
    return Found(tuple(sorted(patterns, key=lambda each: each.key)), tuple(without), extents, views)


_NO_WRITES = Writes(*(np.zeros(0, np.int64),) * 4)


def _writes(records: FileRecords) -> Writes | None:
    """Those among records; None where there are none."""
    is_write = np.array([kind.op == "write" for kind in records.kinds])
    wrote = np.flatnonzero(is_write[records.kind] & (records.size > 0))
    columns = (records.rank, records.offset, records.size, records.start_ns)
    return Writes(*(each[wrote].astype(np.int64) for each in columns)) if len(wrote) else None


def _of(file: FilePatterns, described: Described, report: PatternReport) -> Iterator[Accesses]:
    pattern = described.pattern
    if _acts_as_one(described):
        yield _gathered(file, pattern, described.sentence)
        return
    for rank, segment in zip(pattern.ranks, pattern.segments, strict=True):
        alone = GlobalPattern((rank,), (segment,), None)
        yield _gathered(file, alone, sentence(alone, file.kinds, report.processes, file.recognised.records.is_ranked))


def _acts_as_one(described: Described) -> bool:
    """Whether it is one pattern: of one process, or of several that act together (PDLA, sections 3.2.2 and 3.3.1)."""
    pattern = described.pattern
    if len(pattern.ranks) == 1 or pattern.is_symbolic or pattern.row is not None or described.is_exact_cover:
        return True
    spans = sorted(_span(segment) for segment in pattern.segments)
    return all(after[0] < before[1] for before, after in itertools.pairwise(spans))


def _span(segment: Segment) -> tuple[int, int]:
    assert segment.loop is not None
    return segment.loop.span()


def _gathered(file: FilePatterns, pattern: GlobalPattern, words: str) -> Accesses:
    """The requests of these segments; ranks ascend in a pattern."""
    records = file.recognised.records
    rows = [file.recognised.rows(each.stream)[each.first : each.first + each.records] for each in pattern.segments]
    row = np.concatenate(rows)
    is_write = np.array([kind.op == "write" for kind in file.kinds])
    client, write = (
        np.repeat(np.array(pattern.ranks, dtype=np.int64), [len(each) for each in rows]),
        is_write[records.kind[row]],
    )
    return Accesses(
        file.path,
        words,
        len(pattern.ranks) > 1,
        client,
        write,
        records.offset[row].astype(np.int64),
        records.size[row].astype(np.int64),
        min(each.start_ns for each in pattern.segments),
        max(each.end_ns for each in pattern.segments),
        None if write.any() else _below(file, client, row),
    )


def _below(file: FilePatterns, client: Int, row: Int) -> Below | None:
    """The reads that the MPI library made within the calls of these rows; None where the trace does not tell."""
    records, below = file.recognised.records, file.below
    if below is None or not (below.is_ranked and records.is_ranked) or below.copied is not None:
        # Of what copies served, nothing came from the file.
        return None
    is_read = np.array([kind.op == "read" for kind in below.kinds])[below.kind]
    mine = np.flatnonzero(is_read & np.isin(below.rank, client))
    if not is_read.any():
        return None
    made = mine[of_records(records, row).call_of(below.rank[mine], below.start_ns[mine]) >= 0]
    made = made[np.argsort(below.rank[made], kind="stable")]
    offset, size = (each[made].astype(np.int64) for each in (below.offset, below.size))
    call, _ = codes_of([records.stream[row], records.start_ns[row]])
    return Below(below.rank[made], offset, size, call.astype(np.int64))


_BY_HAND = re.compile(
    r"(?P<op>read|write):(?P<base>[^:]+):(?P<block>[^:]+)(?P<dims>(?::[^:@]+x[0-9]{1,18})*)(?:@(?P<processes>[0-9]{1,18}))?"
)


def by_hand(text: str) -> Accesses:
    """A pattern that a user gives, for runs to come (PDLA, section 3.3.2).

    `FILE,read:BASE:BLOCK[:STRIDExCOUNT...][@PROCESSES]`, the outermost loop first; its rounds are dealt out to the
    processes in turn. Raises UsageError.
    """
    file, _, form = text.rpartition(",")
    match = _BY_HAND.fullmatch(form)
    if match is None or not file:
        raise UsageError(
            f"--pattern: '{text}' is none; write FILE,read:BASE:BLOCK:STRIDExCOUNT@PROCESSES, e.g. "
            "/scratch/a,read:0:64KiB:1MiBx16@4"
        )
    base, block = parse_size(match["base"], "--pattern: BASE"), parse_size(match["block"], "--pattern: BLOCK")
    dims = [each.rpartition("x") for each in match["dims"].split(":")[1:]]
    loops = [(parse_size(stride, "--pattern: STRIDE"), int(count)) for stride, _, count in dims]
    processes = int(match["processes"] or 1)
    total = block
    end = base + block
    for stride, count in loops:
        total *= count
        end += stride * max(0, count - 1)
    outer = loops[0][1] if loops else 1
    if not total or total // block > BY_HAND_MAX or end > OFFSET_BYTES_MAX or not 1 <= processes <= outer:
        raise UsageError(
            f"--pattern: '{text}' has no block, more than {BY_HAND_MAX:,}, bytes beyond 2^62, or no round of its outer "
            "loop for a process; change the numbers"
        )
    offset = np.array([base], dtype=np.int64)
    turn = np.zeros(1, dtype=np.int64)
    for number, (stride, count) in enumerate(loops):
        steps = np.arange(count, dtype=np.int64)
        offset = (offset[:, None] + steps * stride).reshape(-1)
        turn = (steps % processes) if not number else np.repeat(turn, count)
    order = np.argsort(turn, kind="stable")
    said = ", then ".join(f"{count:,} every {size_text(stride)}" for stride, count in loops) or "once"
    who = f"{processes:,} processes" if processes > 1 else "One process"
    verb = match["op"] + ("" if processes > 1 else "s")
    return Accesses(
        file,
        f"By hand: {who} {verb} {size_text(block)}, {said}, from {size_text(base)} on.",
        processes > 1,
        turn[order],
        np.full(len(offset), match["op"] == "write"),
        offset[order],
        np.full(len(offset), block, dtype=np.int64),
    )


def merged(patterns: Sequence[Accesses], keys: Sequence[Any]) -> list[Accesses]:
    """Patterns of equal keys as one each, where the first of them stood."""
    found: dict[Any, Accesses] = {}
    for pattern, key in zip(patterns, keys, strict=True):
        found[key] = found[key].joined(pattern) if key in found else pattern
    return list(found.values())
