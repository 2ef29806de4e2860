"""Files whose name is gone: removed or renamed without the library. They keep their room until gc is told otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from .. import native
from ..units import format_size, quoted
from .store import Store

#: Of so many files the names are looked at where only their sum matters: each look is a system call or two.
NAMES_MAX = 100_000


@dataclass(frozen=True)
class Nameless:
    """Ids and bytes of the files whose recorded name leads to them no more; `is_all`: no name was left out."""

    ids: frozenset[str]
    bytes: int
    is_all: bool

    @property
    def what(self) -> str:
        """As a clause."""
        at_least = "" if self.is_all else "at least "
        whose = "a file whose name is gone" if len(self.ids) == 1 else f"{len(self.ids):,} files whose names are gone"
        return f"{at_least}{format_size(self.bytes)} belong to {whose} (rm or mv without the library)"


def nameless(store: Store, most: int = NAMES_MAX) -> Nameless:
    """Looks at the names of at most so many files. A file that was only renamed counts, too: gc tells them apart."""
    found = native.call("store_nameless", str(store.root), most)
    return Nameless(
        frozenset(str(file["id"]) for file in found["files"]),
        sum(int(file["size"]) for file in found["files"]),
        found["looked_at"] == found["of"],
    )


def cure(store: Store) -> str:
    """How their room is had back."""
    root = quoted(store.root)
    return f"'stripewise store gc {root}' tells which were only moved, with --purge --older-than 0s it frees the others"
