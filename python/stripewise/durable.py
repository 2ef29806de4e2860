"""Replacing a file so that a power cut leaves the old one or the new one, never an empty one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write_durably(path: Path, text: str) -> None:
    """Writes `text` beside `path`, makes it durable, renames it there and makes the name durable.

    Raises OSError that names `path`; whatever ends it early, nothing is left beside.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            # Nobody knows the temporary name, and a full disk gives none.
            error.filename = os.fspath(path)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
