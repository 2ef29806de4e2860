"""The upkeep of a store: freeing what nobody reaches, comparing files with their checksums, other versions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import native
from .store import Store
from .transfer import store_of


def collect(store: Store, purge: bool, older_than_s: int, search: Sequence[Path]) -> dict[str, Any]:
    """Frees what nobody can reach."""
    options = {"purge": purge, "older_than_s": older_than_s, "search": [str(path.resolve()) for path in search]}
    return dict(native.call("store_gc", str(store.root), json.dumps(options)))


def scrub(store: Store, identities: Sequence[str], bytes_per_s: int) -> dict[str, Any]:
    """Compares files (all without `identities`) with their checksums."""
    return dict(native.call("store_scrub", str(store.root), list(identities), bytes_per_s))


def scrub_paths(paths: Sequence[Path], bytes_per_s: int) -> dict[str, Any]:
    """The same for stores and managed files by name, what was found in all of them together."""
    total: dict[str, Any] = {"files": 0, "verified": 0, "summed": 0, "busy": 0, "bytes": 0, "rot": []}
    for path in paths:
        if (path / "store.toml").exists():
            found = scrub(Store(path), [], bytes_per_s)
        else:
            store, identity = store_of(path)
            found = scrub(store, [identity], bytes_per_s)
        total = {key: total[key] + found[key] for key in total}
    return total


def upgrade(root: Path) -> dict[str, Any]:
    """Checks every version, and compiles store.toml anew."""
    store = Store(root)
    done = dict(native.call("store_upgrade", str(store.root)))
    store.sync(force=True)
    return done
