"""The cluster of --emulate: emulated disks and SSDs in subdirectories, as slow and as fast as those of `make demo`."""

from __future__ import annotations

from pathlib import Path

from ..cluster import Target
from .classes import assumed

DISKS, SSDS = 4, 2


def emulated_targets(directory: Path) -> tuple[Target, ...]:
    """Four disks and two SSDs below `directory`."""
    names = [(f"hdd{number}", "hdd") for number in range(DISKS)] + [(f"ssd{number}", "ssd") for number in range(SSDS)]
    homes = directory / "targets"
    return tuple(
        assumed(Target(name, klass, "emulated", homes / name, 0, 0.0, 0.0, 0.0, 0.0), klass) for name, klass in names
    )
