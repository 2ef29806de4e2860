"""The store that init makes, and its cluster.toml: both, or neither where anything fails.

What a kill leaves is an unfinished store (without store.bin), directories of targets that name it, or a store without
its cluster.toml. The next init takes over the first two, and writes the missing file of the third.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..cluster import Cluster, cluster_text
from ..errors import StoreError
from ..files.parts import write_durably
from ..store import Store, create_store
from ..store.config import DEFAULT_REGION_BYTES
from .checks import IDENTITY


def finished_before(store: Path, cluster_file: Path, paths: Sequence[Path]) -> Store | None:
    """The store over just these targets if an init made it and ended before it wrote its cluster.toml."""
    if os.path.lexists(cluster_file) or not (store / "store.bin").exists():
        return None
    opened = Store(store)
    there = [target.path for target in opened.config.cluster.targets]
    return opened if there == list(paths) else None


def make_store(root: Path, cluster: Cluster, manage: Sequence[str]) -> Store:
    """Makes the store. Nothing that it made stays where it fails."""
    with _undone([target.path for target in cluster.targets]), _in_memory(cluster_text(cluster)) as described:
        return create_store(root, described, manage, DEFAULT_REGION_BYTES, "def")


def write_cluster(path: Path, text: str) -> None:
    """Writes cluster.toml. StoreError where it is there by now, or cannot be written; the store is there already."""
    if os.path.lexists(path):
        raise StoreError(
            f"{path}: was made meanwhile and is not overwritten; the store is made, its figures are in store.toml"
        )
    try:
        write_durably(path, text)
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be written ({error.strerror}); the store is made: give the same command again for the file"
        ) from error


@contextlib.contextmanager
def _in_memory(text: str) -> Iterator[Path]:
    """A file that no kill leaves anywhere."""
    handle = os.memfd_create("cluster.toml")
    try:
        with open(handle, "wb", closefd=False) as file:
            file.write(text.encode())
        yield Path(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


@contextlib.contextmanager
def _undone(directories: Sequence[Path]) -> Iterator[None]:
    """Directories that are missing now, and their parent, are so again after a failure."""
    made = [path for path in directories if not path.exists()]
    parents = [path for path in dict.fromkeys(path.parent for path in made) if not path.exists()]
    outer = [path for path in dict.fromkeys(path.parent for path in parents) if not path.exists()]
    try:
        for path in (*outer, *parents):
            path.mkdir()
        yield
    except BaseException:
        for path in made:
            with contextlib.suppress(OSError):
                (path / IDENTITY).unlink()
        for path in (*made, *parents, *outer):
            with contextlib.suppress(OSError):
                path.rmdir()
        raise
