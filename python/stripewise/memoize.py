"""What is derived from an object's data and takes long is derived once, and kept for as long as the object."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Memoized:
    """A base of dataclasses whose data do not change."""

    _derived: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def memoized(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` returned the first time that it was asked for under `key`; what it raises is not kept."""
        if key not in self._derived:
            self._derived[key] = make()
        kept: T = self._derived[key]
        return kept
