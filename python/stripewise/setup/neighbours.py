"""Other stores that manage the places of a new one: whose files are whose is then decided by the store of each run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import StripewiseError
from ..store.config import StoreConfig, read_store
from ..store.globs import matches

#: So many names of a directory are looked at: a store manages what lies beside it, in a directory of few names.
NAMES_MAX = 4096
#: So far below a directory that is managed stores are looked for.
LEVELS_MAX = 4


def overlaps(store: Path, globs: Sequence[str]) -> list[str]:
    """A warning for each store of the user, or of root, that manages new files where one at `store` does, or would have
    its directory. Stores are looked for beside the places and beside the directories above them.
    """
    # A name that no rule is about, in each place.
    places = [store.parent / "x", *map(_inside, globs)]
    said = []
    near = {config.root: config for config in (*_stores_near(places, store), *_stores_below(globs, store))}
    for config in near.values():
        place = next((place for place in places if _manages(config, str(place))), None)
        if place is not None:
            said.append(
                f"{place.parent} lies in what the store {config.root} manages: a new file there goes into whichever of "
                f"the two its program is run with; give directories apart, or a narrower --manage"
            )
            continue
        theirs = (_inside(rule.glob) for rule in config.rules if rule.action == "manage")
        inner = next((place for place in theirs if any(matches(glob, str(place)) for glob in globs)), None)
        if inner is not None:
            said.append(
                f"{inner.parent}, whose new files the store {config.root} manages, lies in what this store manages: a "
                f"new file there goes into whichever of the two its program is run with; give directories apart, or a "
                f"narrower --manage"
            )
    return said


def _inside(glob: str) -> Path:
    """A name that no rule is about, in the place of a glob."""
    return Path(glob.replace("**", "x").replace("*", "x"))


def _stores_below(globs: Sequence[str], but: Path) -> Iterator[StoreConfig]:
    """Stores of the user, or of root, in the first levels of directories that globs are of."""
    left = NAMES_MAX
    level = sorted({Path(glob.split("*")[0].rpartition("/")[0] or "/") for glob in globs if "**" in glob})
    for _ in range(LEVELS_MAX):
        below: list[Path] = []
        for directory in level:
            for path, is_store in _directories_in(directory):
                left -= 1
                if left < 0:
                    return
                if not is_store:
                    below.append(path)
                elif path != but:
                    with contextlib.suppress(StripewiseError, OSError):
                        yield read_store(path)
        level = below


def _stores_near(places: Sequence[Path], but: Path) -> Iterator[StoreConfig]:
    for directory in sorted({parent for place in places for parent in place.parents}):
        for root in _stores_in(directory):
            if root != but:
                try:
                    yield read_store(root)
                except (StripewiseError, OSError):
                    continue


def _stores_in(directory: Path) -> Iterator[Path]:
    return (path for path, is_store in _directories_in(directory) if is_store)


def _directories_in(directory: Path) -> Iterator[tuple[Path, bool]]:
    """Those of the user, and of root, and whether they are stores."""
    ours = (os.geteuid(), 0)
    try:
        with os.scandir(directory) as entries:
            for _, entry in zip(range(NAMES_MAX), entries, strict=False):
                if not entry.is_dir(follow_symlinks=False) or entry.stat(follow_symlinks=False).st_uid not in ours:
                    continue
                yield Path(entry.path), os.path.lexists(os.path.join(entry.path, "store.bin"))
    except OSError:
        return


def _manages(config: StoreConfig, path: str) -> bool:
    return next((rule.action == "manage" for rule in config.rules if matches(rule.glob, path)), False)
