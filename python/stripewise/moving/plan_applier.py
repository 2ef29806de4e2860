"""A whole plan at once, file by file: what `apply` and `tune` do, with the mover that `migrate` has.

So whatever moves bytes has the store's mover lock, keeps to limits, tells its status, and obeys `mover stop`.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .. import native
from ..errors import NoSpaceError, StoreError
from ..layout import GIVEN, Layout, Region, Stripes, repetitions, to_indexes
from ..limits import Limits
from ..plan import Plan
from ..store import Store
from ..store.room import room_bytes
from ..units import format_size, quoted
from .mover_session import MoverSession
from .trial import settle

#: What the native module says of a file that moves in pieces too large for any target beside what lies there.
IN_THE_WAY = "no target has room to keep it while it moves"
#: What it advises, without the reason.
FREE_SOME = "; free some space on any target"
_CROWDED = re.compile(rf"the region at byte (\d+) .*{IN_THE_WAY}")


@dataclass(frozen=True)
class Applied:
    """What was done: files laid out anew, bytes that moved, seconds, and the signal that ended it, if one did.

    `regions` is of the file that was under way then: those that had moved, and all that had to.
    """

    files: int
    moved_bytes: int
    seconds: float
    signal: int | None = None
    regions: tuple[int, int] = (0, 0)

    def as_json(self) -> dict[str, Any]:
        """The result as `apply --json` prints it."""
        said = asdict(self)
        del said["signal"], said["regions"]
        return said


def apply_plan(
    store: Store,
    plan: Plan,
    ids: Mapping[str, str],
    limits: Limits | None = None,
    progress: native.Progress | None = None,
    verb: str = "apply",
) -> Applied:
    """Gives every planned file its layout; those that free targets of limited capacity go first.

    Raises the StoreError of the first file that cannot be moved; those before it are where the plan puts them.
    """
    return lay_out(store, _in_order(store, plan, ids), limits, progress, verb)


def lacking_room(store: Store, plan: Plan, ids: Mapping[str, str]) -> str:
    """Why `apply_plan` would end now for want of room, of the first file that would have none while it moves, with the
    cure; empty where all have it. Files without an id are left out. Raises StoreError.
    """
    files = _in_order(store, plan, ids)
    layouts = [json.dumps(to_indexes(file.layout, store.config.cluster)) for file in files]
    moves = [(file.id, layout) for file, layout in zip(files, layouts, strict=True)]
    found = native.call("store_without_room", str(store.root), moves)
    return _crowded(store, files[found["file"]], found["why"]) if found else ""


@dataclass(frozen=True)
class Wanted:
    """A file of `size` bytes and the layout that it is to have."""

    path: str
    id: str
    layout: tuple[Region, ...]
    size: int
    origin: str = GIVEN


def _in_order(store: Store, plan: Plan, ids: Mapping[str, str]) -> list[Wanted]:
    """The planned files that have an id, those that free targets of limited capacity first."""
    order = sorted(
        (file for file in plan.files if file.path in ids), key=lambda file: store.limited_growth(ids[file.path], file)
    )
    return [Wanted(file.path, ids[file.path], file.layout, file.size) for file in order]


def lay_out(
    store: Store,
    files: Sequence[Wanted],
    limits: Limits | None = None,
    progress: native.Progress | None = None,
    verb: str = "apply",
) -> Applied:
    """Gives every file its layout, one after the other; the mover's status calls it `verb`. Raises as `apply_plan`
    does.
    """
    begun, moved_bytes = time.monotonic(), 0
    with MoverSession(store, {"verb": verb}, limits or Limits(), progress) as session:
        session.expect(sum(file.size for file in files))
        for number, file in enumerate(files):
            before = _regions_of(store, file)
            moved = session.move(file.path, file.id, Layout(file.layout, file.origin), 0, file.size)
            moved_bytes += moved.moved_bytes
            if session.signal is not None:
                # The file under way may have been moved by then.
                done = number + (not moved.error)
                regions = _regions_moved(store, file, before) if moved.error else (0, 0)
                return Applied(done, moved_bytes, time.monotonic() - begun, session.signal, regions)
            stands = f" ({number} of {len(files)} file(s) have the new layout by now, and keep it)" if number else ""
            if IN_THE_WAY in moved.message:
                raise NoSpaceError(f"{_crowded(store, file, moved.message)}{stands}")
            moved.check(stands)
    if verb != "tune":
        settle(store.root, {file.path for file in files})
    return Applied(len(files), moved_bytes, time.monotonic() - begun)


def _crowded(store: Store, file: Wanted, message: str) -> str:
    """Of which file the native module's `message` on want of room is; where it is in its own way with what it needs,
    what there is, and the ways round.
    """
    where = "" if file.path in message else f"{file.path}: "
    if IN_THE_WAY not in message:
        return f"{where}{message}"
    why = message.removesuffix(FREE_SOME)
    short = missing_room(store, message, file.layout, file.size)
    return f"{where}{why}. {f'{short}. ' if short else ''}{_lies_turned(store, file)}{_ways_round(store)}"


def _regions_moved(store: Store, file: Wanted, before: set[Region]) -> tuple[int, int]:
    """Of the regions that a file was to get in place of those `before`, how many it has now, and all: a move that was
    stopped leaves each as it was or as it was to be.
    """
    now = _regions_of(store, file)
    wanted = [region for region in repetitions(file.layout, file.size) if region not in before]
    return sum(region in now for region in wanted), len(wanted)


def _regions_of(store: Store, file: Wanted) -> set[Region]:
    """The regions that a file has; none where it has gone meanwhile, which its move then tells."""
    try:
        return set(repetitions(store.layout(file.id).regions, file.size))
    except StoreError:
        return set()


def missing_room(store: Store, message: str, layout: Sequence[Region], size: int) -> str:
    """What a region that is in its own way needs on one target while it moves, and the most that one has; empty where
    `message` says something else.
    """
    found = _CROWDED.search(message)
    region = next((each for each in layout if found and each.start <= int(found[1]) < each.start + each.len), None)
    if region is None:
        return ""
    needed = min(size, region.start + region.len) - region.start
    room = room_bytes(store)
    best = max(room, key=lambda name: room[name])
    most = f"{best} has most, {format_size(room[best])}"
    if needed <= room[best]:
        return (
            f"It needs {format_size(needed)} on one target beside what moves there; {most}, of which that leaves less"
        )
    return f"It needs {format_size(needed)} on one target; {most}: {format_size(needed - room[best])} are missing"


def _lies_turned(store: Store, file: Wanted) -> str:
    """That a file lies in the wanted stripes already but for the target that they begin with, where it does."""
    now, wanted = (
        {_from_first(region.stripes) for region in of} for of in (store.layout(file.id).regions, file.layout)
    )
    same = "It lies in these stripes already, begun at another target, so little is gained by that. "
    return same if now == wanted else ""


def _from_first(stripes: Stripes) -> Stripes:
    at = min(range(len(stripes)), key=stripes.__getitem__)
    return stripes[at:] + stripes[:at]


def _ways_round(store: Store) -> str:
    """What can be done where other files leave no room, and what where it is this one that takes it."""
    root = quoted(store.root)
    return (
        "Remove other files. Where this one takes the room, take it out with 'stripewise store export' and back with "
        "'stripewise store adopt --layout FILE', a JSON file as docs/formats.md has it, or add a "
        f"target: 'stripewise store add {root} NAME --path DIR'"
    )
