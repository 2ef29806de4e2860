"""Names without ranks (thesis, section 2.6.2): which files of the root and of a child are one, and whose they are.

A number in a name stands for the rank where it is one and the same in all names of its form that the root has, and
another one in all that the child has. Names of files are relative to the directory that holds them all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

RANK = "{rank}"
_NUMBER = re.compile(r"\d+")
Parts = tuple[str, ...]


@dataclass(frozen=True)
class Templates:
    """Of each rank the template of each name, the class of each template (profile.CLASSES)."""

    of: Mapping[int, Mapping[str, str]]
    classes: Mapping[str, str]


def templates_of(names: Mapping[int, Iterable[str]], root: int, shared: Iterable[str] = ()) -> Templates:
    """The templates of names by rank; `root` and its children are all that was traced of the groups.

    Names in `shared` are shared whoever has them: those that several processes open together.
    """
    have = {rank: list(dict.fromkeys(of)) for rank, of in names.items()}
    children = [rank for rank in have if rank != root]
    together = set(shared)
    for child in children:
        together |= set(have[root]) & set(have[child])
    others = {rank: [name for name in of if name not in together] for rank, of in have.items()}
    by_form: dict[str, dict[int, list[tuple[str, Parts]]]] = {}
    for rank, of in others.items():
        for name in of:
            form, parts = _form(name)
            by_form.setdefault(form, {}).setdefault(rank, []).append((name, parts))
    found: dict[int, dict[str, str]] = {rank: {} for rank in have}
    directories = {rank: {above for name in of for above in _above(name)} for rank, of in have.items()}
    for ranks in by_form.values():
        places = _rank_places(ranks, root, directories)
        for rank, rows in ranks.items():
            for name, _ in rows:
                found[rank][name] = _with_rank(name, places)
    classes: dict[str, str] = {}
    for rank, of in have.items():
        for name in of:
            template = found[rank].setdefault(name, name)
            if name in together:
                classes[template] = "shared"
            elif template != name:
                classes[template] = "private"
            else:
                classes.setdefault(template, "root" if rank == root else "shared")
    if not children:
        return Templates(found, {each: "shared" if each in together else "root" for each in classes})
    return Templates(found, classes)


def _form(name: str) -> tuple[str, Parts]:
    """A name with its numbers taken out, and these."""
    return _NUMBER.sub("\0", name), tuple(_NUMBER.findall(name))


def _rank_places(
    ranks: Mapping[int, Sequence[tuple[str, Parts]]], root: int, directories: Mapping[int, set[str]]
) -> frozenset[int]:
    """Which numbers of names of one form stand for the rank."""
    if len(ranks) < 2:
        return _alone(ranks, root, directories)
    count = len(next(iter(ranks.values()))[0][1])
    places = set()
    for place in range(count):
        values = {rank: {parts[place] for _, parts in rows} for rank, rows in ranks.items()}
        one = [next(iter(found)) for found in values.values() if len(found) == 1]
        if len(one) == len(ranks) and len(set(one)) == len(ranks):
            places.add(place)
    return frozenset(places)


def _alone(
    ranks: Mapping[int, Sequence[tuple[str, Parts]]], root: int, directories: Mapping[int, set[str]]
) -> frozenset[int]:
    """Names that one process alone has: what is a child's rank in all of them stands for it, but in the name of a
    directory that others use, too."""
    rank, rows = next(iter(ranks.items()))
    if rank == root:
        return frozenset()
    count = len(rows[0][1])
    others = {above for other, of in directories.items() if other != rank for above in of}
    return frozenset(
        place
        for place in range(count)
        if all(int(parts[place]) == rank and _component(name, place) not in others for name, parts in rows)
    )


def _above(name: str) -> list[str]:
    """The directories that a name lies in."""
    return [name[: match.start()] for match in re.finditer("/", name)]


def _component(name: str, place: int) -> str:
    """A name up to the end of the component that has this number in it."""
    end = list(_NUMBER.finditer(name))[place].end()
    stop = name.find("/", end)
    return name if stop < 0 else name[:stop]


def _with_rank(name: str, places: frozenset[int]) -> str:
    if not places:
        return name
    parts: list[str] = []
    end = 0
    for number, match in enumerate(_NUMBER.finditer(name)):
        if number in places:
            parts += [name[end : match.start()], RANK]
            end = match.end()
    return "".join([*parts, name[end:]])


def base_of(names: Iterable[str]) -> str:
    """The directory that holds all of these files; "/" where there is no other, or none."""
    # What has the rank in it stays in the names.
    places = {os.path.dirname(name.split(RANK)[0]) for name in names if name.startswith("/")}
    return os.path.commonpath(places) if places else "/"


def relative(name: str, base: str) -> str:
    """A name below `base`; `.` is the directory itself."""
    parts = [part for part in os.path.relpath(name if name.startswith("/") else f"/{name}", base).split("/") if part]
    return "/".join(part for part in parts if part != "..") or "."
