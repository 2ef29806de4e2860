"""The upkeep of a store: freeing what nobody reaches, comparing files with their checksums, other versions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import native
from .copies.build import is_container
from .globs import managed_directories
from .store import Store
from .transfer import store_of


def collect(
    store: Store, purge: bool, older_than_s: int, search: Sequence[Path] | None, leave_away: bool = False
) -> dict[str, Any]:
    """Frees what nobody can reach. Raises StoreError where a target is away; with `leave_away` its part stays there.

    Links to files whose name is gone are looked for where the store manages files, and below `search`; with None only
    beside the name, which is for who purges nothing.
    """
    assert search is not None or not purge
    managed = [] if search is None else managed_directories(store.config.managed)
    places = [*managed, *(str(path.resolve()) for path in search or ())]
    options = {"purge": purge, "older_than_s": older_than_s, "search": places, "leave_away": leave_away}
    return dict(native.call("store_gc", str(store.root), json.dumps(options)))


def lost(store: Store, identities: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """What is gone of files, by id: each as a sentence and its cure, by what is known without reading any. Where the
    cure is empty it is in the sentence, and the file cannot be read.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for identity, what, cure in native.call("store_lost", str(store.root), list(identities)):
        found.setdefault(identity, []).append((what, cure))
    return found


def scrub(store: Store, identities: Sequence[str], bytes_per_s: int) -> dict[str, Any]:
    """Compares files (all without `identities`) with their checksums."""
    return dict(native.call("store_scrub", str(store.root), list(identities), bytes_per_s))


def scrub_paths(paths: Sequence[Path], bytes_per_s: int) -> dict[str, Any]:
    """The same for stores and managed files by name, what was found in all of them together.

    `copied` are files whose copies were read, which lie in a file of the store's own.
    """
    total: dict[str, Any] = {
        "files": 0,
        "copied": 0,
        "verified": 0,
        "summed": 0,
        "busy": 0,
        "bytes": 0,
        "rot": [],
        "suspect": [],
        "away": [],
    }
    for path in paths:
        if (path / "store.toml").exists():
            whole = Store(path)
            found = scrub(whole, [], bytes_per_s)
            found["copied"] = min(found["files"], sum(is_container(whole.root, file.path) for file in whole.files()))
            found["files"] -= found["copied"]
        else:
            store, identity = store_of(path)
            found = {**scrub(store, [identity], bytes_per_s), "copied": 0}
        total = {key: total[key] + found[key] for key in total}
    return total


def upgrade(root: Path) -> dict[str, Any]:
    """Checks every version, and compiles store.toml anew."""
    store = Store(root)
    done = dict(native.call("store_upgrade", str(store.root)))
    store.sync(force=True)
    return done
