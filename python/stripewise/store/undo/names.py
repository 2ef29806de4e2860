"""The names of a store's files as they are now: links that tools without the library renamed, copied or linked, too."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import StoreError
from ..config import StoreConfig
from ..globs import managed_directories
from ..owned import others_write

_LINK = re.compile(r"/stripewise:(.*)/([0-9a-f]{16})", re.DOTALL)


def link_id(path: str | Path, root: Path, at: int | None = None) -> str | None:
    """The id of the file of the store at `root` that a symbolic link of ours or root's names; None for anything else.

    `at` is a directory, held open, that the path is relative to.
    """
    try:
        if os.stat(path, dir_fd=at, follow_symlinks=False).st_uid not in (0, os.geteuid()):
            return None
        found = _LINK.fullmatch(os.readlink(path, dir_fd=at))
    except OSError:
        return None
    return found[2] if found and found[1] == str(root) else None


def others_change(directory: str, is_sticky_fine: bool = True) -> bool:
    """Whether others than root and the effective user can exchange what lies under names of ours in a directory, or on
    the way there from / on. A link on the way counts as such: resolve it before.
    """
    way = Path(directory)
    for place in (way, *way.parents):
        found = os.lstat(place)
        is_open = others_write(found) and not (found.st_mode & stat.S_ISVTX and (is_sticky_fine or place != way))
        if found.st_uid not in (0, os.geteuid()) or is_open or not stat.S_ISDIR(found.st_mode):
            return True
    return False


@contextlib.contextmanager
def held_directory(directory: str, is_sticky_fine: bool = True) -> Iterator[int]:
    """A directory that nobody else can change, held open and made durable at the end. Raises StoreError, OSError."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if others_change(directory, is_sticky_fine) or not os.path.samestat(os.fstat(handle), os.lstat(directory)):
            raise StoreError(f"{directory}: can be changed by others; export the store's files there by hand first")
        yield handle
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass
class Links:
    """Links by the id that they name, those of other users, directories that could not be read, and those that were
    searched with all below them.
    """

    by_id: dict[str, list[str]] = field(default_factory=dict)
    foreign: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    searched: list[str] = field(default_factory=list)

    def add(self, identity: str, path: str) -> None:
        """One more link, once."""
        known = self.by_id.setdefault(identity, [])
        if path not in known:
            known.append(path)


def find_links(config: StoreConfig, recorded: dict[str, str], search: Iterable[Path]) -> Links:
    """The links to the files of a store: where they are recorded and beside that, below the directories whose files
    the store manages, and below `search`.
    """
    links = Links()
    apart = {os.path.realpath(config.root), *(os.path.realpath(target.path) for target in config.cluster.targets)}
    deep = _outermost([*managed_directories(config.managed), *(os.path.abspath(path) for path in search)])
    links.searched = deep
    for directory in deep:
        _walk(directory, config.root, apart, links)
    beside = {os.path.realpath(os.path.dirname(path)) for path in recorded.values() if path}
    for directory in sorted(beside):
        if not any(_is_below(directory, above) for above in deep):
            for entry in _entries(directory, links, gone_is_fine=True):
                _look(entry, config.root, links)
    return links


def _outermost(directories: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for directory in sorted({os.path.realpath(each) for each in directories}):
        if not any(_is_below(directory, above) for above in kept):
            kept.append(directory)
    return kept


def _is_below(path: str, above: str) -> bool:
    real = os.path.realpath(path)
    return real == above or real.startswith(above.rstrip("/") + "/")


def _walk(directory: str, root: Path, apart: set[str], links: Links) -> None:
    todo = [directory]
    while todo:
        place = todo.pop()
        if place in apart:
            continue
        for entry in _entries(place, links):
            if entry.is_symlink():
                _look(entry, root, links)
            elif entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)


def _entries(directory: str, links: Links, gone_is_fine: bool = False) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            yield from sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        if not gone_is_fine:
            links.unread.append(directory)
    except OSError:
        links.unread.append(directory)


def _look(entry: os.DirEntry[str], root: Path, links: Links) -> None:
    if not entry.is_symlink():
        return
    if identity := link_id(entry.path, root):
        links.add(identity, entry.path)
        return
    # One that vanishes meanwhile leads nowhere.
    with contextlib.suppress(OSError):
        found = _LINK.fullmatch(os.readlink(entry.path))
        if found and found[1] == str(root) and entry.path not in links.foreign:
            links.foreign.append(entry.path)
