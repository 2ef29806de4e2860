"""Plain files where a new store manages new ones, as an undo leaves them: they stay plain until they are adopted."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from ..store.globs import matches
from ..units import command_line

#: So many files are looked at.
FILES_MAX = 4096


def plain_files(store: Path, globs: Sequence[str], but: Collection[Path]) -> list[str]:
    """A sentence on the plain files that the globs match, outside of the store and of what is in `but`; none where
    there are no such files.
    """
    found: list[str] = []
    looked_at = 0
    apart = {os.fspath(path) for path in (store, *but)}
    for base in sorted({glob.split("*")[0].rpartition("/")[0] or "/" for glob in globs}):
        for directory, below, names in os.walk(base):
            below[:] = [name for name in below if os.path.join(directory, name) not in apart]
            for path in (os.path.join(directory, name) for name in names):
                looked_at += 1
                if path not in apart and not os.path.islink(path) and any(matches(glob, path) for glob in globs):
                    found.append(path)
            if looked_at > FILES_MAX:
                return [_told(store, found, "more than ")] if found else []
    return [_told(store, found)] if found else []


def _told(store: Path, found: Sequence[str], most: str = "") -> str:
    adopt = command_line(["stripewise", "store", "adopt", "--store", str(store), min(found)])
    return f"{most}{len(found):,} file(s) where it manages new ones are plain and stay so; to take one in: {adopt}"
