"""The patterns of each process: the native recogniser over the streams of a file, and the times that go with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import native
from .records import FileRecords, Kind
from .tree import Skeleton, Tree, skeleton, tree_of

#: Requests above this are large, up to `units.SMALL_BYTES` they are small.
LARGE_BYTES = 1 << 20
#: Intervals are fixed where those from the first to the last decile lie within so much of the median.
FIXED_WITHIN = 0.1
#: Fewer records have no interval to speak of.
INTERVALS_MIN = 4


@dataclass(frozen=True)
class Distribution:
    """Requests without a pattern in their offsets."""

    low: int
    #: End of the highest.
    high: int
    #: Largest number that divides all offsets.
    alignment_bytes: int
    size_min: int
    size_max: int
    #: Requests of each kind.
    kinds: tuple[tuple[int, int], ...]
    bytes: int
    #: Requests behind the end of the one before; at it; before its offset.
    forward: int
    sequential: int
    backward: int

    @property
    def requests(self) -> int:
        """How many there are."""
        return sum(count for _, count in self.kinds)

    @property
    def is_forward(self) -> bool:
        """Whether none begins before the end of the one before."""
        return self.forward + self.sequential == self.requests - 1


@dataclass(frozen=True)
class Segment:
    """A part of a process's stream that one sentence describes.

    Loops alone are regular; a distribution alone is random requests; both are equal loops at random places.
    """

    #: Number of the stream, its first record there, and how many.
    stream: int
    first: int
    records: int
    loop: Tree | None
    places: Distribution | None
    #: Between the starts of two requests; None where it is not fixed.
    interval_ns: int | None
    #: From its first start to its last end.
    start_ns: int
    end_ns: int

    @property
    def is_regular(self) -> bool:
        """Whether loops say all."""
        return self.loop is not None and self.places is None

    @property
    def form(self) -> Skeleton:
        """What segments of other processes must share to be compared with it."""
        if self.places is None:
            assert self.loop is not None
            return ("regular", skeleton(self.loop))
        if self.loop is None:
            return ("random", tuple(kind for kind, _ in self.places.kinds))
        return ("scattered", skeleton(self.loop))

    @property
    def bytes(self) -> int:
        """Of all requests."""
        if self.loop is None:
            assert self.places is not None
            return self.places.bytes
        return self.loop.bytes * (self.records // max(1, self.loop.records))


@dataclass(frozen=True)
class LocalPatterns:
    """What one process did to one file, in the order of its streams."""

    rank: int
    segments: tuple[Segment, ...]


class RecognisedFile:
    """One file's records, recognised: patterns by process, and the way back to the records."""

    def __init__(self, records: FileRecords) -> None:
        self.records = records
        columns = (records.stream, records.kind, records.offset, records.size)
        self._native = native.make("RecognisedTrace", *(np.ascontiguousarray(column) for column in columns))
        found: dict[int, list[Segment]] = {}
        for number, stream in enumerate(native.parsed(self._native.json)):
            rows = self.rows(number)
            starts, ends = records.start_ns[rows], records.end_ns[rows]
            mine = found.setdefault(int(records.rank[rows[0]]), [])
            mine += [_segment(number, value, starts, ends) for value in stream["segments"]]
        self.local = tuple(LocalPatterns(rank, tuple(found[rank])) for rank in sorted(found))
        self.streams = number + 1

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What the kinds of records stand for."""
        return self.records.kinds

    def rows(self, stream: int) -> Any:
        """The rows of a stream in the file's records."""
        return np.frombuffer(self._native.rows(stream), dtype=np.uint32)

    def expand(self, stream: int) -> tuple[Any, Any, Any]:
        """Kind, offset and size of a stream's records, from its patterns alone."""
        return columns_of(self._native.expand(stream))


def columns_of(columns: tuple[bytes, bytes, bytes]) -> tuple[Any, Any, Any]:
    """Kind, offset and size as arrays, from the bytes of the native module."""
    kind, offset, size = columns
    return np.frombuffer(kind, np.uint32), np.frombuffer(offset, np.int64), np.frombuffer(size, np.int64)


def expanded(tree: Tree) -> tuple[Any, Any, Any]:
    """Kind, offset and size of a tree's records; InvalidError for more than 2^32."""
    return columns_of(native.call("pattern_expand", json.dumps(tree.as_json())))


def _segment(stream: int, value: Mapping[str, Any], starts: Any, ends: Any) -> Segment:
    first, records = value["first"], value["records"]
    spread = value.get("irregular", value.get("scattered"))
    return Segment(
        stream,
        first,
        records,
        tree_of(value["loop"]) if "loop" in value else None,
        _distribution(spread) if spread is not None else None,
        _interval(starts[first : first + records]),
        int(starts[first]),
        int(ends[first : first + records].max()),
    )


def _distribution(value: Mapping[str, Any]) -> Distribution:
    fields = {**value, "kinds": tuple((kind, count) for kind, count in value["kinds"])}
    del fields["size_classes"]
    return Distribution(**fields)


def _interval(starts: Any) -> int | None:
    if len(starts) < INTERVALS_MIN:
        return None
    low, middle, high = np.quantile(np.diff(starts), [0.1, 0.5, 0.9])
    return int(middle) if middle > 0 and high - low <= FIXED_WITHIN * middle else None
