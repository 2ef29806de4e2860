"""Other stores that manage the places of a new one: whose files are whose is then decided by the store of each run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import StripewiseError
from ..store.config import StoreConfig, read_store
from ..store.globs import matches

#: So many names of a directory are looked at: a store manages what lies beside it, in a directory of few names.
NAMES_MAX = 4096


def overlaps(store: Path, globs: Sequence[str]) -> list[str]:
    """A warning for each store of the user, or of root, that manages new files where one at `store` does, or would have
    its directory. Stores are looked for beside the places and beside the directories above them.
    """
    # A name that no rule is about, in each place.
    places = [store.parent / "x", *(Path(glob.replace("**", "x").replace("*", "x")) for glob in globs)]
    said = []
    for config in _stores_near(places, store):
        place = next((place for place in places if _manages(config, str(place))), None)
        if place is not None:
            said.append(
                f"{place.parent} lies in what the store {config.root} manages: a new file there goes into whichever of "
                f"the two its program is run with; give directories apart, or a narrower --manage"
            )
    return said


def _stores_near(places: Sequence[Path], but: Path) -> Iterator[StoreConfig]:
    for directory in sorted({parent for place in places for parent in place.parents}):
        for root in _stores_in(directory):
            if root != but:
                try:
                    yield read_store(root)
                except (StripewiseError, OSError):
                    continue


def _stores_in(directory: Path) -> Iterator[Path]:
    ours = (os.geteuid(), 0)
    try:
        with os.scandir(directory) as entries:
            for _, entry in zip(range(NAMES_MAX), entries, strict=False):
                if not entry.is_dir(follow_symlinks=False) or entry.stat(follow_symlinks=False).st_uid not in ours:
                    continue
                if os.path.lexists(os.path.join(entry.path, "store.bin")):
                    yield Path(entry.path)
    except OSError:
        return


def _manages(config: StoreConfig, path: str) -> bool:
    return next((rule.action == "manage" for rule in config.rules if matches(rule.glob, path)), False)
