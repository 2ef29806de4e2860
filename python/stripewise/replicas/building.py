"""Building what a manager has chosen: copies of plain files in a store, file by file, and why others are left out."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import native
from ..errors import StoreError
from ..store import Store
from ..store.copies.build import Blocks, Built, build, layout_from
from .accesses import Extent, Found
from .candidate import Candidate

#: Why a managed file has none.
MANAGED = "copies of managed files cannot be built yet"


@dataclass(frozen=True)
class Skipped:
    """A chosen replica that was not built; `is_error` where the store refused it."""

    file: str
    words: str
    reason: str
    is_error: bool = False

    def as_json(self) -> dict[str, Any]:
        """The fields of docs/traces/replicas.md."""
        return {"file": self.file, "pattern": self.words, "reason": self.reason}


def blocks_of(candidate: Candidate) -> list[Blocks]:
    """Each strided set of a candidate as a replica of its own, on the candidate's layout from its bytes on."""
    found, at = [], 0
    for part in candidate.blocks:
        found.append(Blocks(part.base, part.block, part.dims, layout_from(candidate.layout, at)))
        at += part.bytes
    return found


def build_all(
    store: Store,
    chosen: Iterable[Candidate],
    extents: Mapping[str, Extent],
    lease: bool,
    bytes_per_s: int,
) -> Iterator[Built | list[Skipped]]:
    """Builds the copies among them, all of a file at once, and says of each file what was made and what not."""
    by_file: dict[str, list[Candidate]] = {}
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
        try:
            yield build(store, os.path.realpath(path), blocks, lease, bytes_per_s)
        except StoreError as error:
            yield _skipped(copies, str(error), is_error=True)


def managed_files(found: Found, in_stores: Collection[str] = ()) -> list[str]:
    """The files of patterns that are managed, in order; of those that are gone the ones that were, `in_stores`."""
    paths = sorted({each.file for each in found.patterns})
    return [path for path in paths if _is_managed(path) or (path in in_stores and not os.path.lexists(path))]


def without_files(found: Found, files: Collection[str]) -> tuple[Found, list[Skipped]]:
    """The patterns of other files, which alone are decided about; and those that are left out, for they are managed."""
    kept = tuple(each for each in found.patterns if each.file not in files)
    gone = [Skipped(each.file, each.words, MANAGED) for each in found.patterns if each.file in files]
    return replace(found, patterns=kept), gone


def obstacle(path: str, copies: Iterable[Candidate], extent: Extent | None) -> str | None:
    """Why a file of a trace has no copies made; None where nothing is in the way."""
    if _is_managed(path):
        return MANAGED
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


def _is_managed(path: str) -> bool:
    with contextlib.suppress(StoreError):
        return bool(native.call("store_resolve", os.path.abspath(path)))
    # A path that cannot be followed leads to no file of a store.
    return False


def _skipped(candidates: Iterable[Candidate], reason: str, is_error: bool = False) -> list[Skipped]:
    return [Skipped(each.file, each.words, reason, is_error) for each in candidates]
