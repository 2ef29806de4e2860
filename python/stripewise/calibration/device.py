"""What lies under a directory, in words: the block device as /sys describes it, else the file system."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ..units import GIB

_SYS = Path("/sys/dev/block")


@dataclass(frozen=True)
class Mount:
    """A line of /proc/self/mountinfo."""

    device: str
    point: str
    kind: str
    source: str


def describe(directory: Path) -> str:
    """One line: device, model, size, whether it turns, file system. What the kernel does not tell is left out."""
    try:
        number = os.stat(directory).st_dev
    except OSError:
        return "unknown"
    mount = _mount(directory, number)
    block = _SYS / f"{os.major(number)}:{os.minor(number)}"
    if not block.exists() and mount is not None and mount.source.startswith("/dev/"):
        # File systems over several devices have numbers of their own; the first device stands for all.
        try:
            real = os.stat(mount.source).st_rdev
            block = _SYS / f"{os.major(real)}:{os.minor(real)}"
        except OSError:
            pass
    parts = _block(block) if block.exists() else []
    if mount is not None:
        parts.append(mount.kind if parts else f"{mount.kind} ({mount.source})")
    return _printable(", ".join(parts)) or "unknown"


def _block(entry: Path) -> list[str]:
    disk = entry.resolve()
    name = disk.name
    if (disk / "partition").exists():
        disk = disk.parent
    words = [_read(disk / "device" / key) for key in ("vendor", "model")]
    # virtio gives its vendor as a number.
    model = " ".join(word for word in words if word and not word.startswith("0x"))
    backing = _read(disk / "loop" / "backing_file")
    sectors = _read(entry.resolve() / "size")
    rotational = {"0": "not rotational", "1": "rotational"}.get(_read(disk / "queue" / "rotational"), "")
    size = f"{int(sectors) * 512 / GIB:.1f} GiB" if sectors.isdigit() else ""
    over = f"over {backing}" if backing else ""
    return [part for part in (name, model, over, size, rotational) if part]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _mount(directory: Path, number: int) -> Mount | None:
    """The mount that holds `directory`: of those of its device, the one with the longest point."""
    wanted = f"{os.major(number)}:{os.minor(number)}"
    path = os.path.realpath(directory)
    found: Mount | None = None
    for line in _read(Path("/proc/self/mountinfo")).splitlines():
        words = line.split(" ")
        if " - " not in line or len(words) < 10 or words[2] != wanted:
            continue
        tail = line.split(" - ", 1)[1].split(" ")
        mount = Mount(words[2], words[4].replace("\\040", " "), tail[0], tail[1])
        inside = mount.point == "/" or path == mount.point or path.startswith(mount.point + "/")
        if inside and (found is None or len(mount.point) >= len(found.point)):
            found = mount
    return found


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
