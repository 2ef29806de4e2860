"""The templates that lay out files that a program makes anew.

A new file gets its layout when it is made, by its name then: a checkpoint's number changes from run to run, and a file
that is renamed into place was made under another name.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..files.spelling import path_meant, spelled
from ..plan import Plan
from ..plan.made_as import glob_problem
from ..store.globs import escape, matches
from ..workload.made import Made
from ..workload.series import days_around, pattern_of, renumbered, shape_of

#: What stands in a glob for a number that changes: a digit and whatever follows, so not q*.dat, which takes
#: quite-different.dat for one of q1.dat and q2.dat.
ANY_NUMBER = "[0-9]*"


def globs_of(
    made: Iterable[str],
    known: Iterable[str],
    first: Mapping[str, str],
    days: frozenset[datetime.date] | None = None,
) -> dict[str, str]:
    """For files that are made anew the globs of the names that they are made with, each with a file that it stands for.

    Numbers in which `known` names that files were made with differ are `ANY_NUMBER`, within a directory and where
    something else than numbers is left of the name, and so are the `days` of the run (None: it is today's), with the
    time of day beside them; `first` has the names that renamed files were made with.
    """
    days = days_around(time.time()) if days is None else days
    alike: dict[tuple[str, str], set[str]] = {}
    for name in map(path_meant, known):
        alike.setdefault(shape_of(name), set()).add(name)
    found: dict[str, str] = {}
    for name in sorted(set(made)):
        begun = path_meant(first.get(name, name))
        glob = pattern_of(begun, alike.get(shape_of(begun), set()), escape, ANY_NUMBER, days) or escape(begun)
        # A name with a newline has no template, for a plan may not hold it.
        if glob_problem(glob) is None:
            found.setdefault(glob, name)
    return found


def of_series(paths: Iterable[str], globs: Iterable[str], first: Mapping[str, str]) -> frozenset[str]:
    """Those of the files that are of a series, by the `globs` of `globs_of`: numbers in their names change."""
    series = [glob for glob in globs if ANY_NUMBER in glob]
    return frozenset(path for path in paths if any(matches(glob, first.get(path, path)) for glob in series))


def passing_files(plan: Plan, made: Made) -> frozenset[str]:
    """The planned files that later runs do not have, by one run that made them anew: their names hold its day, or
    differ in numbers alone from those of files that it did not make, or that are gone.
    """
    anew = {file.path for file in plan.files} & made.anew
    own = {made.first.get(file.path, file.path) for file in plan.files} | set(made.first.values())
    gone = {name for name in made.names if not os.path.lexists(path_meant(name))}
    others = gone | (names_beside(anew, made.first) - made.names)
    return of_series(anew, globs_of(anew, others - own, made.first, made.days), made.first)


def names_beside(made: Iterable[str], first: Mapping[str, str]) -> set[str]:
    """The names that files beside these were made with: others of their directories that differ in numbers alone, such
    as earlier checkpoints that this run did not touch.
    """
    shapes: dict[tuple[str, str], list[str]] = {}
    for name in made:
        shapes.setdefault(shape_of(name), []).append(name)
    found: set[str] = set()
    for directory in {directory for directory, _ in shapes}:
        # A trace may be of another machine, or the directory gone.
        with contextlib.suppress(OSError), os.scandir(path_meant(directory)) as entries:
            for entry in entries:
                path = spelled(os.path.join(directory, entry.name))
                for name in shapes.get(shape_of(path), ())[:1]:
                    # What was renamed into place was made under another name, with the same numbers.
                    found.add(path if name not in first else renumbered(first[name], path) or path)
    return found


def as_made(plan: Plan, made: Made) -> Plan:
    """The plan with the globs of the files that its run made anew."""
    planned = {file.path for file in plan.files}
    anew = planned & made.anew
    globs = globs_of(anew, made.names | names_beside(anew, made.first), made.first, made.days)
    shown = {path: glob for glob, path in globs.items()}
    return replace(plan, files=tuple(replace(file, made_as=shown.get(file.path, "")) for file in plan.files))
