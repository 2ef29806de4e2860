"""Ways in and out of a store: plain files become managed and plain again, and links get new names."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from .. import native
from ..cluster.described import describes
from ..errors import InUseError, NoSpaceError, StoreError
from ..layout import Region, from_indexes, target_bytes
from ..units import format_size, quoted
from . import trust
from .config import check_untuned
from .copies.build import COPIES_DIR
from .layouts import named_layout, native_text
from .moved.places import follow
from .placed import is_adoptable, is_of_the_kernel, why_unplaced
from .room import BLOCK_BYTES, Room, own_layout, room_bytes
from .store import Store

#: So many targets are named with what a file without room needs there, and what they have.
TARGETS_SHOWN = 8
#: What a work that is tried again gives at last.
Done = TypeVar("Done")
#: Between two looks whether a file is still open, seconds.
WAIT_S = 0.1


def store_of(path: Path) -> tuple[Store, str]:
    """The store and id of the managed file that `path` leads to."""
    found = native.call("store_resolve", os.path.abspath(path))
    if not found:
        raise StoreError(f"{path}: {why_unplaced(os.path.abspath(path))}")
    trust.require(Path(found["store"]), path)
    return Store(Path(found["store"])), str(found["id"])


def roots_of(paths: Iterable[Path]) -> list[Path]:
    """The stores of those of the paths that lead to managed files, each once."""
    found = (native.call("store_resolve", os.path.abspath(path)) for path in paths)
    return [Path(root) for root in dict.fromkeys(str(each["store"]) for each in found if each)]


def file_or_id(name: str, root: Path | None) -> tuple[Store, str]:
    """The same for a path, or for the id of a file of the store at `root`."""
    if root is not None and not os.path.lexists(name):
        return Store(root), name
    return store_of(Path(name))


def plain_files(store: Store, directory: Path) -> Iterator[Path]:
    """The regular files below a directory, links not followed, in order; what is the store's own is left out."""
    own = {os.path.realpath(each) for each in (store.root, *(target.path for target in store.config.cluster.targets))}
    if not directory.is_dir():
        raise StoreError(f"{directory}: is not a directory; give single files without -r")
    here = Path(os.path.realpath(directory))
    if (inside := next((each for each in own if here.is_relative_to(each)), None)) is not None:
        raise StoreError(f"{directory}: lies in {inside}, which belongs to the store; name a directory elsewhere")
    for place, directories, names in os.walk(directory):
        directories[:] = sorted(name for name in directories if os.path.realpath(os.path.join(place, name)) not in own)
        for name in sorted(names):
            path = Path(place, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def retry_while_open(work: Callable[[], Done], wait_s: float) -> Done:
    """Does `work`; while somebody has the file open it is tried again for `wait_s` seconds, then InUseError."""
    end = time.monotonic() + wait_s
    while True:
        try:
            return work()
        except InUseError:
            if time.monotonic() >= end:
                raise
            time.sleep(min(WAIT_S, max(0.0, end - time.monotonic())))


def layout_text(store: Store, name: str | None) -> str | None:
    """A layout (def, hservers or a JSON file) in the form the native module takes; None for the store's default."""
    if name is None:
        return None
    return native_text(named_layout(name, store.config), store.config)


def adopt(store: Store, path: Path, layout: str | None, lease: bool, room: Room) -> dict[str, Any]:
    """Makes the plain file at `path` a managed one; `layout` as `layout_text` gives it, None for the store's own, by
    `room` as new files have it. A file of this store stays as it is (`was_managed`).

    Raises NoSpaceError with what the file needs and what there is, StoreError for the description of the store.
    """
    if describes(path, store.config.cluster):
        raise StoreError(
            f"{path}: describes the targets of the store {store.root}, and commands that take it with --cluster could "
            "not read it there; leave it plain"
        )
    if is_of_the_kernel(path):
        raise StoreError(
            f"{path}: lies on no disk, for the kernel makes it up as it is read; copy it, and adopt the copy"
        )
    given = _by_room(store, path, room) if layout is None else layout
    try:
        return dict(native.call("store_adopt", str(store.root), os.path.abspath(path), given, lease))
    except NoSpaceError as error:
        raise NoSpaceError(_no_room(store, path, layout, error)) from error


def _regions(store: Store, layout: str | None) -> tuple[Region, ...]:
    if layout is None:
        return store.config.layout(store.config.default_layout).regions
    return from_indexes(json.loads(layout), store.config.cluster).regions


def _by_room(store: Store, path: Path, room: Room) -> str | None:
    """The store's own layout for a file of these bytes; None where it cannot be looked at, which adopting it tells."""
    try:
        coming, _ = _sizes(path)
    except OSError:
        return None
    return native_text(own_layout(store, room.before(coming), os.urandom(8).hex()), store.config)


def _sizes(path: Path) -> tuple[int, int]:
    """Bytes of data of a file, holes left out, and its size."""
    found = path.stat()
    return min(found.st_size, found.st_blocks * BLOCK_BYTES), found.st_size


def _no_room(store: Store, path: Path, layout: str | None, error: NoSpaceError) -> str:
    """What a file needs, on which target where its layout is given, what these have, and what helps."""
    try:
        data, size = _sizes(path)
    except OSError:
        return str(error)
    room = {str(row["name"]): int(row["free_bytes"] or 0) for row in store.devices()}
    root = quoted(store.root)
    active = [target.name for target in store.config.cluster.active]
    cures = [
        f"add a target (stripewise store add {root} NAME --path DIR)",
        "remove files of the store",
    ]
    in_all = sum(count for name, count in room_bytes(store).items() if name in active)
    if layout is None and in_all < data:
        why = f"all targets together have room for {format_size(in_all)}"
    else:
        needed = {
            name: min(count, data) for name, count in target_bytes(_regions(store, layout), size).items() if count
        }
        short = {name: count for name, count in needed.items() if count > room.get(name, 0)} or needed
        named = ", ".join(
            f"{name} (would take {format_size(count)}, has {format_size(room.get(name, 0))} free)"
            for name, count in list(short.items())[:TARGETS_SHOWN]
        )
        others = [name for name in active if name not in short]
        if sum(room.get(name, 0) for name in others) >= data:
            cures.append(f"give a --layout over targets with room ({', '.join(others[:TARGETS_SHOWN])})")
        free = sum(room.get(name, 0) for name in active)
        why = f"too much for {named}; {format_size(free)} are free on all targets"
    return (
        f"{path}: needs {format_size(data)} in the store, beside itself until it is in, and stays plain: {why}: "
        f"stripewise store df {root}; {', or '.join(cures)}"
    )


def export(path: Path) -> dict[str, Any]:
    """Makes the managed file at `path` a plain one; one that is plain stays as it is (`was_plain`).

    Raises StoreError, InUseError also where a tune is at work.
    """
    if is_adoptable(os.path.abspath(path)):
        return {"size": path.stat().st_size, "data_bytes": 0, "dropped_copies": False, "was_plain": True}
    store, _ = store_of(path)
    check_untuned(store.root, waits=True)
    return dict(native.call("store_export", str(store.root), os.path.abspath(path)))


def export_to(path: Path, to: Path) -> dict[str, Any]:
    """Copies the managed file at `path` to a plain one at `to`."""
    store, identity = store_of(path)
    return dict(native.call("store_export_to", str(store.root), identity, os.path.abspath(to)))


def cat(store: Store, identity: str, descriptor: int, offset: int, length: int | None) -> int:
    """Writes a file's bytes to a descriptor; returns how many. Fewer when the reader went away."""
    return int(native.call("store_cat", str(store.root), identity, descriptor, offset, length)["bytes"])


def relink(path: Path, force: bool) -> str:
    """Makes the link at `path` the name of the file it leads to; returns its id."""
    store, _ = store_of(path)
    return str(native.call("store_relink", str(store.root), os.path.abspath(path), force)["id"])


def relink_moved(root: Path, directories: Sequence[Path]) -> dict[str, Any]:
    """Makes links and store.toml name the store, its targets and their files where they are now."""
    followed = follow(root)
    store = Store(root)
    store.sync(force=True)
    # Copies have moved with the store; those of files that have moved, too, count no more, and gc takes them.
    places = [*directories, *([store.root / COPIES_DIR] if (store.root / COPIES_DIR).is_dir() else [])]
    done = native.call("store_relink_moved", str(store.root), [os.path.abspath(path) for path in places])
    targets = {name: str(path) for name, path in followed.targets.items()}
    return {**done, "targets": targets, "globs": followed.globs, "plans": followed.plans}
