"""Undoing a store as one command: look, settle, make plain, compare, remove. Run again after a kill, it goes on."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InUseError, StoreError
from ...files.parts import locked_part
from ..config import CONFIG_LOCK, check_untuned, read_store
from ..copies.listed import copies_of, drop_all
from ..store import Store
from ..transfer import retry_while_open
from . import removal
from .decide import Decision, decide, in_use, is_new
from .files import Done, make_plain, nothing_new, settle
from .removal import Removed

Say = Callable[[str], None]
#: What stands where a signal came before the first file.
NOTHING_DONE = "no file was made plain by this run; the store stands, and the same command goes on"


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
            "copies": self.decision.copies,
            "dangling": self.decision.dangling,
            "left": self.removed.left,
            "empty_directories": self.removed.empty,
            "store_is_gone": self.removed.root_is_gone,
        }


def look(root: Path, orphans: Path | None, search: Iterable[Path]) -> Decision | None:
    """What an undo would do; None where one began to remove the store already. Raises StoreError, ClusterError."""
    root = Path(os.path.realpath(root))
    with _held(root) as at:
        return None if removal.marker_of(at) is not None else decide(Store(root), orphans, search)


def undo(
    root: Path,
    orphans: Path | None,
    search: Iterable[Path],
    wait_s: float,
    say: Say,
    step: Callable[[int, int], None],
) -> Undone:
    """Makes every file plain and removes the store. Raises StoreError; `say` then got the reasons."""
    root = Path(os.path.realpath(root))
    with contextlib.ExitStack() as held:
        at = held.enter_context(_held(root))
        if (marker := removal.marker_of(at)) is not None:
            return Undone(root, Decision(), Done(), removal.finish(root, at, marker))
        try:
            held.enter_context(locked_part(root, CONFIG_LOCK, wait=False))
        except BlockingIOError as error:
            raise InUseError(
                f"{root}: another stripewise command is changing the store; wait until it is done"
            ) from error
        store = Store(root)

        def idle() -> dict[str, Any]:
            check_untuned(root, waits=True)
            if used := in_use(store):
                raise InUseError(used[0])
            return {}

        try:
            retry_while_open(idle, wait_s)
        except KeyboardInterrupt:
            say(NOTHING_DONE)
            raise
        with nothing_new(store):
            decision = _decided(store, orphans, list(search), say)
            done = make_plain(store, decision, wait_s, say, step)
            try:
                with removal.alone(store):
                    return Undone(root, decision, done, removal.finish(root, at, removal.begin(store)))
            except KeyboardInterrupt:
                say("all files are plain by now; the same command ends the removal of the store")
                raise


@contextlib.contextmanager
def _held(root: Path) -> Iterator[int]:
    """The directory of a store held open, or of what is left of one; nothing there is believed before its owner is."""
    if not os.path.lexists(root / removal.MARKER):
        if root.is_dir() and not os.listdir(root):
            raise StoreError(
                f"{root}: is not a store but an empty directory, as an undo leaves it that was ended before its last "
                f"step; where it is that, rmdir {root}"
            )
        read_store(root)
    with removal.held_store(root) as at:
        if removal.marker_of(at) is None:
            read_store(root)
        yield at


def _decided(store: Store, orphans: Path | None, search: list[Path], say: Say) -> Decision:
    """What is to be done, once the copies are dropped, which they are where nothing keeps the store from being undone.
    Where a signal ends it, `say` gets what stands.
    """
    copies = len(copies_of(store))
    try:
        if copies:
            settle(store)
            _check(store, decide(store, orphans, search), say)
            say(f"dropping the copies of {copies} file(s) first; the files themselves stay as they are")
            copies = drop_all(store)
        settle(store)
        decision = decide(store, orphans, search)
    except KeyboardInterrupt:
        gone = copies - len(copies_of(store)) if copies else 0
        dropped = f"; the copies of {gone} file(s) are dropped ('stripewise replicate' makes them anew)" if gone else ""
        say(f"{NOTHING_DONE}{dropped}")
        raise
    decision.copies = copies
    _check(store, decision, say)
    if orphans is not None and decision.orphans and is_new(orphans):
        try:
            orphans.mkdir(0o755)
        except OSError as error:
            raise StoreError(f"--orphans: {orphans} cannot be made ({error.strerror}); give another one") from error
    for directory in decision.unread:
        say(f"{directory}: cannot be read; links to the store's files there lead nowhere from now on")
    return decision


def _check(store: Store, decision: Decision, say: Say) -> None:
    """StoreError where something keeps the store from being undone; `say` then gets what."""
    if decision.problems:
        for text in decision.obstacles():
            say(text)
        raise StoreError(f"{store.root}: {len(decision.problems)} thing(s) keep it from being undone; see above")
