"""A plain file comes into a store: with the store's layout or another one, and what to do where there is no room."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from pathlib import Path
from typing import Any

from .. import native
from ..errors import LayoutError, NoSpaceError
from ..layout import Layout, Region, from_indexes, target_bytes, to_indexes
from ..units import format_size
from .room import BLOCK_BYTES, room_bytes, spread
from .store import Store

#: So many targets are named with what they need and have.
TARGETS_SHOWN = 8


def adopt(store: Store, path: Path, layout: str | None, lease: bool) -> dict[str, Any]:
    """Makes the plain file at `path` a managed one; `layout` as `transfer.layout_text` gives it.

    Where the store's own layout (None) has no room for it, it takes of each target what its room allows, as new files
    do. Raises NoSpaceError with what the file needs and what there is.
    """
    with contextlib.suppress(NoSpaceError):
        return _adopted(store, path, layout, lease)
    try:
        return _adopted(store, path, _spread(store, path) if layout is None else layout, lease)
    except NoSpaceError as error:
        raise NoSpaceError(_no_room(store, path, _regions(store, layout), error)) from error


def _adopted(store: Store, path: Path, layout: str | None, lease: bool) -> dict[str, Any]:
    return dict(native.call("store_adopt", str(store.root), os.path.abspath(path), layout, lease))


def _regions(store: Store, layout: str | None) -> tuple[Region, ...]:
    if layout is None:
        return store.config.layout(store.config.default_layout).regions
    return from_indexes(json.loads(layout), store.config.cluster).regions


def _spread(store: Store, path: Path) -> str | None:
    """The layout by room in place of the store's own; None where all targets together have too little."""
    room = room_bytes(store)
    needed, _ = _sizes(path)
    active = {target.name for target in store.config.cluster.active}
    if sum(count for name, count in room.items() if name in active) < needed:
        return None
    template = Layout(_regions(store, None))
    try:
        return json.dumps(to_indexes(spread(template, store.config.cluster, room, "0").regions, store.config.cluster))
    except LayoutError:
        return None


def _sizes(path: Path) -> tuple[int, int]:
    """Bytes of data of a file, holes left out, and its size."""
    found = path.stat()
    return min(found.st_size, found.st_blocks * BLOCK_BYTES), found.st_size


def _no_room(store: Store, path: Path, regions: tuple[Region, ...], error: NoSpaceError) -> str:
    """What a file needs on which target, what these have, and what helps."""
    try:
        data, size = _sizes(path)
    except OSError:
        return str(error)
    room = {str(row["name"]): int(row["free_bytes"] or 0) for row in store.devices()}
    needed = {name: min(count, data) for name, count in target_bytes(regions, size).items() if count}
    short = {name: count for name, count in needed.items() if count > room.get(name, 0)} or needed
    named = ", ".join(
        f"{name} (would take {format_size(count)}, has {format_size(room.get(name, 0))} free)"
        for name, count in list(short.items())[:TARGETS_SHOWN]
    )
    root = shlex.quote(str(store.root))
    free = sum(room.get(target.name, 0) for target in store.config.cluster.active)
    others = [target.name for target in store.config.cluster.active if target.name not in short]
    elsewhere = sum(room.get(name, 0) for name in others)
    cures = [
        f"add a target (stripewise store add {root} NAME --path DIR --class CLASS)",
        "remove files of the store",
    ]
    if elsewhere >= data:
        cures.append(f"give a --layout over targets with room ({', '.join(others[:TARGETS_SHOWN])})")
    return (
        f"{path}: needs {format_size(data)} in the store, beside itself until it is in, and stays plain: too much for "
        f"{named}; {format_size(free)} are free on all targets: stripewise store df {root}; {', or '.join(cures)}"
    )
