"""What is asked of the kernel about devices, in one place, so that tests can describe machines that are not here."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

_MOUNT_NUMBER = re.compile(r"^mnt_id:\s*([0-9]+)$", re.M)


@dataclass(frozen=True)
class System:
    """This machine: /sys, /proc, and the numbers of directories and device nodes."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")

    def device_of(self, directory: Path) -> str | None:
        """MAJ:MIN of the file system of a directory; None where it cannot be looked at."""
        try:
            return _number(os.stat(directory).st_dev)
        except OSError:
            return None

    def node(self, source: str) -> str | None:
        """MAJ:MIN of a block device by its node in /dev; None for anything else."""
        try:
            found = os.stat(source)
        except OSError:
            return None
        return _number(found.st_rdev) if stat.S_ISBLK(found.st_mode) else None

    def mount_number(self, directory: Path) -> int | None:
        """The mount that a directory is reached through: where mounts cover others, its path does not tell."""
        try:
            handle = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            match = _MOUNT_NUMBER.search(read(self.proc / "self/fdinfo" / str(handle)))
        finally:
            os.close(handle)
        return None if match is None else int(match[1])


def read(path: Path) -> str:
    """The stripped text of a file of the kernel, empty where there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"
