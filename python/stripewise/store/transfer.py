"""Ways in and out of a store: plain files become managed and plain again, and links get new names."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .. import native
from ..errors import InUseError, StoreError
from ..layout import to_indexes
from . import trust
from .layouts import named_layout
from .store import Store

#: Between two looks whether a file is still open, seconds.
WAIT_S = 0.1


def store_of(path: Path) -> tuple[Store, str]:
    """The store and id of the managed file that `path` leads to."""
    found = native.call("store_resolve", os.path.abspath(path))
    if not found:
        what = "does not exist" if not os.path.lexists(path) else "is not a managed file"
        raise StoreError(f"{path}: {what}; see 'stripewise store ls'")
    trust.require(Path(found["store"]), path)
    return Store(Path(found["store"])), str(found["id"])


def file_or_id(name: str, root: Path | None) -> tuple[Store, str]:
    """The same for a path, or for the id of a file of the store at `root`."""
    if root is not None and not os.path.lexists(name):
        return Store(root), name
    return store_of(Path(name))


def plain_files(directory: Path) -> Iterator[Path]:
    """The regular files below a directory, links not followed, in order."""
    if not directory.is_dir():
        raise StoreError(f"{directory}: is not a directory; give single files without -r")
    for place, directories, names in os.walk(directory):
        directories.sort()
        for name in sorted(names):
            path = Path(place, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def retry_while_open(work: Callable[[], dict[str, Any]], wait_s: float) -> dict[str, Any]:
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
    return json.dumps(to_indexes(named_layout(name, store.config).regions, store.config.cluster))


def export(path: Path) -> dict[str, Any]:
    """Makes the managed file at `path` a plain one."""
    store, _ = store_of(path)
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
    """Makes links name the store where it is now; its targets must be where store.toml says."""
    store = Store(root)
    store.sync(force=True)
    return dict(native.call("store_relink_moved", str(store.root), [os.path.abspath(path) for path in directories]))
