"""Mounts as /proc/self/mountinfo lists them, and the one that holds a directory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """A line of /proc/self/mountinfo. `device` is MAJ:MIN of the file system; btrfs gives its files other numbers."""

    number: int
    device: str
    point: str
    kind: str
    source: str


def mounts_in(text: str) -> list[Mount]:
    """The mounts in the order of the lines; what is no such line is left out."""
    found = []
    for line in text.splitlines():
        head, separator, tail = line.partition(" - ")
        words, rest = head.split(" "), tail.split(" ")
        if separator and len(words) >= 6 and len(rest) >= 2 and words[0].isdigit():
            found.append(Mount(int(words[0]), words[2], _plain(words[4]), rest[0], _plain(rest[1])))
    return found


def holding(mounts: Sequence[Mount], path: str, number: int | None) -> Mount | None:
    """The mount of this number, which the kernel told for `path`; without one, that of the longest point above it.

    Of several on one point the last covers the others.
    """
    for mount in mounts:
        if mount.number == number:
            return mount
    found: Mount | None = None
    for mount in mounts:
        inside = mount.point == "/" or path == mount.point or path.startswith(mount.point + "/")
        if inside and (found is None or len(mount.point) >= len(found.point)):
            found = mount
    return found


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)
