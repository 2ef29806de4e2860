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
from ..store.config import DEFAULT_REGION_BYTES, read_store
from ..store.owned import IDENTITY, check_owned
from .request import Request


def finished_before(asked: Request) -> Store | None:
    """The user's own store over just these targets and files if an init made it and ended before its cluster.toml."""
    root = asked.store
    if os.path.lexists(asked.cluster_file) or not (root / "store.bin").exists():
        return None
    if root.lstat().st_uid != os.geteuid():
        return None
    config = read_store(root)
    there = [target.path for target in config.cluster.targets]
    managed = [rule.glob for rule in config.rules if rule.action == "manage"]
    same = there == [path for _, path in asked.homes()] and managed == asked.globs()
    return Store(root) if same else None


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
    """Makes directories that are missing, and up to two above each; those are missing again after a failure.

    They are made here, where the name must be free, so that nobody else can have made one after it was looked at.
    """
    missing = [path for path in directories if not path.exists()]
    parents = [path for path in dict.fromkeys(path.parent for path in missing) if not path.exists()]
    outer = [path for path in dict.fromkeys(path.parent for path in parents) if not path.exists()]
    made: list[Path] = []
    try:
        for path in (*outer, *parents, *missing):
            _make_directory(path)
            made.append(path)
        for path in directories:
            check_owned(path, "target: ", "give --store another name")
        yield
    except BaseException:
        for path in reversed(made):
            with contextlib.suppress(OSError):
                (path / IDENTITY).unlink()
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def _make_directory(path: Path) -> None:
    """Makes a directory that others cannot write whatever the umask, and that a power cut does not take back."""
    try:
        path.mkdir(0o755)
        handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except FileExistsError as error:
        raise StoreError(f"{path}: was made by somebody else meanwhile; give the same command again") from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be made ({error.strerror}); give a directory that you may write") from error
