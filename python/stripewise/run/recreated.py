"""The templates that lay out files that a program makes anew.

A new file gets its layout when it is made, by its name then: a checkpoint's number changes from run to run, and a file
that is renamed into place was made under another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import PurePath

from ..plan import Plan
from ..plan.made_as import glob_problem
from ..store.globs import escape
from ..workload.made import Made

_NUMBER = re.compile(r"\d+")


def globs_of(made: Iterable[str], known: Iterable[str], first: Mapping[str, str]) -> dict[str, str]:
    """For files that are made anew the globs of the names that they are made with, each with a file that it stands for.

    Numbers in which `known` names that files were made with differ are `*`, within a directory and where something else
    than numbers is left of the name; `first` has the names that renamed files were made with.
    """
    alike: dict[tuple[str, str], set[str]] = {}
    for name in known:
        alike.setdefault(_shape(name), set()).add(name)
    found: dict[str, str] = {}
    for name in sorted(set(made)):
        begun = first.get(name, name)
        glob = _glob(begun, alike.get(_shape(begun), set()))
        # A name with a newline has no template, for a plan may not hold it.
        if glob_problem(glob) is None:
            found.setdefault(glob, name)
    return found


def as_made(plan: Plan, made: Made) -> Plan:
    """The plan with the globs of the files that its run made anew."""
    planned = {file.path for file in plan.files}
    globs = globs_of(planned & made.anew, made.names, made.first)
    shown = {path: glob for glob, path in globs.items()}
    return replace(plan, files=tuple(replace(file, made_as=shown.get(file.path, "")) for file in plan.files))


def _shape(name: str) -> tuple[str, str]:
    path = PurePath(name)
    return str(path.parent), _NUMBER.sub("0", path.name)


def _glob(name: str, alike: Iterable[str]) -> str:
    """The pattern of a name: the numbers in which others of its shape differ are anything."""
    path = PurePath(name)
    columns = zip(*(_NUMBER.findall(PurePath(each).name) for each in {name, *alike}), strict=True)
    differs = [len(set(column)) > 1 for column in columns]
    kept = [text for text, free in zip(_NUMBER.findall(path.name), differs, strict=True) if not free]
    if not any(char.isalnum() for char in _NUMBER.sub("", path.name) + "".join(kept)):
        # It would match every name of the directory.
        return escape(name)
    parts, at = [], 0
    for number, free in zip(_NUMBER.finditer(path.name), differs, strict=True):
        parts += [escape(path.name[at : number.start()]), "*" if free else number.group()]
        at = number.end()
    return "".join([escape(f"{path.parent}/" if path.parent != PurePath("/") else "/"), *parts, escape(path.name[at:])])
