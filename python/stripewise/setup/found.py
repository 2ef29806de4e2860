"""Targets from directories: what lies under each, its figures measured or assumed, its class decided."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..cluster import Target
from ..devices import Place, find
from .checks import Spot
from .classes import Decided, assumed, decide
from .document import FoundTarget

#: A measured target from one that is not, for its place.
Measure = Callable[[Target], Target]


def found_targets(
    spots: Sequence[Spot], measure: Measure | None, given: Mapping[str, str], capacities: Mapping[str, int]
) -> list[FoundTarget]:
    """A target for each spot. `given` are classes by name, which count before all that is found."""
    found = []
    for spot in spots:
        place = find(spot.directory)
        # Measured in the directory that is there, on whose file system the target's own will be.
        plain = Target(spot.name, "any", "dir", spot.directory, 0, 0.0, 0.0, 0.0, 0.0)
        target = plain if measure is None else measure(plain)
        decided = _decided(spot.name, place, target, given)
        if measure is None:
            target = assumed(target, decided.klass)
        target = replace(target, klass=decided.klass, path=spot.path, capacity_bytes=capacities.get(spot.name, 0))
        found.append(described(target, spot.directory, place, decided))
    return found


def described(target: Target, directory: Path, place: Place, decided: Decided) -> FoundTarget:
    """A target with what is free at its directory."""
    space = os.statvfs(directory)
    return FoundTarget(
        target, directory, place, decided, space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize
    )


def emulated(targets: Sequence[Target], capacities: Mapping[str, int]) -> list[FoundTarget]:
    """Emulated targets on whatever lies under the nearest directory that is there."""
    found = []
    for target in targets:
        directory = next(path for path in target.path.parents if path.is_dir())
        limited = replace(target, capacity_bytes=capacities.get(target.name, 0))
        why = Decided(target.klass, "emulation", "a directory that is slowed down")
        found.append(described(limited, directory, find(directory), why))
    return found


def as_made(targets: Sequence[Target], directories: Sequence[Path]) -> list[FoundTarget]:
    """The targets of a store, or of a cluster.toml, that is there: they, and what lies under them."""
    found = []
    for target, directory in zip(targets, directories, strict=True):
        there = next(path for path in (directory, *directory.parents) if path.is_dir())
        place = find(there)
        if target.kind == "emulated":
            decided = Decided(target.klass, "emulation", "a directory that is slowed down")
        else:
            decided = decide(place, target.calibration)
            if decided.klass != target.klass:
                decided = Decided(target.klass, "given", "it was decided so before")
        found.append(described(target, there, place, decided))
    return found


def _decided(name: str, place: Place, target: Target, given: Mapping[str, str]) -> Decided:
    decided = decide(place, target.calibration)
    if name not in given:
        return decided
    return Decided(given[name], "given", f"by --class; without it {decided.klass}: {decided.why}")
