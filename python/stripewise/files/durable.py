"""Replacing a file so that a power cut leaves the old one or the new one, never an empty one."""

from __future__ import annotations

from pathlib import Path

from .parts import replace_part


def write_durably(path: Path, text: str) -> None:
    """Writes `text` beside `path`, makes it durable, renames it there and makes the name durable.

    Raises OSError that names `path`; whatever ends it early, nothing is left beside.
    """
    replace_part(path.parent, path.name, text)
