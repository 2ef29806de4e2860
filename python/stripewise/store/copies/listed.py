"""The copies that a store has, which of them still count, and dropping them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import native
from ...errors import InUseError, NotFoundError, StoreError
from ...workload.copied import ReplicaBlocks
from ..placed import is_adoptable, is_managed
from ..store import Store

#: Of copies that readers use.
IN_USE = "in use"


@dataclass(frozen=True)
class Copies:
    """The copies of one file; `state` is in use, changed, gone, dropped, unfinished or damaged."""

    name: str
    path: str
    container: str
    replicas: int
    bytes: int
    state: str
    #: Bytes of a managed file that were written without some of its copies since.
    stale_bytes: int = 0
    #: Replicas that a write leaves stale where it writes; it updates the others.
    invalidated: int = 0

    @property
    def is_stale(self) -> bool:
        """Whether nobody may use them."""
        return self.state != IN_USE

    @property
    def on_write(self) -> str:
        """What writes do to them, for people."""
        if self.invalidated and self.invalidated < self.replicas:
            return f"update {self.replicas - self.invalidated:,}, invalidate {self.invalidated:,}"
        return "invalidate" if self.invalidated else "update"

    def as_json(self) -> dict[str, Any]:
        """One entry of `replica ls --json`."""
        return {
            "path": self.path,
            "name": self.name,
            "container": self.container,
            "replicas": self.replicas,
            "invalidated": self.invalidated,
            "bytes": self.bytes,
            "stale_bytes": self.stale_bytes,
            "state": self.state,
        }


def copies_of(store: Store) -> list[Copies]:
    """All copies of a store, by path."""
    rows = native.call("store_copies", str(store.root))["copies"]
    found = [
        Copies(
            row["name"], row["path"], row["container"], int(row["replicas"]), int(row["bytes"]), row["state"],
            int(row["stale_bytes"]), int(row["invalidated"]),
        )
        for row in rows
    ]  # fmt: skip
    return sorted(found, key=lambda each: (each.path, each.name))


def blocks_of(store: Store, copies: Copies) -> tuple[ReplicaBlocks, ...]:
    """What their replicas hold, by number; nothing where no record tells."""
    return tuple(
        ReplicaBlocks(row["base"], row["block"], tuple(map(tuple, row["dims"]))) for row in _replicas(store, copies)
    )


def domains_of(store: Store, copies: Copies) -> tuple[int, ...]:
    """Where the first block of each replica begins in the container, likewise."""
    return tuple(int(row["at"]) for row in _replicas(store, copies))


def _replicas(store: Store, copies: Copies) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = native.call("store_copies_blocks", str(store.root), copies.name)["replicas"]
    return rows


def drop(store: Store, copies: Copies) -> None:
    """Drops them: readers that have the file open go on with it. Raises StoreError."""
    native.call("store_copies_drop", str(store.root), copies.name)


def drop_files(store: Store, files: Sequence[str]) -> list[Copies]:
    """Drops the copies of files, by path, or by name as `replica ls --json` shows it; returns them. A file that
    could have some may have none.

    Raises NotFoundError for any other name without copies, before the first is dropped.
    """
    known = copies_of(store)
    chosen: dict[str, Copies] = {}
    for file in files:
        mine = [each for each in known if _is_of(each, file)]
        full = os.path.abspath(file)
        if not mine and not (is_managed(full) or is_adoptable(full)):
            raise NotFoundError(f"{file}: has no copies in {store.root}; see 'stripewise store replica ls'")
        chosen.update((each.name, each) for each in mine)
    for each in chosen.values():
        drop(store, each)
    return list(chosen.values())


def drop_stale(store: Store) -> tuple[list[Copies], list[Copies]]:
    """Drops copies that do not count any more; returns them, and those that another command is making."""
    dropped, busy = [], []
    for each in copies_of(store):
        if not each.is_stale:
            continue
        try:
            drop(store, each)
        except InUseError:
            busy.append(each)
        except NotFoundError:
            continue
        else:
            dropped.append(each)
    return dropped, busy


def drop_all(store: Store) -> int:
    """Drops all copies of a store that is being undone; returns how many. Raises StoreError."""
    found = copies_of(store)
    for each in found:
        try:
            drop(store, each)
        except StoreError:
            # They are dropped, and a part of them stays on a target that is away.
            if any(each.name == other.name for other in copies_of(store)):
                raise
    return len(found)


def _is_of(copies: Copies, file: str) -> bool:
    """By the name, by the path when they were made, or by the file that has this path now."""
    if file == copies.name:
        return True
    full = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(file))), os.path.basename(file))
    if copies.path in (os.path.abspath(file), full):
        return True
    try:
        now = Path(file).stat()
    except OSError:
        return False
    return copies.name == f"{now.st_dev:016x}-{now.st_ino:016x}"
