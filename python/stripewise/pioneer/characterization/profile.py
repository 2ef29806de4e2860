"""The profile of a workload: its characteristics (thesis, table 2.4) by file class and kind of session, as one JSON.

People read and edit it, or write one by hand; docs/formats.md (Profile of a workload) has every key. What is left out
gets the default named there, so a profile that was read (profile_reader.py) is complete, and its JSON has all keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...files.parts import write_durably
from .distribution import ONE, TWO, ZERO, Distribution, Slack

VERSION = 1
#: Classes of files (OS), in the order of a path's numbers.
CLASSES = ("root", "shared", "private")
#: Kinds of sessions: interface and access mode.
KINDS = (
    "posix-read", "posix-write", "posix-readwrite", "posix-directory", "mpi-read", "mpi-write", "mpi-readwrite",
)  # fmt: skip
#: Names of files in a class that a profile lists, at most; of more it keeps the first.
NAMES_MAX = 4096

#: How often one thing follows another, or itself appears.
Counts = Mapping[str, float]


@dataclass(frozen=True)
class View:
    """A view that mpi_view sets: `pieces` pieces of `piece` bytes, `distance` from one's begin to the next one's, and
    all that again every `tile` bytes; a piece of 0 bytes: bytes as they lie. `weight`: how often."""

    piece: int
    distance: int
    pieces: int
    tile: int
    weight: float = 1

    def as_json(self) -> dict[str, Any]:
        """As in a profile."""
        return asdict(self)


@dataclass(frozen=True)
class SessionKind:
    """Sessions of one kind on the files of a class. Gaps are in sequence ids, sizes and offsets in bytes, slack in
    seconds."""

    #: D: requests after the open, the close included.
    duration: Distribution = TWO
    #: IRG: from a request to the next one of the session (the first: from the open), in ids.
    request_gap: Distribution = ONE
    #: SEQ: share of data operations that begin where the one before ended (the first one: at 0).
    sequential: Distribution = ONE
    #: RT1: by operation, which one follows how often; "" stands for the open. The close is not in it: D tells.
    following: Mapping[str, Counts] = field(default_factory=dict)
    #: OFF: where data operations begin that are not sequential; None: anywhere in the file.
    offset: Distribution | None = None
    #: SIZE by operation.
    size: Mapping[str, Distribution] = field(default_factory=dict)
    #: Views that are set, most frequent first; MPI alone.
    views: tuple[View, ...] = ()
    #: Bytes that the offset grows by with each rank.
    shift: Distribution = ZERO
    #: ST by operation, `open` and `close` among them: from the end of the root's previous request, of any file.
    slack: Mapping[str, Slack] = field(default_factory=dict)
    #: Sessions by communicator of the open: world, self, blocks-N (N consecutive ranks), congruent-N (ranks that leave
    #: the same rest divided by N); MPI alone.
    communicators: Counts = field(default_factory=dict)
    #: SEQ, OFF and SHIFT of operations that not all make, by key with their mark (marks.py): `OFF@root`. What is not
    #: in it is as without the mark.
    own: Mapping[str, Distribution] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As in a profile."""
        found: dict[str, Any] = {
            "D": self.duration.as_json(),
            "IRG": self.request_gap.as_json(),
            "SEQ": self.sequential.as_json(),
            "RT1": {op: dict(after) for op, after in self.following.items()},
        }
        if self.offset is not None:
            found["OFF"] = self.offset.as_json()
        found["SIZE"] = {op: each.as_json() for op, each in self.size.items()}
        if self.views:
            found["VIEW"] = [each.as_json() for each in self.views]
        found["SHIFT"] = self.shift.as_json()
        found |= {key: each.as_json() for key, each in self.own.items()}
        found["ST"] = {op: each.as_json() for op, each in self.slack.items()}
        if self.communicators:
            found["comm"] = dict(self.communicators)
        return found


