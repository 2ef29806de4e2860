"""Where the bytes of managed files lie: each by its path, whatever store it is in."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .. import native
from ..cluster import Cluster, data_bytes
from ..errors import NoSpaceError, StoreError
from ..layout import Layout, from_indexes, layout_json, target_bytes
from ..units import command_line, format_size, round_up
from .room import BLOCK_BYTES, PLANE_ENDINGS, REPLICA_ENDING, held_bytes, known_room_bytes, read_only_targets
from .store import Store

#: Where files have no bytes of their own.
_OF_THE_KERNEL = ("/proc/", "/sys/")


@dataclass(frozen=True)
class PlacedFile:
    """A file of `size` bytes, its store and id, its layout, and the bytes that each target holds of it."""

    path: str
    store: str
    id: str
    size: int
    layout: Layout
    #: Bytes that replicas take, by target.
    replica_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def target_bytes(self) -> Mapping[str, int]:
        """By target, every slice rounded up to 4 KiB."""
        return target_bytes(self.layout.regions, self.size)

    @property
    def widest(self) -> int:
        """The most targets that a region with bytes of the file is striped over; of an empty file its first region."""
        return max(len(region.stripes) for region in self.layout.regions if region.start < max(self.size, 1))

    def as_json(self) -> dict[str, Any]:
        """The file as `store layout --json` prints it, and as a plan of one file has it."""
        return {
            "path": self.path,
            "id": self.id,
            "store": self.store,
            "size": self.size,
            "origin": self.layout.origin,
            "stripe_count": self.widest,
            "target_bytes": dict(self.target_bytes),
            "replica_bytes": dict(self.replica_bytes),
            **layout_json(self.layout),
        }


def placed_in(store: Store, identity: str, path: str) -> PlacedFile:
    """The file `identity` of a store, which is at `path`. Raises StoreError."""
    told = native.call("store_layout", str(store.root), identity)
    if told.get("size_error"):
        raise StoreError(str(told["size_error"]))
    layout = from_indexes(told, store.config.cluster)
    replicas = allocated_bytes(store, identity, [REPLICA_ENDING])
    return PlacedFile(path, str(store.root), identity, int(told["size"]), layout, replicas)


def placed_at(path: Path, stores: dict[str, Store] | None = None) -> tuple[Store, PlacedFile]:
    """The file at `path` and its store, which is looked for in `stores` first. StoreError for one that is in none."""
    full = os.path.abspath(path)
    known = native.call("store_resolve", full)
    if not known:
        raise StoreError(f"{full}: {why_unplaced(full)}")
    root = str(known["store"])
    opened = {} if stores is None else stores
    if root not in opened:
        opened[root] = Store(Path(root))
    return opened[root], placed_in(opened[root], str(known["id"]), full)


def of_a_store(full: str) -> str:
    """That a path is a part of a store or of a target, and the cure; empty where it is none."""
    for place in (full, *map(str, Path(full).parents)):
        if os.path.lexists(os.path.join(place, "store.toml")):
            listing = command_line(["stripewise", "store", "ls", place])
            return f"belongs to the store {place} itself and is none of its files; '{listing}' lists those"
        if os.path.lexists(os.path.join(place, "stripewise-target")):
            return (
                f"lies in {place}, a target of a store, and is no managed file; 'stripewise store ls STORE' lists those"
            )
    return ""


def why_unplaced(full: str) -> str:
    """Why there is no managed file at a path, and the cure."""
    if why := of_a_store(full):
        return why
    if os.path.islink(full) and not os.path.exists(full) and not os.readlink(full).startswith("/stripewise:"):
        return "is a link that leads nowhere; name a managed file"
    if os.path.isdir(full):
        root = next(_stores_in(full), None)
        listing = command_line(["stripewise", "store", "find", root or "STORE", f"{full.rstrip('/')}/**"])
        return f"is a directory; name files in it: {listing}"
    if os.path.lexists(full):
        return "is in no store; 'stripewise store ls STORE' lists what is"
    return "does not exist; check the path"


def _stores_in(directory: str) -> Iterator[str]:
    """The stores of the managed files that lie in a directory itself, one for each file."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_symlink() and (known := native.call("store_resolve", entry.path)):
                yield str(known["store"])


def placed(paths: Iterable[Path]) -> list[PlacedFile]:
    """The files at `paths`; StoreError for one that is in no store."""
    stores: dict[str, Store] = {}
    return [placed_at(path, stores)[1] for path in paths]


