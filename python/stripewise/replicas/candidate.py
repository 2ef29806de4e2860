"""Replicas that a manager thinks of, the room for them, and what it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..layout import Layout, layout_json
from ..units import format_size
from .blocks import StridedBlocks
from .prices import space_bytes

#: Of the JSON form (docs/replicas/reference.md).
VERSION = 1
#: Why a replica of another run is there.
STANDS = ("stands",)
#: The last reason of a replica of the run at hand that need not be made.
STANDS_ALREADY = "stands already"
#: The same where it is to be made anew.
STANDS_STALE = "stands, but writes have left it stale in part: it is made anew"


@dataclass(frozen=True)
class Candidate:
    """A replica: what it holds, where, and what it is good for."""

    file: str
    #: The pattern in a sentence, and others that it serves too.
    words: str
    also: tuple[str, ...]
    #: Strided blocks in the order in which they stand; of a pattern of several processes the outermost loop is theirs.
    blocks: tuple[StridedBlocks, ...]
    #: read, write or both; of what is written it is the home, of what is read a copy.
    operation: str
    processes: int
    requests: int
    #: Bytes of all requests, and of their mean.
    bytes: int
    request_bytes: int
    #: HServers, SServers, HServers+SServers or all.
    space: str
    #: 1-DH, 1-DV, 2-D, or n_p of RADAR, in words.
    scheme: str
    #: Of its bytes in their order.
    layout: Layout
    #: By what the manager ranks it, in seconds of the manager's own model.
    benefit_s: float
    #: The requests on the file as it lies, and on the replica, by the fine model.
    original_s: float
    replica_s: float
    #: By target.
    space_bytes: Mapping[str, int]
    build_s: float
    reasons: tuple[str, ...] = ()
    #: What writes of the file do to a copy, of ON_WRITE.
    on_write: str = "update"

    @property
    def is_home(self) -> bool:
        """Whether it is the home of its bytes, not a copy."""
        return self.operation != "read"

    @property
    def gain_s(self) -> float:
        """Seconds less; below 0 where the replica is slower."""
        return self.original_s - self.replica_s

    @property
    def times_as_fast(self) -> float | None:
        """The original's time over the replica's; None where the replica takes none."""
        return self.original_s / self.replica_s if self.replica_s else None

    @property
    def total_bytes(self) -> int:
        """Its space on all targets."""
        return sum(self.space_bytes.values())

    def as_json(self) -> dict[str, Any]:
        """The fields of docs/replicas/reference.md."""
        return {
            "file": self.file,
            "pattern": self.words,
            "also": list(self.also),
            "blocks": [each.as_json() for each in self.blocks],
            "operation": self.operation,
            "home": self.is_home,
            "on_write": self.on_write,
            "processes": self.processes,
            "requests": self.requests,
            "bytes": self.bytes,
            "request_bytes": self.request_bytes,
            "space": self.space,
            "scheme": self.scheme,
            "layout": layout_json(self.layout),
            "benefit_s": self.benefit_s,
            "original_s": self.original_s,
            "replica_s": self.replica_s,
            "gain_s": self.gain_s,
            "times_as_fast": self.times_as_fast,
            "space_bytes": dict(self.space_bytes),
            "build_s": self.build_s,
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True)
class Refused:
    """A pattern without a replica, and why; the candidate where there was one."""

    file: str
    words: str
    reason: str
    #: Of all its requests.
    bytes: int
    candidate: Candidate | None = None

    def as_json(self) -> dict[str, Any]:
        """The fields of docs/replicas/reference.md."""
        return {
            "file": self.file,
            "pattern": self.words,
            "reason": self.reason,
            "benefit_s": None if self.candidate is None else self.candidate.benefit_s,
        }


@dataclass(frozen=True)
class ReplicaSet:
    """RADAR's unit of choice: the replicas of one bucket and file, made and evicted together."""

    file: str
    candidates: tuple[Candidate, ...]
    #: When its bucket began, on the trace's clock.
    start_ns: int
    #: By the fine model, when it was new.
    benefit_s: float
    #: Bytes read of the file since, over the file's size.
    age: float = 0.0
    is_stored: bool = False
    #: Whether writes have left its file's copies stale in part: they are made anew.
    is_outdated: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes it the same set in another run."""
        return (self.file, tuple(each.blocks for each in self.candidates))

    @property
    def space_bytes(self) -> dict[str, int]:
        """By target, of all that is chosen: what the bound is for."""
        return space_bytes(each.space_bytes for each in self.candidates)

    def as_json(self) -> dict[str, Any]:
        """The fields of docs/replicas/reference.md."""
        return {
            "file": self.file,
            "start_ns": self.start_ns,
            "benefit_s": self.benefit_s,
            "age": self.age,
            "replicas": [each.as_json() for each in self.candidates],
        }


class Room:
    """The space that replicas may still take: in all, and on single targets; None is without a bound."""

    def __init__(self, total_bytes: int | None = None, by_target: Mapping[str, int] | None = None) -> None:
        self.total_bytes = total_bytes
        self.by_target = dict(by_target or {})

    def lack(self, wanted: Mapping[str, int]) -> str | None:
        """Why there is no room for so many bytes by target; None where there is."""
        needed = sum(wanted.values())
        if self.total_bytes is not None and needed > self.total_bytes:
            return f"takes {format_size(needed)}, of which {format_size(self.total_bytes)} are left"
        for name, count in wanted.items():
            left = self.by_target.get(name)
            if left is not None and count > left:
                return f"takes {format_size(count)} on {name}, of which {format_size(left)} are left"
        return None

    def take(self, wanted: Mapping[str, int]) -> None:
        """Takes what `lack` has found there."""
        if self.total_bytes is not None:
            self.total_bytes -= sum(wanted.values())
        for name in self.by_target.keys() & wanted.keys():
            self.by_target[name] -= wanted[name]


@dataclass(frozen=True)
class Decision:
    """What a manager would make, in its order, and what not."""

    manager: str
    chosen: tuple[Candidate, ...]
    refused: tuple[Refused, ...]
    #: RADAR's: the chosen ones by bucket.
    sets: tuple[ReplicaSet, ...] = field(default=())

    @property
    def of_run(self) -> tuple[Candidate, ...]:
        """Those that this run reads, made for it or there already."""
        return tuple(each for each in self.chosen if each.reasons != STANDS)

    @property
    def of_others(self) -> tuple[Candidate, ...]:
        """Those of other runs that stay beside them."""
        return tuple(each for each in self.chosen if each.reasons == STANDS)

    @property
    def original_s(self) -> float:
        """Of the patterns of this run that have a replica, as they lie."""
        return sum(each.original_s for each in self.of_run)

    @property
    def replica_s(self) -> float:
        """Of the same on their replicas."""
        return sum(each.replica_s for each in self.of_run)

    @property
    def build_s(self) -> float:
        """To make all, one after another."""
        return sum(each.build_s for each in self.chosen)

    @property
    def space_bytes(self) -> dict[str, int]:
        """By target."""
        return space_bytes(each.space_bytes for each in self.chosen)

    def as_json(self) -> dict[str, Any]:
        """The fields of docs/replicas/reference.md."""
        space = self.space_bytes
        return {
            "version": VERSION,
            "manager": self.manager,
            "original_s": self.original_s,
            "replica_s": self.replica_s,
            "gain_s": self.original_s - self.replica_s,
            "build_s": self.build_s,
            "bytes": sum(space.values()),
            "space_bytes": space,
            "replicas": [each.as_json() for each in self.chosen],
            "sets": [each.as_json() for each in self.sets],
            "refused": [each.as_json() for each in self.refused],
        }
