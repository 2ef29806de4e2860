"""Where the bytes of managed files lie: each by its path, whatever store it is in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import native
from ..errors import StoreError
from ..layout import Layout, layout_json, target_bytes
from .store import Store


@dataclass(frozen=True)
class PlacedFile:
    """A file of `size` bytes, its store and id, its layout, and the bytes that each target holds of it."""

    path: str
    store: str
    id: str
    size: int
    layout: Layout

    @property
    def target_bytes(self) -> Mapping[str, int]:
        """By target, every slice rounded up to 4 KiB."""
        return target_bytes(self.layout.regions, self.size)

    def as_json(self) -> dict[str, Any]:
        """The file as `store layout --json` prints it, and as a plan of one file has it."""
        return {
            "path": self.path,
            "id": self.id,
            "store": self.store,
            "size": self.size,
            "target_bytes": dict(self.target_bytes),
            **layout_json(self.layout),
        }


def placed(paths: Iterable[Path]) -> list[PlacedFile]:
    """The files at `paths`; StoreError for one that is in no store."""
    stores: dict[str, tuple[Store, dict[str, int]]] = {}
    found = []
    for path in (os.path.abspath(each) for each in paths):
        known = native.call("store_resolve", path)
        if not known:
            cure = "'stripewise store ls STORE' lists what is" if os.path.lexists(path) else "check the path"
            raise StoreError(f"{path}: {'is in no store' if os.path.lexists(path) else 'does not exist'}; {cure}")
        root, identity = str(known["store"]), str(known["id"])
        if root not in stores:
            opened = Store(Path(root))
            stores[root] = opened, {file.id: file.size for file in opened.files()}
        store, sizes = stores[root]
        found.append(PlacedFile(path, root, identity, sizes.get(identity, 0), store.layout(identity)))
    return found
