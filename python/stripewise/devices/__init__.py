"""Devices behind directories: the disks at the bottom of whatever lies between, as the kernel describes them."""

from .find import Disk, Place, find, shared
from .mounts import Mount
from .system import System

__all__ = ["Disk", "Mount", "Place", "System", "find", "shared"]
