"""Replacing a file so that a power cut leaves the old one or the new one, never an empty one."""

from __future__ import annotations

import os
from pathlib import Path

from .parts import temporary_beside


def write_durably(path: Path, text: str) -> None:
    """Writes `text` beside `path`, makes it durable, renames it there and makes the name durable.

    Raises OSError that names `path`; whatever ends it early, nothing is left beside.
    """
    try:
        with temporary_beside(path) as (temporary, handle):
            with open(handle, "w", encoding="utf-8", closefd=False) as file:
                file.write(text)
                file.flush()
            # In a private store nothing may be written by everybody, whatever the umask.
            os.fchmod(handle, os.fstat(handle).st_mode & 0o775)
            os.fsync(handle)
            temporary.replace(path)
    except OSError as error:
        # Nobody knows the temporary name, and a full disk gives none.
        error.filename = os.fspath(path)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
