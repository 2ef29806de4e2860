"""Files of a store by what is known of them: name, size, age, and where they lie.

Linear in the files of the store. A layout is read only of files that all other conditions leave, and only where one is
about it.
"""

from __future__ import annotations

import fnmatch
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import StoreError, UsageError
from ..layout import Layout
from ..units import OFFSET_BYTES_MAX, parse_age, parse_size
from .copies.build import is_container
from .globs import escape
from .placed import PlacedFile, placed_in
from .store import Store, StoredFile

_COUNT = re.compile(r"[0-9]{1,6}", re.ASCII)


@dataclass(frozen=True)
class Span:
    """Whole numbers from `low` to `high`, both included."""

    low: int
    high: int

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    @classmethod
    def around(cls, sign: str, value: int) -> Span:
        """Above `value` (+), below it (-), or itself."""
        if sign == "+":
            return cls(value + 1, OFFSET_BYTES_MAX)
        return cls(0, value - 1) if sign == "-" else cls(value, value)


def _signed(text: str) -> tuple[str, str]:
    text = text.strip()
    return (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)


def size_span(text: str, flag: str) -> Span:
    """Sizes meant by `+1GiB` (larger), `-1GiB` (smaller) or `1GiB` (just that)."""
    sign, number = _signed(text)
    return Span.around(sign, parse_size(number, flag))


def count_span(text: str, flag: str) -> Span:
    """Counts meant by `+4`, `-4` or `4`. Raises UsageError naming `flag`."""
    sign, number = _signed(text)
    if not _COUNT.fullmatch(number):
        raise UsageError(f"{flag}: '{text}' is not a count; write 4, +4 for more or -4 for fewer")
    return Span.around(sign, int(number))


def age_span(text: str, flag: str) -> tuple[str, int]:
    """`+7d` (changed longer ago) or `-7d` (since then): the sign, and the age in seconds. Raises UsageError."""
    sign, age = _signed(text)
    if not sign:
        raise UsageError(f"{flag}: '{text}' has no sign; write +{text} for longer ago, -{text} for since then")
    return sign, parse_age(age, flag)


@dataclass(frozen=True)
class Conditions:
    """All must hold; those that are None or empty do."""

    pattern: str | None = None
    size: Span | None = None
    changed: tuple[str, int] | None = None
    on: frozenset[str] | None = None
    not_on: frozenset[str] = frozenset()
    stripe_count: Span | None = None
    like: Layout | None = None
    #: Containers of copies count, too; they are the store's own, not the user's files.
    copies: bool = False

    @property
    def need_layout(self) -> bool:
        return bool(self.on is not None or self.not_on or self.stripe_count or self.like)

    def of_place(self, file: PlacedFile) -> bool:
        """Whether the conditions on the layout hold."""
        if self.on is not None or self.not_on:
            held = {name for name, count in file.target_bytes.items() if count}
            if (self.on is not None and not held & self.on) or held & self.not_on:
                return False
        if self.stripe_count is not None and not self.stripe_count.holds(file.widest):
            return False
        return self.like is None or _cycles(self.like) == _cycles(file.layout)


def _cycles(layout: Layout) -> list[Any]:
    """A layout without what does not matter: equal neighbours joined, where the last region, which repeats, ends."""
    found: list[Any] = []
    for region in layout.regions:
        if not found or found[-1][1] != region.stripes:
            found.append((region.start, region.stripes))
    return found


@dataclass(frozen=True)
class FoundFile:
    """A file that was found; `placed` only where a condition was about its layout."""

    file: StoredFile
    path: str
    placed: PlacedFile | None

    def as_json(self) -> dict[str, Any]:
        """The file as `store find --json` prints it."""
        row: dict[str, Any] = {"path": self.path, "id": self.file.id, "size": self.file.size}
        if self.placed is not None:
            row |= {"stripe_count": self.placed.widest, "target_bytes": dict(self.placed.target_bytes)}
        return row


def find(store: Store, conditions: Conditions, problems: list[str]) -> Iterator[FoundFile]:
    """The files for which all conditions hold, by path; one that cannot be looked at is a sentence in `problems`."""
    matches = _matcher(conditions.pattern)
    now = time.time()
    for file in store.files():
        if matches is not None and not matches(file.path):
            continue
        if not conditions.copies and is_container(store.root, file.path):
            continue
        # Of one that is damaged nobody knows the size.
        is_known = not file.details.get("error")
        if conditions.size is not None and is_known and not conditions.size.holds(file.size):
            continue
        try:
            if file.details.get("error"):
                raise StoreError(str(file.details["error"]))
            if conditions.changed is not None and not _is_of_age(store, file, conditions.changed, now):
                continue
            placed = placed_in(store, file.id, file.path) if conditions.need_layout else None
        except (StoreError, OSError) as error:
            problems.append(f"{file.path or file.id}: {error}")
            continue
        if placed is None or conditions.of_place(placed):
            yield FoundFile(file, file.path, placed)


def _matcher(pattern: str | None) -> Any:
    """A test of a path: by its name, or by all of it where the pattern has a /."""
    if pattern is None:
        return None
    found = re.compile(fnmatch.translate(pattern))
    if "/" in pattern:
        # As those of templates: from the working directory, which is a path whatever its name holds.
        full = os.path.normpath(os.path.join(escape(os.getcwd()), os.path.expanduser(pattern)))
        from_here = re.compile(fnmatch.translate(full))
        return lambda path: found.match(path) is not None or from_here.match(path) is not None
    return lambda path: found.match(os.path.basename(path)) is not None


def _is_of_age(store: Store, file: StoredFile, changed: tuple[str, int], now: float) -> bool:
    # The times of a managed file are those of its part `head`.
    age_s = now - os.lstat(store.root / "files" / file.id / "head").st_mtime
    sign, wanted_s = changed
    return age_s > wanted_s if sign == "+" else age_s <= wanted_s


def targets_of(store: Store, names: Iterable[str], classes: Iterable[str]) -> frozenset[str]:
    """The targets that are named or of a class; UsageError for one that is not there."""
    known = {target.name: target.klass for target in store.config.cluster.holding}
    chosen = {store.config.target(name).name for name in names}
    there = ", ".join(sorted(set(known.values())))
    for klass in classes:
        if klass not in known.values():
            raise UsageError(f"{store.config.path}: has no target of class '{klass}'; it has {there}")
        chosen |= {name for name, of in known.items() if of == klass}
    return frozenset(chosen)
