"""Room on a store's targets, and the layout that files get by it: the library's own rule (crates/layout, spread.rs)."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import native
from ..cluster import Cluster, Target
from ..files.parts import is_read_only
from ..layout import OWN, Layout, Region, Stripes, from_indexes, is_rotation, to_indexes
from ..units import format_size, quoted
from .store import Store

#: Endings of the objects that a target may have of a file: its two planes, and its replicas (docs/formats.md, "Names").
PLANE_ENDINGS = (".data", ".data1")
REPLICA_ENDING = ".repl"
#: In which the kernel counts what a file takes of its disk.
BLOCK_BYTES = 512
#: A file that fills such a part of all room, on the targets that new files use, need not be laid out anew.
FILLS = 0.9
#: Room is looked at anew once so great a part of the least room of a target may be gone.
ROOM_CHANGES = 64
#: A target with a smaller part of the room of the largest is told of.
SMALL = 0.25
SMALL_MEANS = (
    "new files put little or nothing there, and plans ('stripewise plan', 'tune') use what is left for the parts of "
    "files that are used most"
)
#: Said of a target's directory that nobody can write, and what helps.
READ_ONLY, READ_ONLY_CURE = "is mounted read-only", "mount it for writing"
#: So many targets on one file system are named.
NAMES_SHOWN = 8
#: The same of one that this user cannot write.
UNWRITABLE, UNWRITABLE_CURE = "may not be written by this user", "give permission, or programs cannot create files"
#: A store is full with no more than so many bytes free, and no more than such a part of all.
FULL_BYTES, FULL = 64 << 20, 0.02


def room_bytes(store: Store, idle: Collection[str] = ()) -> dict[str, int]:
    """Bytes that each target can take when all active ones do; those on one file system share what is free there.

    Targets that are drained take nothing, nor do those in `idle`: their share is that of the others.
    """
    return {name: free or 0 for name, free in known_room_bytes(store, store.devices(), idle).items()}


def known_room_bytes(
    store: Store, devices: Iterable[Mapping[str, Any]], idle: Collection[str] = ()
) -> dict[str, int | None]:
    """The same by what `store.devices()` has told; None for targets that are away."""
    room = {str(row["name"]): row["free_bytes"] for row in devices}
    given: dict[int, int] = {}
    takers: dict[int, list[Target]] = {}
    for target in store.config.cluster.targets:
        free = room.get(target.name)
        if not free:
            continue
        # The library counts every target that is there as one of those that share.
        try:
            device = target.path.stat().st_dev
        except OSError:
            continue
        if target.is_active and target.name not in idle:
            takers.setdefault(device, []).append(target)
        else:
            given[device] = given.get(device, 0) + free
            room[target.name] = 0
    for device, free in given.items():
        _share(free, takers.get(device, []), room)
    return room


def parted_text(targets: Iterable[Target], room: Mapping[str, int | None]) -> list[str]:
    """Which active targets are on one file system, so that the room of each is a part of its; a line of each file
    system. Not those that have less, by their capacity.
    """
    on: dict[int, list[str]] = {}
    for target in targets:
        with contextlib.suppress(OSError):
            free = room.get(target.name) or 0
            if target.is_active and free and _left(target, free) > target.capacity_bytes / 1000:
                on.setdefault(target.path.stat().st_dev, []).append(target.name)
    return [
        f"{', '.join(names[:NAMES_SHOWN])}{', ..' if len(names) > NAMES_SHOWN else ''} are on one file system: free is "
        f"the part that each has of what is free there"
        for names in on.values()
        if len(names) > 1
    ]


def _share(free: int, takers: Sequence[Target], room: dict[str, int | None]) -> None:
    """Adds so many bytes to the room of targets in equal parts, to none more than its capacity leaves."""
    left = {each.name: _left(each, room[each.name] or 0) for each in takers}
    for number, name in enumerate(sorted(left, key=left.__getitem__)):
        part = int(min(left[name], free // (len(left) - number)))
        room[name] = (room[name] or 0) + part
        free -= part


def _left(target: Target, room: int) -> float:
    """What the capacity of a target leaves beyond a room that it has."""
    if not target.capacity_bytes:
        return math.inf
    return max(0, target.capacity_bytes - held_bytes(target.path) - room)


def held_bytes(directory: Path) -> int:
    """What the objects in a target's directory take of its disk."""
    endings = (*PLANE_ENDINGS, REPLICA_ENDING)
    blocks = 0
    with os.scandir(directory) as entries:
        for each in entries:
            if each.name.endswith(endings):
                # A program may remove it meanwhile.
                with contextlib.suppress(FileNotFoundError):
                    blocks += each.stat(follow_symlinks=False).st_blocks
    return blocks * BLOCK_BYTES


def used_bytes(store: Store) -> dict[str, int]:
    """What each target holds, holes left out, as capacities are held against; of one that cannot be looked at, what
    the layouts of all files put there, holes counted as full.
    """
    used, unseen = {}, []
    away = {str(row["name"]) for row in store.devices() if row.get("away")}
    for target in store.config.cluster.targets:
        if target.state == "removed":
            continue
        try:
            if target.name not in away:
                used[target.name] = held_bytes(target.path)
                continue
        except OSError:
            pass
        unseen.append(target.name)
    laid_out = store.used_by_others(()) if unseen else {}
    return used | {name: laid_out.get(name, 0) for name in unseen}


