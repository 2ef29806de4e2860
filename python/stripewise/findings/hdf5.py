"""Which files are HDF5's: its library makes small requests of its own there, which a program sorts by no loop."""

from __future__ import annotations

from pathlib import PurePath

MAGIC = b"\x89HDF\r\n\x1a\n"
SUFFIXES = (".h5", ".hdf5", ".he5", ".h5p")


def is_hdf5(path: str) -> bool:
    """By its first bytes where the file can be read, else by its name."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return PurePath(path).suffix.lower() in SUFFIXES
