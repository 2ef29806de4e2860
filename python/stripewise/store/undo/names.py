"""The names of a store's files as they are now: links that tools without the library renamed, copied or linked, too."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..config import StoreConfig

_LINK = re.compile(r"/stripewise:(.*)/([0-9a-f]{16})", re.DOTALL)
_WILD = "*?["


def link_id(path: str | Path, root: Path, at: int | None = None) -> str | None:
    """The id of the file of the store at `root` that a symbolic link names; None for anything else.

    `at` is a directory, held open, that the path is relative to.
    """
    try:
        found = _LINK.fullmatch(os.readlink(path, dir_fd=at))
    except OSError:
        return None
    return found[2] if found and found[1] == str(root) else None


@dataclass
class Links:
    """Links by the id that they name, and directories that could not be read."""

    by_id: dict[str, list[str]] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)

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
    deep = _outermost([*managed_directories(config), *(os.path.abspath(path) for path in search)])
    for directory in deep:
        _walk(directory, config.root, apart, links)
    beside = {os.path.dirname(path) for path in recorded.values() if path}
    for directory in sorted(beside):
        if not any(_is_below(directory, above) for above in deep):
            for entry in _entries(directory, links, gone_is_fine=True):
                _look(entry, config.root, links)
    return links


def managed_directories(config: StoreConfig) -> list[str]:
    """The directories below which rules of the store put new files into it."""
    found = []
    for rule in config.rules:
        if rule.action != "manage":
            continue
        place = "/"
        for part in rule.glob.split("/")[1:-1]:
            # An escaped character is a class of one.
            name = re.sub(r"\[([*?\[])\]", r"\1", part)
            if any(char in re.sub(r"\[([*?\[])\]", "", part) for char in _WILD):
                break
            place = os.path.join(place, name)
        if os.path.isdir(place):
            found.append(place)
    return found


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
    if entry.is_symlink() and (identity := link_id(entry.path, root)):
        links.add(identity, entry.path)