def read_only_targets(store: Store) -> dict[str, str]:
    """Targets of which nothing can be written, and the sentence that says so with its cure."""
    return {
        target.name: f"target {target.name}: {target.path} {READ_ONLY}; {READ_ONLY_CURE}"
        for target in store.config.cluster.targets
        if target.state != "removed" and is_read_only(target.path)
    }


def unwritable_targets(store: Store) -> dict[str, str]:
    """Active targets in which this user cannot make files, but for those mounted read-only, and what helps."""
    read_only = read_only_targets(store)
    return {
        each.name: f"target {each.name}: {each.path} {UNWRITABLE}; {UNWRITABLE_CURE}"
        for each in store.config.cluster.active
        if each.name not in read_only and each.path.is_dir() and not os.access(each.path, os.W_OK | os.X_OK)
    }


def spread(template: Layout, cluster: Cluster, room: Mapping[str, int], identity: str | None) -> Layout:
    """What the file `identity` gets in place of the store's default layout on targets with so much room; None: what any
    file gets in place of a rule's.
    """
    rooms = [room.get(target.name, 0) for target in cluster.targets]
    text = json.dumps(to_indexes(template.regions, cluster))
    return from_indexes(
        native.call("store_spread", text, rooms, None if identity is None else int(identity, 16)), cluster
    )


def own_layout(store: Store, room: Mapping[str, int], identity: str, now: Layout | None = None) -> Layout:
    """How the file `identity` would lie if it were made now, on targets with so much room: the store's own layout, or
    of each target what its room allows. One that lies so already, but for which target comes first, stays as it is
    `now`.
    """
    template = store.config.layout(store.config.default_layout)
    cluster = store.config.cluster
    # Where targets are alike, nothing is won by who comes first.
    if spread(template, cluster, room, None).regions == template.regions:
        return Layout(template.regions, OWN)
    made = Layout(spread(template, cluster, room, identity).regions, OWN)
    if now is None or now.origin != OWN or len(made.regions) > 1:
        return made
    alike = all(is_rotation(made.regions[0].stripes, region.stripes) for region in now.regions)
    return now if alike else made


class Room:
    """Room on the targets for files that come in one after another, looked at anew before it may have changed much."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._room: dict[str, int] = {}
        self._left_bytes = 0

    def before(self, coming_bytes: int) -> Mapping[str, int]:
        """Bytes that each target can take, before so many more come to all."""
        self._left_bytes -= coming_bytes
        if self._left_bytes <= 0:
            self._room = room_bytes(self._store)
            self._left_bytes = min((free for free in self._room.values() if free), default=0) // ROOM_CHANGES
        return self._room


def is_default(regions: tuple[Region, ...], template: Layout) -> bool:
    """Whether regions look as if nobody had given a file its layout: they have one cycle throughout, of the template's
    widths or unequal ones, or a head of the template's stripes before an unequal tail.
    """
    if len({region.stripes for region in regions}) == 1:
        widths = {width for _, width in regions[0].stripes}
        return len(widths) > 1 or widths <= {width for region in template.regions for _, width in region.stripes}
    return (
        len(regions) == 2
        and len(template.regions) == 1
        and set(regions[0].stripes) <= set(template.regions[0].stripes)
        and {name for name, _ in regions[1].stripes} <= {name for name, _ in template.regions[0].stripes}
    )


def is_given(layout: Layout, template: Layout) -> bool:
    """Whether somebody gave a file its layout: its origin says so, and where that is unknown, its regions."""
    return not is_default(layout.regions, template) if layout.origin is None else layout.origin != OWN


def fills(stripes: Stripes, room: Mapping[str, int]) -> float:
    """The part of all room that a file of this cycle fills until its first target is full; 1 where there is none."""
    whole = sum(room.values())
    cycle = sum(width for _, width in stripes)
    return min(room.get(name, 0) * cycle / width for name, width in stripes) / whole if whole else 1.0


def full_text(store: Store) -> str:
    """That the active targets that are there have next to no room, and what helps; empty where they have some."""
    room = known_room_bytes(store, store.devices())
    read_only = read_only_targets(store)
    active = [target for target in store.config.cluster.active if target.name not in read_only]
    free = sum(room.get(target.name) or 0 for target in active)
    used = sum(used_bytes(store).values())
    if free > min(FULL_BYTES, FULL * (used + free)) or all(room.get(each.name) is None for each in active):
        return ""
    root = quoted(store.root)
    return (
        f"the store is full: all targets together have {format_size(free)} free, so writes end with ENOSPC: remove "
        f"files ('stripewise run --store {root} -- rm FILE'), export some ('stripewise store export'), or add a target "
        f"('stripewise store add {root} NAME --path DIR')"
    )


def small_targets(store: Store) -> dict[str, int]:
    """Active targets with much less room than the largest has, and their room; not those that are away or read-only."""
    active = {target.name for target in store.config.cluster.active} - read_only_targets(store).keys()
    room = known_room_bytes(store, store.devices())
    known = {name: free for name, free in room.items() if name in active and free is not None}
    return {name: free for name, free in known.items() if free < SMALL * max(known.values())}
