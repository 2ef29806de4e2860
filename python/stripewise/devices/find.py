"""From a directory to the disks under it: partitions to their disk, device mapper (LVM, crypt) and md to what they are
made of, loop devices to the disk of their file, btrfs to all its devices. Overlays, memory and network file systems
have no disk that the kernel could name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..units import GIB
from .mounts import Mount, holding, mounts_in
from .system import System, read

#: File systems in memory: their directories have no disk, and are not far away either.
MEMORY_KINDS = ("tmpfs", "ramfs", "devtmpfs")


@dataclass(frozen=True)
class Disk:
    """A device that is made of no other; `rotational` is None where the kernel says nothing."""

    name: str
    model: str
    rotational: bool | None


@dataclass(frozen=True)
class Place:
    """What lies under a directory: its mount, the block device of the file system in words, and the disks below.

    `rotational` is what the disks say: True where one of them turns, None where there is none or none says it.
    """

    directory: Path
    mount: Mount | None
    block: str
    disks: tuple[Disk, ...]

    @property
    def rotational(self) -> bool | None:
        said = [disk.rotational for disk in self.disks if disk.rotational is not None]
        return any(said) if said else None

    @property
    def file_system(self) -> str:
        """What two directories share that share their free space."""
        return "" if self.mount is None else self.mount.device

    @property
    def short(self) -> str:
        """A few words: the names of the disks, else of the file system."""
        if self.disks:
            return "+".join(disk.name for disk in self.disks)
        if self.mount is None:
            return "unknown"
        return "memory" if self.mount.kind in MEMORY_KINDS else self.mount.kind

    @property
    def words(self) -> str:
        """One printable line: device, model, size, whether it turns, file system; what is not known is left out."""
        parts = [self.block] if self.block else []
        if self.mount is not None:
            parts.append(self.mount.kind if parts else f"{self.mount.kind} ({self.mount.source})")
        return "".join(char if char.isprintable() else "?" for char in ", ".join(parts)) or "unknown"


def find(directory: Path, system: System | None = None) -> Place:
    """The place of a directory, which need not be readable; without disks where the kernel names none."""
    return _find(directory, system or System(), frozenset())


def _find(directory: Path, system: System, seen: frozenset[str]) -> Place:
    device = system.device_of(directory)
    if device is None:
        return Place(directory, None, "", ())
    mounts = mounts_in(read(system.proc / "self/mountinfo"))
    mount = holding(mounts, os.path.realpath(directory), system.mount_number(directory))
    entries = list(_entries(device, mount, system))
    disks = {disk.name: disk for entry in entries for disk in _disks(entry, system, seen)}
    block = " + ".join(map(_words, entries))
    return Place(directory, mount, block, tuple(disks[name] for name in sorted(disks)))


def _entries(device: str, mount: Mount | None, system: System) -> Iterator[Path]:
    """The directories in /sys of the devices that a file system lies on, one but for btrfs."""
    entry = system.sys / "dev/block" / device
    if not entry.exists():
        # File systems that may lie on several devices have numbers of their own, and name one device as their source.
        node = None if mount is None or not mount.source.startswith("/dev/") else system.node(mount.source)
        entry = system.sys / "dev/block" / (node or "none")
    if not entry.exists():
        return
    entry = entry.resolve()
    if mount is not None and mount.kind == "btrfs":
        for of in sorted((system.sys / "fs/btrfs").glob("*/devices")):
            members = sorted(member.resolve() for member in of.iterdir())
            if entry in members:
                yield from members
                return
    yield entry


def _disks(entry: Path, system: System, seen: frozenset[str]) -> Iterator[Disk]:
    """Those at the bottom of a device. A loop device whose file's disk is not known stands for itself."""
    disk = entry.parent if (entry / "partition").exists() else entry
    if disk.name in seen:
        return
    seen |= {disk.name}
    below = sorted(member.resolve() for member in _listed(disk / "slaves"))
    backing = read(disk / "loop/backing_file")
    found: list[Disk] = []
    if below:
        found = [one for member in below for one in _disks(member, system, seen)]
    elif backing:
        found = list(_find(Path(backing).parent, system, seen).disks)
    yield from found or [Disk(disk.name, _model(disk), _flag(disk))]


def _words(entry: Path) -> str:
    disk = entry.parent if (entry / "partition").exists() else entry
    given = read(disk / "dm/name") or read(disk / "md/level")
    name = f"{entry.name} ({given})" if given else entry.name
    below = read(disk / "loop/backing_file") or " and ".join(sorted(member.name for member in _listed(disk / "slaves")))
    sectors = read(entry / "size")
    size = f"{int(sectors) * 512 / GIB:.1f} GiB" if sectors.isdigit() else ""
    turns = {False: "not rotational", True: "rotational", None: ""}[_flag(disk)]
    return ", ".join(part for part in (name, _model(disk), f"over {below}" if below else "", size, turns) if part)


def _listed(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def _model(disk: Path) -> str:
    # virtio gives its vendor as a number.
    words = [read(disk / "device" / key) for key in ("vendor", "model")]
    return " ".join(word for word in words if word and not word.startswith("0x"))


def _flag(disk: Path) -> bool | None:
    return {"0": False, "1": True}.get(read(disk / "queue/rotational"))


@dataclass(frozen=True)
class Shared:
    """Directories that have disks, or only a file system, in common; `positions` are theirs in what was given."""

    positions: tuple[int, ...]
    disks: tuple[str, ...]
    one_file_system: bool


def shared(places: Sequence[Place], alone: bool = False) -> list[Shared]:
    """Groups of places, each reached from each of its group by devices in common; those of one place too if `alone`."""
    keys = [
        # Nothing is known to be shared with a place of which nothing is known.
        {disk.name for disk in place.disks} or {f"file system {place.file_system or f'of {number}'}"}
        for number, place in enumerate(places)
    ]
    groups: list[tuple[set[str], list[int]]] = []
    for position, own in enumerate(keys):
        joined = [group for group in groups if group[0] & own]
        groups = [group for group in groups if not group[0] & own]
        members = sorted([position, *(one for _, held in joined for one in held)])
        groups.append((own.union(*(held for held, _ in joined)), members))
    found = []
    for _, members in sorted(groups, key=lambda group: group[1]):
        if alone or len(members) > 1:
            counts = [disk.name for position in members for disk in places[position].disks]
            common = sorted({name for name in counts if counts.count(name) > 1})
            systems = {places[position].file_system for position in members}
            found.append(Shared(tuple(members), tuple(common), len(systems) == 1))
    return found
