"""The layout that `tune` keeps, below its table: where the regions of the largest files lie, and why."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ...files.spelling import path_meant
from ...plan import FilePlan, Plan
from ...store.globs import escape, matches
from ...units import format_size
from ..output import printable, regions_drawn, regions_text, wrapped

#: The class of every target.
Classes = Mapping[str, str]

#: So many files are told, so many rows of regions of each, and so many reasons.
FILES_SHOWN, ROWS_SHOWN, REASONS_SHOWN = 2, 4, 2


def kept_layout(
    plan: Plan, anew: Mapping[str, FilePlan] | None = None, classes: Classes | None = None
) -> Iterator[str]:
    """Lines on the files with most bytes, as 'store layout' has them; the others are counted. Files that the program
    makes `anew` have their globs' names, for the next run's have others; `classes` are those of targets.
    """
    globs = {file.path: glob for glob, file in (anew or {}).items()}
    # One that is gone, as its name is of one run alone, is told by its glob.
    told = [
        file
        for file in plan.files
        if file.path in globs
        or os.path.lexists(path_meant(file.path))
        or not any(matches(glob, file.path) for glob in globs.values())
    ]
    order = sorted(told, key=lambda file: -file.size)
    yield f"the layout that stays, of {plan.policy}:"
    for file in order[:FILES_SHOWN]:
        glob = globs.get(file.path, file.path)
        name = file.path if glob in (file.path, escape(path_meant(file.path))) else f"new files {glob}"
        yield f"{printable(name)}: {format_size(file.size)}, {regions_text(file.layout, file.size)}"
        yield from regions_drawn(file.layout, ROWS_SHOWN, file.size)
        # A reason stands at each region, most of them at many.
        bytes_of: Counter[str] = Counter()
        kinds: dict[str, set[str]] = {}
        for region in file.regions:
            if region.reason and region.start < file.size:
                bytes_of[region.reason] += min(region.len, file.size - region.start)
                kinds[region.reason] = {(classes or {}).get(name, name) for name, _ in region.stripes}
        for reason, count in _told(bytes_of.most_common(), kinds):
            yield wrapped(f"{format_size(count)}: {printable(reason)}", "  ")
        if len(bytes_of) > REASONS_SHOWN:
            yield f"  and {len(bytes_of) - REASONS_SHOWN:,} more reason(s)"
    if len(order) > FILES_SHOWN:
        yield f"and {len(order) - FILES_SHOWN:,} further file(s), none larger"


def _told(reasons: Sequence[tuple[str, int]], kinds: Mapping[str, set[str]]) -> list[tuple[str, int]]:
    """Those of most bytes; where they are all of the same classes, the last is the first of other ones."""
    told, rest = list(reasons[:REASONS_SHOWN]), reasons[REASONS_SHOWN:]
    if told and all(kinds[reason] == kinds[told[0][0]] for reason, _ in told):
        told[-1:] = [next((each for each in rest if kinds[each[0]] != kinds[told[0][0]]), told[-1])]
    return told
