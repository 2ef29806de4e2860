"""An undo that was killed, as a check of the store finds it: plain copies that are half made, under hidden names."""

from __future__ import annotations

import os
from pathlib import Path

from ...errors import DamagedError, StoreError
from ...files.parts import is_locked, locked_part
from ...units import format_size, quoted
from ..config import CONFIG_LOCK
from ..room import BLOCK_BYTES
from ..store import Store
from . import removal
from .files import settle_notes
from .notes import notes

#: So many of them are told one by one.
SHOWN = 5


def stopped(store: Store) -> list[str]:
    """What an undo that nobody runs any more has left, and what ends it; a sentence each."""
    if is_locked(store.root, CONFIG_LOCK):
        return []
    try:
        noted = list(notes(store))
    except DamagedError as error:
        return [str(error)]
    except OSError:
        # They are another user's, whose undo it was.
        return []
    root = quoted(store.root)
    cure = f"'stripewise undo {root}' goes on, 'stripewise store fsck --repair {root}' ends it"
    told = [
        f"{note.path}: an undo was stopped while it made this file plain{_taken(note.copy)}; {cure}"
        for note in noted[:SHOWN]
    ]
    return told + ([f"and {len(noted) - SHOWN:,} more files like these"] if len(noted) > SHOWN else [])


def end_stopped(root: Path) -> int:
    """Ends it: files that have become plain stay so, others are managed, and no copy is left; how many had one.

    Nothing is done while an undo or another change of the store is under way, nor in a store of another user.
    """
    try:
        with removal.held_store(root), locked_part(root, CONFIG_LOCK, wait=False):
            return settle_notes(Store(root))
    except (BlockingIOError, PermissionError, StoreError):
        return 0


def _taken(copy: str) -> str:
    """Where its copy lies, and what that takes."""
    try:
        blocks = os.lstat(copy).st_blocks
    except OSError:
        return ""
    return f", and left the copy {copy} ({format_size(blocks * BLOCK_BYTES)})"
