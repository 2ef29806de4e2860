"""The copies in use that a store has of some files: whoever measures or plans these must know of them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ...files.spelling import path_meant
from ..store import Store
from .listed import Copies, copies_of


def place_of(path: str) -> str:
    """The one name of a file among those that lead to it: of a managed one that of its link, which leads nowhere."""
    if os.path.islink(path) and not os.path.exists(path):
        return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return os.path.realpath(path)


def copies_of_files(store: Store, paths: Iterable[str]) -> dict[str, Copies]:
    """By path, of the files that have some which programs use. Raises StoreError."""
    known = {place_of(each.path): each for each in copies_of(store) if not each.is_stale}
    places = {path: place_of(path_meant(path)) for path in paths} if known else {}
    return {path: known[place] for path, place in places.items() if place in known}
