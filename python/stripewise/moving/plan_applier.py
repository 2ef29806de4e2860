"""A whole plan at once, file by file: what `apply` and `tune` do, with the mover that `migrate` has.

So whatever moves bytes has the store's mover lock, keeps to limits, tells its status, and obeys `mover stop`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .. import native
from ..layout import Region
from ..plan import Plan
from ..store import Store
from .mover_session import Limits, MoverSession


@dataclass(frozen=True)
class Applied:
    """What was done: files laid out anew, bytes that moved, seconds, and the signal that ended it, if one did."""

    files: int
    moved_bytes: int
    seconds: float
    signal: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The result as `apply --json` prints it."""
        said = asdict(self)
        del said["signal"]
        return said


def apply_plan(
    store: Store,
    plan: Plan,
    ids: Mapping[str, str],
    limits: Limits | None = None,
    progress: native.Progress | None = None,
) -> Applied:
    """Gives every planned file its layout; those that free targets of limited capacity go first.

    Raises the StoreError of the first file that cannot be moved; those before it are where the plan puts them.
    """
    order = sorted(plan.files, key=lambda file: store.limited_growth(ids[file.path], file))
    return lay_out(
        store, [Wanted(file.path, ids[file.path], file.layout, file.size) for file in order], limits, progress
    )


@dataclass(frozen=True)
class Wanted:
    """A file of `size` bytes and the layout that it is to have."""

    path: str
    id: str
    layout: tuple[Region, ...]
    size: int


def lay_out(
    store: Store, files: Sequence[Wanted], limits: Limits | None = None, progress: native.Progress | None = None
) -> Applied:
    """Gives every file its layout, one after the other. Raises as `apply_plan` does."""
    begun, moved_bytes = time.monotonic(), 0
    with MoverSession(store, {"verb": "apply"}, limits or Limits(), progress) as session:
        session.expect(sum(file.size for file in files))
        for number, file in enumerate(files):
            moved = session.move(file.path, file.id, file.layout, 0, file.size)
            moved_bytes += moved.moved_bytes
            if session.signal is not None:
                # The file under way may have been moved by then.
                done = number + (not moved.error)
                return Applied(done, moved_bytes, time.monotonic() - begun, session.signal)
            moved.check()
    return Applied(len(files), moved_bytes, time.monotonic() - begun)