@dataclass(frozen=True)
class FileClass:
    """The files of a class."""

    #: OS: how many.
    files: int = 0
    #: OT: sessions of a file.
    open_times: Distribution = ONE
    #: ISG: from the close of a session to the next open of the same file, in ids; the first counts from id 0.
    session_gap: Distribution = ONE
    #: FS: bytes; None: as far as sequential requests come.
    file_size: Distribution | None = None
    #: RT2: operations outside sessions, and how often. An operation here and everywhere may have a mark (marks.py).
    outside: Counts = field(default_factory=dict)
    #: ST2: their slack by operation, in seconds.
    outside_slack: Mapping[str, Slack] = field(default_factory=dict)
    #: Names of the files, with {rank} where the rank stands; none: made ones.
    names: tuple[str, ...] = ()
    #: AM: which kind of session opens a file first, and which follows which.
    first: Counts = field(default_factory=dict)
    next: Mapping[str, Counts] = field(default_factory=dict)
    sessions: Mapping[str, SessionKind] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As in a profile."""
        found: dict[str, Any] = {
            "OS": self.files,
            "OT": self.open_times.as_json(),
            "ISG": self.session_gap.as_json(),
        }
        if self.file_size is not None:
            found["FS"] = self.file_size.as_json()
        found["RT2"] = dict(self.outside)
        found["ST2"] = {op: each.as_json() for op, each in self.outside_slack.items()}
        if self.names:
            found["names"] = list(self.names)
        found["AM"] = {"first": dict(self.first), "next": {kind: dict(each) for kind, each in self.next.items()}}
        found["sessions"] = {kind: each.as_json() for kind, each in self.sessions.items()}
        return found


@dataclass(frozen=True)
class Subgroup:
    """Children that do alike: their ranks in the run (runs as `1-3,7`), and their share of all children."""

    ranks: str
    share: float
    #: Which ranks the mark of the group means at any number of processes: `span` (two 65,536ths of all) or `congruent`
    #: (divisor and rest); None: nobody can tell, and no mark names it.
    group: Mapping[str, list[int]] | None = None

    def as_json(self) -> dict[str, Any]:
        """As in a profile."""
        found: dict[str, Any] = {"ranks": self.ranks, "share": self.share}
        return found if self.group is None else found | {"group": dict(self.group)}


@dataclass(frozen=True)
class Profile:
    """A whole profile; `requests` and `duration_s` are of the root's path."""

    processes: int = 1
    requests: int = 0
    duration_s: float = 0.0
    tool: str = ""
    application: str | None = None
    anonymous: bool = False
    subgroups: tuple[Subgroup, ...] = ()
    #: Each rank pauses on its own, not all alike.
    apart: bool = False
    #: By operation: from which slack on, in seconds, all ranks wait for each other before it.
    together: Mapping[str, float] = field(default_factory=dict)
    classes: Mapping[str, FileClass] = field(default_factory=dict)
    #: Symbolic patterns, checked by symbolic.py; None: none were made.
    programs: Any = None

    def as_json(self) -> dict[str, Any]:
        """As in profile.json."""
        found: dict[str, Any] = {
            "version": VERSION,
            "tool": self.tool,
            "application": self.application,
            "processes": self.processes,
            "requests": self.requests,
            "duration_s": self.duration_s,
            "anonymous": self.anonymous,
            "subgroups": [each.as_json() for each in self.subgroups],
            "apart": self.apart,
            "together": dict(self.together),
            "classes": {name: self.classes.get(name, FileClass()).as_json() for name in CLASSES},
        }
        if self.programs is not None:
            found["programs"] = self.programs
        return found

    def text(self) -> str:
        """The JSON as it is written: one line to an object that holds only numbers and short lists."""
        return _laid_out(self.as_json()) + "\n"


def write_profile(profile: Profile, path: Path) -> None:
    """Writes it beside its place and renames. Raises OSError."""
    write_durably(path, profile.text())


def _laid_out(value: Any, indent: str = "") -> str:
    """JSON in which what fits on a line stands on one."""
    flat = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, dict | list) or not value or len(flat) + len(indent) <= 120:
        return flat
    if isinstance(value, list) and not any(isinstance(each, dict | list) for each in value):
        return flat
    inner = indent + "  "
    if isinstance(value, list):
        rows = [inner + _laid_out(each, inner) for each in value]
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    rows = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {_laid_out(each, inner)}" for key, each in value.items()]
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
