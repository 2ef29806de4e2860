"""Building what a manager has chosen: copies in a store, file by file, and why others are left out."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import native
from ..errors import StoreError
from ..files.spelling import path_meant
from ..limits import Limits
from ..store import Store
from ..store.copies.build import Blocks, Built, build, layout_from
from ..store.copies.listed import Copies, copies_of
from .accesses import Extent, Found
from .candidate import Candidate

#: Why a file of another store has none.
ELSEWHERE = "is a managed file of another store"
#: What is said of a file whose copies went before others could stand in their place.
_LOST = "its earlier copies are gone"


@dataclass(frozen=True)
class Skipped:
    """A chosen replica that was not built; `is_error` where the store refused it."""

    file: str
    words: str
    reason: str
    #: Of all its requests.
    bytes: int
    is_error: bool = False

    def as_json(self) -> dict[str, Any]:
        """The fields of docs/replicas/reference.md."""
        return {"file": self.file, "pattern": self.words, "reason": self.reason}


def blocks_of(candidate: Candidate) -> list[Blocks]:
    """Each strided set of a candidate as a replica of its own, on the candidate's layout from its bytes on."""
    found, at = [], 0
    for part in candidate.blocks:
        found.append(Blocks(part.base, part.block, part.dims, layout_from(candidate.layout, at), candidate.on_write))
        at += part.bytes
    return found


def build_all(
    store: Store,
    chosen: Iterable[Candidate],
    extents: Mapping[str, Extent],
    lease: bool,
    limits: Limits,
) -> Iterator[Built | list[Skipped]]:
    """Builds the copies among them, all of a file at once, and says of each file what was made and what not."""
    by_file: dict[str, list[Candidate]] = {}
    before = {each.name: each for each in copies_of(store)}
    for each in chosen:
        by_file.setdefault(each.file, []).append(each)
    for path, all_of_it in by_file.items():
        homes = [each for each in all_of_it if each.is_home]
        copies = [each for each in all_of_it if not each.is_home]
        if homes:
            yield _skipped(homes, "would be the home of what the run writes; only copies of what it reads are made")
        if not copies:
            continue
        reason = obstacle(path, copies, extents.get(path))
        if reason is not None:
            yield _skipped(copies, reason)
            continue
        blocks = [part for each in copies for part in blocks_of(each)]
        # The link of a managed file leads to no file that the kernel finds.
        full = os.path.abspath(path) if root_of(path) is not None else os.path.realpath(path)
        try:
            yield build(store, full, blocks, lease, limits)
        except StoreError as error:
            lost = f"; {_LOST}" if full in lost_of(store, before) else ""
            yield _skipped(copies, f"{error}{lost}", is_error=True)


def lost_of(store: Store, before: Mapping[str, Copies]) -> list[str]:
    """The files that had copies `before`, by their names, and have none now, nor any that are being made."""
    now = {each.name for each in copies_of(store)}
    return [each.path for name, each in before.items() if name not in now]


def files_elsewhere(found: Found, store: Store) -> list[str]:
    """The files of patterns that another store manages, in order."""
    roots = {path: root_of(path) for path in {each.file for each in found.patterns}}
    return sorted(path for path, root in roots.items() if root not in (None, os.path.realpath(store.root)))


def without_files(found: Found, files: Collection[str]) -> tuple[Found, list[Skipped]]:
    """The patterns of other files, which alone are decided about; and those that are left out."""
    kept = tuple(each for each in found.patterns if each.file not in files)
    gone = [Skipped(each.file, each.words, ELSEWHERE, each.bytes) for each in found.patterns if each.file in files]
    return replace(found, patterns=kept), gone


def obstacle(path: str, copies: Iterable[Candidate], extent: Extent | None) -> str | None:
    """Why a file of a trace has no copies made; None where nothing is in the way."""
    if path_meant(path) != path:
        return "its name is not UTF-8, and copies are made of files alone whose names are"
    if root_of(path) is not None:
        return None
    try:
        now = os.stat(path)
    except FileNotFoundError:
        return "the file does not exist any more"
    except OSError as error:
        return f"the file cannot be looked at: {error.strerror}"
    if not stat.S_ISREG(now.st_mode):
        return "is not a regular file"
    ends = [part.base + part.block + sum((n - 1) * step for step, n in part.dims) for c in copies for part in c.blocks]
    needed = max([*ends, 0 if extent is None else extent.size_bytes])
    if now.st_size < needed:
        return f"the file has changed since the trace: {now.st_size:,} bytes, the run reached byte {needed:,}"
    return None


def root_of(path: str) -> str | None:
    """The store that manages the file at `path`; None for a plain file, or none at all."""
    with contextlib.suppress(StoreError):
        found = native.call("store_resolve", os.path.abspath(path))
        return os.path.realpath(found["store"]) if found else None
    # A path that cannot be followed leads to no file of a store.
    return None


def _skipped(candidates: Iterable[Candidate], reason: str, is_error: bool = False) -> list[Skipped]:
    return [Skipped(each.file, each.words, reason, each.bytes, is_error) for each in candidates]
