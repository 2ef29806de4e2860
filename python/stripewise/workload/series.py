"""Series of files: names of one directory that differ in numbers alone, as a program's checkpoints do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import PurePath

_NUMBER = re.compile(r"[0-9]+")


def shape_of(name: str) -> tuple[str, str]:
    """What the names of a series have in common: the directory, and the name with each number as 0."""
    path = PurePath(name)
    return str(path.parent), _NUMBER.sub("0", path.name)


def renumbered(name: str, like: str) -> str | None:
    """The name with the numbers of the name `like`; None where it has not as many."""
    path, numbers = PurePath(name), _NUMBER.findall(PurePath(like).name)
    found = iter(numbers)
    if len(_NUMBER.findall(path.name)) != len(numbers):
        return None
    return str(path.with_name(_NUMBER.sub(lambda _: next(found), path.name)))


def pattern_of(name: str, alike: Iterable[str], quote: Callable[[str], str] = str, any_number: str = "*") -> str | None:
    """The name with `any_number` for each number in which names of its shape differ; all else as `quote` gives it.

    None where nothing but numbers would be left: that would be any name of the directory.
    """
    path = PurePath(name)
    columns = zip(*(_NUMBER.findall(PurePath(each).name) for each in {name, *alike}), strict=True)
    differs = [len(set(column)) > 1 for column in columns]
    kept = [text for text, free in zip(_NUMBER.findall(path.name), differs, strict=True) if not free]
    if not any(char.isalnum() for char in _NUMBER.sub("", path.name) + "".join(kept)):
        return None
    parts, at = [], 0
    for number, free in zip(_NUMBER.finditer(path.name), differs, strict=True):
        parts += [quote(path.name[at : number.start()]), any_number if free else number.group()]
        at = number.end()
    return "".join([quote(f"{path.parent}/" if path.parent != PurePath("/") else "/"), *parts, quote(path.name[at:])])
