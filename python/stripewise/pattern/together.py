"""Global patterns: what processes do alike, each in its own place, as one line for all of them.

Processes whose segments have the same forms in the same order are a *group*; where they part, as where rank 0 writes a
header first, their common head and tail still go together. The numbers of a group's segment become formulas of the rank
where they follow one; else the group shares only the form.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .local import LocalPatterns, Segment
from .ranks import RankFormula, fit_all
from .tree import Tree, numbers, rebuilt, skeleton


@dataclass(frozen=True)
class GlobalPattern:
    """One segment of a group of processes, in the same place of their sequences."""

    #: Ascending, and the segment of each.
    ranks: tuple[int, ...]
    segments: tuple[Segment, ...]
    #: For each number of the loops (`tree.numbers`); None where they follow none, or places are random.
    formulas: tuple[RankFormula, ...] | None

    @property
    def form(self) -> object:
        """The form that its segments share."""
        return self.segments[0].form

    @property
    def is_symbolic(self) -> bool:
        """Whether formulas give every rank's records."""
        return self.formulas is not None

    def tree(self, rank: int) -> Tree:
        """The loops of a rank by the formulas; also of one that was not there."""
        assert self.formulas is not None
        loop = self.segments[0].loop
        assert loop is not None
        return rebuilt(skeleton(loop), [formula(rank) for formula in self.formulas])


def global_patterns(local: Sequence[LocalPatterns], processes: int) -> tuple[GlobalPattern, ...]:
    """The patterns of all processes of a file, by the order in which they began."""
    groups: dict[object, list[LocalPatterns]] = defaultdict(list)
    for each in local:
        groups[tuple(segment.form for segment in each.segments)].append(each)
    found: list[GlobalPattern] = []
    head, tail = _common([group[0] for group in groups.values()])
    everybody = list(local)
    for place in range(head):
        found += _patterns(everybody, [each.segments[place] for each in everybody], processes)
    for group in groups.values():
        for place in range(head, len(group[0].segments) - tail):
            found += _patterns(group, [each.segments[place] for each in group], processes)
    for place in range(-tail, 0):
        found += _patterns(everybody, [each.segments[place] for each in everybody], processes)
    return tuple(sorted(found, key=lambda each: min(segment.start_ns for segment in each.segments)))


def _common(local: Sequence[LocalPatterns]) -> tuple[int, int]:
    """How many segments at the head, and then at the tail, have the same forms everywhere."""
    forms = [[segment.form for segment in each.segments] for each in local]
    shortest = min(map(len, forms))
    head = 0
    while head < shortest and len({form[head] for form in forms}) == 1:
        head += 1
    tail = 0
    while tail < shortest - head and len({form[-1 - tail] for form in forms}) == 1:
        tail += 1
    return head, tail


def _patterns(group: Sequence[LocalPatterns], segments: Sequence[Segment], processes: int) -> Iterable[GlobalPattern]:
    ranks = tuple(each.rank for each in group)
    if not segments[0].is_regular:
        return [GlobalPattern(ranks, tuple(segments), None)]
    formulas = formulas_of(ranks, segments, processes)
    if formulas is not None or len(ranks) <= 2:
        return [GlobalPattern(ranks, tuple(segments), formulas)]
    # The last rank often has what remains; the first one something of its own.
    for odd in (len(ranks) - 1, 0):
        rest = [place for place in range(len(ranks)) if place != odd]
        others = tuple(ranks[place] for place in rest), tuple(segments[place] for place in rest)
        formulas = formulas_of(*others, processes)
        if formulas is not None:
            alone = formulas_of(ranks[odd : odd + 1], segments[odd : odd + 1], processes)
            return [
                GlobalPattern(*others, formulas),
                GlobalPattern(ranks[odd : odd + 1], tuple(segments[odd : odd + 1]), alone),
            ]
    return [GlobalPattern(ranks, tuple(segments), None)]


def series_of(ranks: Sequence[int], segments: Sequence[Segment]) -> list[dict[int, int]]:
    """For each number of the segments' loops its value by rank."""
    columns = zip(*(_values(segment) for segment in segments), strict=True)
    return [dict(zip(ranks, column, strict=True)) for column in columns]


def _values(segment: Segment) -> list[int]:
    assert segment.loop is not None
    return [value for _, value in numbers(segment.loop)]


def formulas_of(ranks: Sequence[int], segments: Sequence[Segment], processes: int) -> tuple[RankFormula, ...] | None:
    """A formula for each number, all on the plainest grid on which there are some; None without."""
    series = series_of(ranks, segments)
    for dimensions in (1, 2, 3):
        for found in fit_all(series, processes, dimensions):
            return tuple(found)
    return None
