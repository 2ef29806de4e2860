"""Which files of a run symbolic patterns cover: all where the whole path folds, else those that are regular without the
others, whose characteristics stand beside the patterns (ours; docs/formats.md, programs).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..characterization.characteristics import profile_of
from ..extraction.calls import Bool, Int
from ..extraction.generic_path import Gwp
from ..operations import operations
from . import symbolic
from .likeness import reference_of
from .program import has_program

#: A file is irregular where it alone makes more nodes than this, and than this share of its requests.
NODES_MIN = 32
NODES_SHARE = 0.25
#: Files with names of one form that are left out one after the other where regular ones interleave irregularly, and
#: how many such forms, those of the most nodes, are looked at each time.
TURNS_MAX = 4
CANDIDATES = 4
#: Patterns of less than this share of the run's requests, and of its bytes, are left out.
COVERED_MIN = 0.05
_NUMBER = re.compile(r"\d+")


def programs(gwps: Sequence[Gwp], named: Sequence[Gwp] = ()) -> dict[str, Any]:
    """As `symbolic.programs`; where the whole has no patterns, of the regular files, with the others' classes under
    `uncovered`.

    `named` are the same paths, file by file, with the names by which the regular files are chosen: those of paths
    without names say nothing (anonymous.py).
    """
    named = named or gwps
    whole = symbolic.programs(gwps)
    kept = None if has_program(whole) else regular_files(named[0])
    if kept is None:
        return whole
    names = {each.template for each, is_kept in zip(named[0].files, kept.tolist(), strict=True) if is_kept}
    others = [
        gwp.part(np.array([each.template in names for each in files.files], np.bool_))
        for gwp, files in zip(gwps[1:], named[1:], strict=True)
    ]
    found = symbolic.programs([gwps[0].part(kept), *others])
    if not has_program(found):
        return whole
    classes = profile_of(gwps[0].part(~kept)).as_json()["classes"]
    return found | reference_of(gwps[0]) | {"uncovered": {"requests": len(gwps[0]), "classes": classes}}


def regular_files(gwp: Gwp) -> Bool | None:
    """By number whether a file is one of those whose requests fold together, without the others'.

    None where these are all files, or too small a part of the run.
    """
    if not len(gwp):
        return None
    together = _together(gwp)
    alone = np.bincount(together, symbolic.nodes_by_file(gwp))
    requests = np.bincount(together[gwp.file], minlength=len(alone))
    irregular = (alone > NODES_MIN) & (alone > NODES_SHARE * requests)
    kept: Bool = ~irregular[together]
    form = _forms(gwp, together)
    for _ in range(TURNS_MAX + 1):
        if not _is_much(gwp, kept):
            return None
        if symbolic.folds(gwp.part(kept)):
            return None if kept.all() else kept
        nodes = np.bincount(form[kept], alone[together[kept]], minlength=int(form.max()) + 1)
        most = np.argsort(-nodes, kind="stable")[:CANDIDATES]
        left = [kept & (form != each) for each in most.tolist() if nodes[each] > 0]
        left = [each for each in left if _is_much(gwp, each)]
        if not left:
            return None
        kept = min(left, key=lambda each: symbolic.nodes_together(gwp.part(each)))
    return None


def _together(gwp: Gwp) -> Int:
    """By file a number that those share which renames and links lead from one to the other."""
    above = list(range(len(gwp.files)))

    def top(file: int) -> int:
        while above[file] != file:
            above[file] = above[above[file]]
            file = above[file]
        return file

    rows = np.flatnonzero(gwp.other >= 0)
    pairs = np.unique(np.stack([gwp.file[rows], gwp.other[rows]], axis=1), axis=0)
    for first, second in pairs.tolist():
        above[top(second)] = top(first)
    return np.array([top(file) for file in range(len(above))], np.int64)


def _forms(gwp: Gwp, together: Int) -> Int:
    """By file a number that those share whose names differ in numbers alone, and those that belong together."""
    known: dict[str, int] = {}
    named = [known.setdefault(_NUMBER.sub("0", each.template), len(known)) for each in gwp.files]
    return np.array(named, np.int64)[together]


def _is_much(gwp: Gwp, kept: Bool) -> bool:
    """Whether these files have a part of the run's requests, or of its bytes, that is worth patterns."""
    data = np.isin(gwp.op, [each.number for each in operations().values() if each.is_data])
    mine = kept[gwp.file]
    moved = np.where(data, gwp.size, 0)
    return bool(mine.sum() >= COVERED_MIN * len(gwp) or 0 < moved.sum() * COVERED_MIN <= moved[mine].sum())
