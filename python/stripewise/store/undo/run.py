"""Undoing a store as one command: look, settle, make plain, compare, remove. Run again after a kill, it goes on."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InUseError, StoreError
from ...files.parts import locked_part
from .. import trust
from ..config import CONFIG_LOCK, read_store
from ..store import Store
from ..transfer import retry_while_open
from . import removal
from .decide import Decision, decide, in_use
from .files import Done, make_plain, nothing_new, settle
from .removal import Removed

Say = Callable[[str], None]


@dataclass(frozen=True)
class Undone:
    """What an undo did."""

    root: Path
    decision: Decision
    done: Done
    removed: Removed

    def as_json(self) -> dict[str, Any]:
        """The result as `undo --json` prints it."""
        return {
            "store": str(self.root),
            "files": self.done.files,
            "bytes": self.done.bytes,
            "other_names": self.done.names,
            "orphans": self.done.orphans,
            "templates": self.decision.templates,
            "plans": self.decision.plans,
            "left": self.removed.left,
            "empty_directories": self.removed.empty,
            "store_is_gone": self.removed.root_is_gone,
        }


def look(root: Path, orphans: Path | None, search: Iterable[Path]) -> Decision | None:
    """What an undo would do; None where one began to remove the store already. Raises StoreError, ClusterError."""
    root = Path(os.path.realpath(root))
    if removal.marker_of(root) is not None:
        return None
    return decide(_opened(root), orphans, search)


def undo(
    root: Path,
    orphans: Path | None,
    search: Iterable[Path],
    wait_s: float,
    say: Say,
    step: Callable[[int, int], None],
) -> Undone:
    """Makes every file plain and removes the store. Raises StoreError; `say` then got every single reason."""
    root = Path(os.path.realpath(root))
    if (marker := removal.marker_of(root)) is not None:
        return Undone(root, Decision(), Done(), removal.finish(root, marker))
    store = _opened(root)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked_part(store.root, CONFIG_LOCK, wait=False))
        except BlockingIOError as error:
            raise InUseError(
                f"{store.root}: another stripewise command is changing the store; wait until it is done"
            ) from error
        try:
            return _undo(store, orphans, list(search), wait_s, say, step)
        except StoreError as error:
            # Not through the lock's own errors, which name its file.
            failed = error
    raise failed


def _opened(root: Path) -> Store:
    read_store(root)
    trust.require(root, root)
    return Store(root)


def _undo(
    store: Store, orphans: Path | None, search: list[Path], wait_s: float, say: Say, step: Callable[[int, int], None]
) -> Undone:
    def idle() -> dict[str, Any]:
        if used := in_use(store):
            raise InUseError(used[0])
        return {}

    retry_while_open(idle, wait_s)
    with nothing_new(store):
        settle(store)
        decision = decide(store, orphans, search)
        if decision.problems:
            for text in (*decision.problems, *decision.advice):
                say(text)
            raise StoreError(f"{store.root}: {len(decision.problems)} thing(s) keep it from being undone; see above")
        for directory in decision.unread:
            say(f"{directory}: cannot be read; links to the store's files there lead nowhere from now on")
        done = make_plain(store, decision, wait_s, step)
        with removal.alone(store):
            marker = removal.begin(store)
            return Undone(store.root, decision, done, removal.finish(store.root, marker))
