"""Descriptions of a store's targets (cluster.toml): files of the user's, which no store takes in and an undo leaves.

The store keeps no name of the file that it was made of, and none need be there: a file is known by what it describes.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ..errors import StripewiseError
from .cluster import Cluster, read_cluster

#: What the name of a description ends with.
ENDING = ".toml"
#: So many such files beside a store are looked at.
FILES_MAX = 64


def describes(path: Path, cluster: Cluster) -> bool:
    """Whether a file describes targets of the store that has these and of no other: all that it has now, or those that
    it had before some were added or removed.
    """
    if path.suffix != ENDING:
        return False
    with contextlib.suppress(StripewiseError, OSError):
        if not path.is_file():
            return False
        # A removed target has its name for ever; its directory may be another store's since.
        living = {os.path.realpath(each.path) for each in cluster.targets if each.state != "removed"}
        removed = {each.name for each in cluster.targets if each.state == "removed"}
        described = {os.path.realpath(each.path): each.name for each in read_cluster(path).targets}
        others = described.keys() - living
        return len(others) < len(described) and all(described[each] in removed for each in others)
    return False


def descriptions(root: Path, cluster: Cluster) -> list[Path]:
    """The files beside a store that describe its targets, by name."""
    return [path for path in sorted(root.parent.glob(f"*{ENDING}"))[:FILES_MAX] if describes(path, cluster)]
