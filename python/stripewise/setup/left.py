"""A cluster.toml that stands where init would write one: that of an earlier init, as an undo leaves it.

Where it describes just the targets that are asked for, the new store takes them and their figures from it, and it stays
as it is: nothing is measured twice, and what its user has edited counts.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from ..cluster import Cluster, read_cluster
from ..errors import StripewiseError
from .request import Request


@dataclass(frozen=True)
class Left:
    """The cluster that is taken, or why the file that is there does not do; neither where there is none."""

    cluster: Cluster | None = None
    why: str = ""


def cluster_left(asked: Request) -> Left:
    """What the cluster.toml that init was to write holds already."""
    path = asked.cluster_file
    try:
        found = path.lstat()
    except OSError:
        return Left()
    if not stat.S_ISREG(found.st_mode) or found.st_uid not in (0, os.geteuid()):
        return Left(why="is not a file of yours")
    try:
        cluster = read_cluster(path)
    except StripewiseError:
        return Left(why="describes no targets that can be read")
    why = _other_than(cluster, asked)
    return Left(why=why) if why else Left(cluster)


def _other_than(cluster: Cluster, asked: Request) -> str:
    """In what the targets differ from those that are asked for; empty where in nothing."""
    homes = [home for _, home in asked.homes()]
    kind = "emulated" if asked.emulate else "dir"
    there = [target.path for target in cluster.targets]
    if sorted(there) != sorted(homes):
        odd = next((path for path in there if path not in homes), None)
        return f"describes another target, {odd}" if odd is not None else "describes fewer targets"
    for target in cluster.targets:
        if target.kind != kind or not target.is_active:
            return f"describes {target.name} as {target.kind}, {target.state}"
        if asked.classes.get(target.name, target.klass) != target.klass:
            return f"has {target.name} in the class {target.klass}"
        if asked.capacities.get(target.name, target.capacity_bytes) != target.capacity_bytes:
            return f"has another capacity_bytes for {target.name}"
    return ""
