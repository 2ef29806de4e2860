"""Subgroups of children (thesis, sections 2.4.1 and 2.6.1): those that do alike, of which one needs to be looked at.

Children are alike where the first tenth of their traces has nearly the same operations, about as often, and about as
far between two of the same kind (the operation reuse distance).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...errors import UsageError

#: Share of a trace that is looked at.
FIRST = 0.1
#: Records at least: of short traces all.
RECORDS_MIN = 256
#: Two children are alike up to this share of their operations, and of their reuse distances' octaves.
UNLIKE_MAX = 0.1
OCTAVES = 32
#: Groups of a path, at most (crates/workpath/src/node.rs).
GROUPS_MAX = 240
_RUN = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


@dataclass(frozen=True)
class Subgroup:
    """Ranks of children that do alike, ascending, those that were not traced left out; `chosen` stands for them."""

    ranks: tuple[int, ...]
    chosen: int

    @property
    def text(self) -> str:
        """The ranks as runs: `1-3,7`."""
        return runs_text(self.ranks)


def runs_text(ranks: Sequence[int]) -> str:
    """Ascending ranks as runs: `1-3,7`."""
    parts: list[str] = []
    begin = 0
    for at in range(1, len(ranks) + 1):
        if at == len(ranks) or ranks[at] != ranks[at - 1] + 1:
            first, last = ranks[begin], ranks[at - 1]
            parts.append(f"{first}" if first == last else f"{first}-{last}")
            begin = at
    return ",".join(parts)


def given_groups(text: str, traced: Sequence[int], root: int) -> list[Subgroup]:
    """Groups as a user gives them: runs of ranks, groups apart by a slash: `1-3,7/4-6`. A rank that was traced stands
    for each.

    Raises UsageError.
    """
    groups: list[Subgroup] = []
    seen: set[int] = set()
    for part in text.split("/"):
        ranks: list[int] = []
        for run in part.split(","):
            match = _RUN.fullmatch(run.strip())
            if match is None:
                raise UsageError(f"--subgroups: {run!r} is no rank and no run of ranks; write e.g. 1-3,7/4-6")
            first, last = int(match[1]), int(match[2] or match[1])
            if last < first or last - first >= 1 << 22:
                raise UsageError(f"--subgroups: {run.strip()} does not ascend; write e.g. 1-3,7/4-6")
            ranks += range(first, last + 1)
        here = sorted({rank for rank in ranks if rank in traced and rank != root})
        if root in ranks or seen & set(ranks):
            raise UsageError(f"--subgroups: {part} has rank {root}, or a rank of another group; name each child once")
        if not here:
            raise UsageError(f"--subgroups: no rank of {part} was traced; trace one of each group")
        seen |= set(ranks)
        groups.append(Subgroup(tuple(sorted(set(ranks))), here[len(here) // 2]))
    if len(groups) > GROUPS_MAX:
        raise UsageError(f"--subgroups: {len(groups)} groups are more than {GROUPS_MAX}; give fewer")
    return groups


def reuse_distances(op: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Of each operation that came before how many others lie in between; -1 of one that comes for the first time.

    Thesis, section 2.4.1: the number of operations between two successive appearances of the same operation.
    """
    order = np.argsort(op, kind="stable")
    found = np.full(len(op), -1, np.int64)
    same = op[order[1:]] == op[order[:-1]]
    found[order[1:][same]] = (order[1:] - order[:-1] - 1)[same]
    return found


def profile_of(head: npt.NDArray[np.integer], kinds: int, records: int) -> npt.NDArray[np.float64]:
    """Of the first operations the share of each kind, then of each octave of its reuse distances, at last `records`,
    those of the whole trace."""
    counts = np.bincount(head, minlength=kinds).astype(np.float64)
    distance = reuse_distances(head)
    again = distance >= 0
    octave = np.minimum(np.log2(distance[again] + 1).astype(np.int64), OCTAVES - 1)
    spread = np.bincount(head[again] * OCTAVES + octave, minlength=kinds * OCTAVES).astype(np.float64)
    total = max(1, len(head))
    return np.concatenate([counts / total, spread / total, [float(records)]])


def unlike(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64], kinds: int) -> float:
    """How far two profiles are apart: 0 alike, 1 nothing in common. The larger of both halves, and of the lengths."""
    counts = np.abs(one[:kinds] - other[:kinds]).sum() / 2
    spread = np.abs(one[kinds:-1] - other[kinds:-1]).sum() / 2
    longer = max(one[-1], other[-1], 1.0)
    return float(max(counts, spread, abs(one[-1] - other[-1]) / longer))


def found_groups(profiles: Mapping[int, npt.NDArray[np.float64]], kinds: int) -> list[Subgroup]:
    """Children by their likeness: each joins the first group whose first member it is like."""
    groups: list[list[int]] = []
    for rank in sorted(profiles):
        mine = next((g for g in groups if unlike(profiles[g[0]], profiles[rank], kinds) <= UNLIKE_MAX), None)
        if mine is not None:
            mine.append(rank)
        elif len(groups) < GROUPS_MAX:
            groups.append([rank])
        else:
            groups[-1].append(rank)
    return [Subgroup(tuple(ranks), ranks[len(ranks) // 2]) for ranks in groups]
