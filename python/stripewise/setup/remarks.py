"""What is worth knowing about the targets that were found, each in a sentence that says what it means."""

from __future__ import annotations

from collections.abc import Sequence

from ..cluster import Target
from ..devices import Place, find, shared
from ..devices.find import MEMORY_KINDS, Shared
from .document import FoundTarget

#: So many names are listed of those that share a device.
NAMES_SHOWN = 8


def remarks(found: Sequence[FoundTarget]) -> list[str]:
    """Warnings about targets that are real."""
    if found[0].is_emulated:
        return []
    said = [] if len(found) > 1 else ["one target: there is nothing to choose between; give directories on other disks"]
    said += [
        f"{one.target.name} lies in memory ({one.place.mount.kind}): what is on it is lost when the machine stops"
        for one in found
        if one.place.mount is not None and one.place.mount.kind in MEMORY_KINDS
    ]
    return said + _of_shared([one.target.name for one in found], [one.place for one in found])


def on_one_device(targets: Sequence[Target], name: str | None = None) -> list[str]:
    """Warnings about directories, of those that are no emulated targets, on one device; of those with `name` alone."""
    real = [target for target in targets if target.kind == "dir"]
    names, places = [target.name for target in real], [find(target.path) for target in real]
    return _of_shared(names, places, name)


def modelled_apart(targets: Sequence[Target]) -> list[str]:
    """What a gain by the model is worth where directories share a device, which it takes for one each: a sentence of
    each such device. Directories that are not on this machine share nothing that is known.
    """
    real = [target for target in targets if target.kind == "dir" and target.path.is_dir()]
    names, places = [target.name for target in real], [find(target.path) for target in real]
    return [
        f"{_listed([names[position] for position in group.positions])} share {_device(group)}, and the model takes "
        "them as separate devices: what it gains by using them at once is not there"
        for group in shared(places)
    ]


def _device(group: Shared) -> str:
    if not group.disks:
        return "one file system, of which no disk is known"
    return f"the device {group.disks[0]}" if len(group.disks) == 1 else f"the devices {_listed(group.disks)}"


def _of_shared(targets: Sequence[str], places: Sequence[Place], name: str | None = None) -> list[str]:
    said = []
    for group in shared(places):
        if name is not None and name not in [targets[position] for position in group.positions]:
            continue
        names = _listed([targets[position] for position in group.positions])
        space = "and one free space " if group.one_file_system else ""
        said.append(
            f"{names} share {_device(group)}: they have one queue {space}between them, so no layout over them is "
            f"faster than another; give one directory for each device, or try layouts out with --emulate"
        )
    return said


def _listed(names: Sequence[str]) -> str:
    if len(names) > NAMES_SHOWN:
        names = [*names[: NAMES_SHOWN - 1], f"{len(names) - NAMES_SHOWN + 1:,} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
