"""Who makes the requests of a path, as a profile can say it: by marks behind operations, and behind kinds of sessions
where some ranks alone have the file open (ours: the thesis makes all requests on shared files by all ranks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..extraction.calls import Int
from ..extraction.generic_path import ALL, CHILDREN, FIRST_GROUP, ROOT, SELF, Gwp
from ..marks import GROUP_MARK, OTHERS_MARK, ROOT_MARK
from ..operations import by_number

#: Spans of ranks are told in so many parts of all (docs/formats.md, Workload path).
PARTS = 1 << 16
Groups = list[dict[str, list[int]]]


@dataclass(frozen=True, eq=False)
class Told:
    """A path whose sessions are each of one `who`, that of their open."""

    gwp: Gwp
    #: By row the `who` that stands behind its operation: ALL where all who have the file open make it.
    mark: Int
    #: The groups as a profile describes them; None: they are no groups that other numbers of processes have, too.
    groups: Groups | None


def mark_text(who: int) -> str:
    """The mark of a `who` in a path (generic_path.py)."""
    if who >= FIRST_GROUP:
        return f"{GROUP_MARK}{who - FIRST_GROUP + 1}"
    return {ALL: "", ROOT: ROOT_MARK, CHILDREN: OTHERS_MARK}[who]


def groups_of(groups: Sequence[Sequence[int]], processes: int) -> Groups | None:
    """Groups of children for any number of processes: runs of ranks as shares of all, else ranks by their rest divided
    by one number; None where they are neither."""
    if all(len(each) == max(each) - min(each) + 1 for each in groups):
        # The ranks between the root and the first child that is told are the first group's.
        lows = [0 if min(each) == 1 else min(each) * PARTS // processes for each in groups]
        return [{"span": [low, (max(each) + 1) * PARTS // processes]} for low, each in zip(lows, groups, strict=True)]
    step = next(each[1] - each[0] for each in groups if len(each) > 1)
    for each in groups:
        if list(each) != [rank for rank in range(1, processes) if rank % step == each[0] % step]:
            return None
    return [{"congruent": [step, each[0] % step]} for each in groups]


def told_groups(gwp: Gwp) -> Groups | None:
    """The groups of a path for any number of processes: none where all children do alike, None as of `groups_of`."""
    return groups_of([each.ranks for each in gwp.groups], gwp.processes) if len(gwp.groups) > 1 else []


def told(gwp: Gwp) -> Told:
    """The path as a profile tells it. Of groups that cannot be described the largest stands for all children."""
    groups = told_groups(gwp)
    if groups is None:
        largest = FIRST_GROUP + max(range(len(gwp.groups)), key=lambda at: len(gwp.groups[at].ranks))
        gwp = gwp.take((gwp.who < FIRST_GROUP) | (gwp.who == largest))
        gwp = replace(gwp, who=np.where(gwp.who == largest, CHILDREN, gwp.who))
    is_root = np.array([each.file_class == "root" for each in gwp.files], np.bool_)
    gwp = replace(gwp, who=np.where(is_root[gwp.file], ALL, gwp.who))
    if not (gwp.who != ALL).any():
        return Told(gwp, np.full(len(gwp), ALL, np.int64), groups)
    gwp = _together(gwp)
    opened = _opened(gwp)
    # Of a session that the root and a group have, but not all, each has its own.
    key = np.where((opened == ALL) | (gwp.session < 0), 0, gwp.who)
    session = np.where(gwp.session < 0, -1, gwp.session * (FIRST_GROUP + len(gwp.groups)) + key)
    gwp = replace(gwp, session=session)
    mark = np.where(gwp.who == _opened(gwp), ALL, gwp.who)
    collective = np.zeros(256, np.bool_)
    collective[[number for number, each in by_number().items() if each.collective]] = True
    return Told(gwp, np.where(collective[gwp.op] & (gwp.session >= 0), ALL, mark), groups)


def _opened(gwp: Gwp) -> Int:
    """By row the `who` of its session's first row, the open; ALL outside sessions."""
    inside = np.flatnonzero(gwp.session >= 0)
    found = np.full(len(gwp), ALL, np.int64)
    if len(inside):
        _, first, back = np.unique(gwp.session[inside], return_index=True, return_inverse=True)
        found[inside] = gwp.who[inside[first]][back]
    return found


def _together(gwp: Gwp) -> Gwp:
    """Sessions of several ranks that are not all (on communicators that leave ranks out) are told as of all; what
    stands in them once for the root and again for a group, once."""
    alone = np.array([each.kind == SELF for each in gwp.communicators] + [True], np.bool_)
    opened = _opened(gwp)
    several = (gwp.session >= 0) & (opened != ALL) & ~alone[gwp.comm]
    of = np.isin(gwp.session, np.unique(gwp.session[several]))
    gwp = replace(gwp, who=np.where(of & (gwp.who == opened), ALL, gwp.who))
    return gwp.take(~of | (gwp.who == ALL))