def is_plain(path: str) -> bool:
    """Whether a regular file is there, which no store holds."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_of_the_kernel(path: str | Path) -> bool:
    """Whether a file has no bytes of its own: it is made up as it is read."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)).startswith(_OF_THE_KERNEL)


def is_adoptable(full: str) -> bool:
    """Whether a plain file is there that lies on a disk and is no part of a store."""
    return is_plain(full) and not is_of_the_kernel(full) and not of_a_store(full)


def is_managed(full: str) -> bool:
    """Whether a path leads to a file of a store."""
    return native.call("store_resolve", full) is not None


def allocated_bytes(store: Store, identity: str, endings: Iterable[str] = PLANE_ENDINGS) -> dict[str, int]:
    """Bytes of disk that a file's objects take, by target: what is a hole takes none."""
    held: dict[str, int] = {}
    for target in store.config.cluster.targets:
        for ending in endings:
            with contextlib.suppress(OSError):
                found = os.lstat(target.path / f"{identity}{ending}")
                held[target.name] = held.get(target.name, 0) + found.st_blocks * BLOCK_BYTES
    return held


def with_room(
    store: Store, cluster: Cluster, sizes: Mapping[str, int], beside_bytes: int = 0
) -> tuple[Cluster, dict[str, int]]:
    """The cluster as plans of files of these `sizes`, by path, may fill it, and what other files hold of that, holes
    counted as full: on every target what is free, as `store df` tells it, and what these files have there now.

    A target without a capacity that would hold all of the files' data and `beside_bytes` stays unlimited.
    """
    here = {file.spelled: file for file in store.files() if file.spelled in sizes}
    free = known_room_bytes(store, store.devices())
    own: dict[str, int] = {}
    needed = beside_bytes
    for path, size in sizes.items():
        file = here.get(path)
        held = {} if file is None else allocated_bytes(store, file.id)
        for name, count in held.items():
            own[name] = own.get(name, 0) + count
        # A hole needs no room, but what lies behind the file's end now does, and what is on targets that are away.
        data = sum(held.values()) + round_up(max(0, size - (file.size if file else 0)))
        needed += round_up(size) if None in free.values() else min(round_up(size), data)
    others = store.used_by_others(sizes.keys())
    targets = []
    for target in cluster.targets:
        room = free.get(target.name)
        if room is not None:
            room = data_bytes(room) + own.get(target.name, 0)
            if target.capacity_bytes:
                room = min(room, data_bytes(target.capacity_bytes))
            if target.capacity_bytes or room < needed:
                target = replace(target, room_bytes=room + others.get(target.name, 0))
        targets.append(target)
    return replace(cluster, targets=tuple(targets)), others


def check_room(store: Store, wanted: Iterable[tuple[PlacedFile, Layout]]) -> None:
    """NoSpaceError where all of the files, laid out as wanted, would not fit a target; holes count as full only as far
    as a file has data. StoreError where a target that takes part is mounted read-only. Said before anything moves; a
    mover looks again, file by file.
    """
    growth: dict[str, int] = {}
    changed: set[str] = set()
    for file, layout in wanted:
        held = allocated_bytes(store, file.id)
        data = sum(held.values())
        for name, count in target_bytes(layout.regions, file.size).items():
            growth[name] = growth.get(name, 0) + min(count, data)
        for name, count in held.items():
            growth[name] = growth.get(name, 0) - count
        if layout.regions != file.layout.regions:
            changed |= {name for each in (file.layout, layout) for region in each.regions for name, _ in region.stripes}
    for name, why in read_only_targets(store).items():
        if name in changed:
            raise StoreError(f"{why}; nothing can be moved to it or from it until then")
    room = known_room_bytes(store, store.devices())
    for target in store.config.cluster.targets:
        free = room[target.name]
        if growth.get(target.name, 0) <= 0 or free is None:
            continue
        if target.capacity_bytes:
            free = min(free, target.capacity_bytes - held_bytes(target.path))
        if (short := growth[target.name] - free) > 0:
            raise NoSpaceError(
                f"target {target.name} has no room for this layout: {format_size(growth[target.name])} more would lie "
                f"there, {format_size(short)} more than is free; choose narrower stripes there, other targets, fewer "
                f"files, or a region of its own for the end of a file, which the last region goes on to"
            )
