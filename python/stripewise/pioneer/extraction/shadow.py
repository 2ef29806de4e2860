"""Root and children compared by their shadows (thesis, section 2.6.2): operation and file name without the rank.

What a child makes as well is mimicked; what it does not is the root's alone. Requests match inside of sessions that
match, so that whoever makes a request has the file open. Files on which both make the same calls in the same order are
matched call by call (ours), whatever either does on others in between.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ... import native
from .calls import Bool, Code, Int
from .records import Records

UInt = npt.NDArray[np.uint64]
#: Sizes are compared as well where as many requests match with them: of two alike it tells which is the root's alone.
_SIZE_MIX = np.uint64(0x9E3779B97F4A7C15)


def match(root: Records, root_file: Code, child: Records, child_file: Code, ends: Bool) -> Int:
    """For each request of the root the child's that mimics it; -1: none. Files are numbers of templates.

    `ends` marks the numbers of operations that open and close.
    """
    shadows = [_shadow(root, root_file), _shadow(child, child_file)]
    found = _matched(*shadows)
    if np.any(found < 0):
        found = _file_by_file(shadows[0], shadows[1], root_file, child_file)
        taken = np.zeros(len(child), np.bool_)
        taken[found[found >= 0]] = True
        mine, theirs = np.flatnonzero(found < 0), np.flatnonzero(~taken)
        rest = _of_the_rest(root.take(mine), shadows[0][mine], child.take(theirs), shadows[1][theirs])
        hit = rest >= 0
        found[mine[hit]] = theirs[rest[hit]]
    return _within_sessions(root, child, found, ends)


def _of_the_rest(root: Records, root_shadow: UInt, child: Records, child_shadow: UInt) -> Int:
    found = _matched(root_shadow, child_shadow)
    # Operation and name leave open which of several alike has none beside it; their sizes may tell.
    sized = _matched(_with_size(root_shadow, root), _with_size(child_shadow, child))
    if (sized >= 0).sum() < (found >= 0).sum():
        # Where some have other sizes in any case, those of one size come first, and the others between them.
        sized = _matched_between(root_shadow, child_shadow, sized)
    return sized if (sized >= 0).sum() >= (found >= 0).sum() else found


def _file_by_file(root: UInt, child: UInt, root_file: Code, child_file: Code) -> Int:
    """For each of the root's shadows the child's on a file where both have the same ones in one order; -1: none."""
    found = np.full(len(root), -1, np.int64)
    count = int(max(root_file.max(initial=-1), child_file.max(initial=-1))) + 1
    same = np.bincount(root_file, minlength=count) == np.bincount(child_file, minlength=count)
    mine, theirs = np.argsort(root_file, kind="stable"), np.argsort(child_file, kind="stable")
    mine, theirs = mine[same[root_file[mine]]], theirs[same[child_file[theirs]]]
    same[root_file[mine[root[mine] != child[theirs]]]] = False
    kept = same[root_file[mine]]
    found[mine[kept]] = theirs[kept]
    return found


def _shadow(records: Records, file: Code) -> UInt:
    return (file.astype(np.uint64) << np.uint64(8)) | records.op.astype(np.uint64)


def _with_size(shadow: UInt, records: Records) -> UInt:
    with np.errstate(over="ignore"):
        return shadow ^ ((records.size.astype(np.uint64) + np.uint64(1)) * _SIZE_MIX & ~np.uint64(0xFFFF_FFFF))


def _matched_between(root: UInt, child: UInt, found: Int) -> Int:
    """The matches found, and between two of them those of the rest."""
    hit = np.flatnonzero(found >= 0)
    theirs = np.zeros(len(child), np.bool_)
    theirs[found[hit]] = True
    # How many matches come before: the same on both sides of what may match, and twice as many for a match itself.
    places = [np.cumsum(mine) * 2 - mine for mine in (found >= 0, theirs)]
    with np.errstate(over="ignore"):
        mixed = [place.astype(np.uint64) * _SIZE_MIX & ~np.uint64(0xFFFF_FFFF) for place in places]
    return _matched(root ^ mixed[0], child ^ mixed[1])


def _matched(root: UInt, child: UInt) -> Int:
    if len(root) == len(child) and np.array_equal(root, child):
        return np.arange(len(root), dtype=np.int64)
    # What only one of them has at all would make the search long, and matches nothing.
    common = np.intersect1d(root, child)
    mine, theirs = np.flatnonzero(np.isin(root, common)), np.flatnonzero(np.isin(child, common))
    found = np.frombuffer(native.call("shadow_match", root[mine], child[theirs]), np.int64)
    out = np.full(len(root), -1, np.int64)
    hit = found >= 0
    out[mine[hit]] = theirs[found[hit]]
    return out


def _within_sessions(root: Records, child: Records, found: Int, ends: Bool) -> Int:
    """Without matches across sessions that do not match; ends of sessions that match do so, too."""
    found = found.copy()
    root_open, root_close = _ends(root, ends)
    child_open, child_close = _ends(child, ends)
    count = len(root_open)
    if not count:
        return found
    opened = found[root_open]
    child_rows = np.append(child.session, -2)
    theirs = np.where((opened >= 0) & np.isin(opened, child_open), child_rows[opened], -2)
    hit = np.flatnonzero(found >= 0)
    mine = root.session[hit]
    good = np.where(mine >= 0, theirs[np.maximum(mine, 0)], -1) == child.session[found[hit]]
    found[hit[~good]] = -1
    both = np.flatnonzero(theirs >= 0)
    taken = np.isin(found, child_close[theirs[both]])
    found[taken] = -1
    found[root_close[both]] = child_close[theirs[both]]
    return found


def _ends(records: Records, ends: Bool) -> tuple[Int, Int]:
    """The rows of the open and of the close of each session."""
    rows = np.flatnonzero(ends[records.op] & (records.session >= 0))
    order = rows[np.argsort(records.session[rows], kind="stable")]
    return order[0::2], order[1::2]
