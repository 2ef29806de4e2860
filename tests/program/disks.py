"""File systems of a test's own, in images on loop devices: what needs root and mkfs, and is skipped elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rig import execute


def needs_loop_devices(what: str, *tools: str) -> None:
    """Skips the test, which is about `what`, where such file systems cannot be made."""
    missing = [tool for tool in (*tools, "losetup") if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing or not Path("/dev/loop-control").exists():
        pytest.skip(f"not run: {what} needs root, loop devices and {', '.join(tools)}")


def mount(image: Path, place: Path) -> None:
    """The file system in an image."""
    place.mkdir(parents=True, exist_ok=True)
    execute(["mount", "-o", "loop", image, place])


@contextmanager
def ext4(image: Path, size: int, place: Path) -> Iterator[None]:
    """A new ext4 of `size` bytes in `image`, mounted at `place`; what is mounted there at the end no longer is."""
    image.touch()
    os.truncate(image, size)
    execute(["mkfs.ext4", "-q", "-F", image])
    mount(image, place)
    try:
        yield
    finally:
        execute(["umount", "-l", place], code=None)
