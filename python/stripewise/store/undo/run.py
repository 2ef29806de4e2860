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
from .files import Done, make_plain, nothing_new, plain_by_now, settle
from .removal import Removed

Say = Callable[[str], None]
#: What stands where a signal came before the first file, and after the last.
NOTHING_DONE = "no file was made plain by this run; the store stands, and the same command goes on"
ALL_PLAIN = "all files are plain by now; the same command ends the removal of the store"
ALL_DONE = "all files are plain, and the store is removed"


class Stands:
    """What stands where a signal ends an undo, as it gets on."""

    def __init__(self) -> None:
        self.text: Callable[[], str] = lambda: NOTHING_DONE
        self._is_told = False

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """What a signal ends in the body is told with what stands, once."""
        try:
            yield
        except KeyboardInterrupt as error:
            if not self._is_told:
                self._is_told = True
                error.add_note(self.text())
            raise


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
            "away": self.decision.away,
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
    stands: Stands | None = None,
) -> Undone:
    """Makes every file plain and removes the store. Raises StoreError; `say` then got the reasons. Where a signal ends
    it, the exception has a note of what stands, and `stands`, too.
    """
    stands, root = stands or Stands(), Path(os.path.realpath(root))
    with stands.told(), contextlib.ExitStack() as held:
        at = held.enter_context(_held(root))
        if (marker := removal.marker_of(at)) is not None:
            return Undone(root, Decision(), Done(), _removed(root, at, marker, stands))
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

        retry_while_open(idle, wait_s)
        with nothing_new(store):
            decision, done = _decided(store, orphans, list(search), say, stands), Done()
            stands.text = lambda: plain_by_now(decision, done)
            make_plain(store, decision, done, wait_s, step)
            with removal.alone(store):
                return Undone(root, decision, done, _removed(root, at, removal.begin(store), stands))


def _removed(root: Path, at: int, marker: dict[str, Any], stands: Stands) -> Removed:
    stands.text = lambda: ALL_PLAIN
    removed = removal.finish(root, at, marker)
    stands.text = lambda: ALL_DONE
    return removed


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


def _decided(store: Store, orphans: Path | None, search: list[Path], say: Say, stands: Stands) -> Decision:
    """What is to be done, once the copies are dropped, which they are where nothing keeps the store from being
    undone.
    """
    copies = len(copies_of(store))
    stands.text = lambda: _nothing_but_copies(store, copies)
    if copies:
        settle(store)
        _check(store, decide(store, orphans, search), say)
        say(f"dropping the copies of {copies} file(s) first; the files themselves stay as they are")
        drop_all(store)
    settle(store)
    decision = decide(store, orphans, search)
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


def _nothing_but_copies(store: Store, copies: int) -> str:
    """What stands before the first file is plain, where the store had the copies of so many."""
    gone = copies - len(copies_of(store))
    dropped = f"; the copies of {gone} file(s) are dropped ('stripewise replicate' makes them anew)" if gone else ""
    return f"{NOTHING_DONE}{dropped}"


def _check(store: Store, decision: Decision, say: Say) -> None:
    """StoreError where something keeps the store from being undone; `say` then gets what."""
    if decision.problems:
        for text in decision.obstacles():
            say(text)
        raise StoreError(f"{store.root}: {len(decision.problems)} thing(s) keep it from being undone; see above")
