"""Global patterns: what processes do alike, each in its own place, as one line for all of them.

Processes whose segments have the same forms in the same order are a *group*; where they part, as where rank 0 writes a
header first, their common head and tail still go together. The numbers of a group's segment become formulas of the rank
where they follow one; else the group shares only the form. Processes without ranks have numbers that say no more than
who appeared first: of them those that do the same but for where they begin are a *family*.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .local import LocalPatterns, Segment
from .ranks import RankFormula, fit_all
from .tree import Tree, numbers, rebuilt, skeleton

#: So many processes without ranks are told one by one where each does something else; more as one pattern.
ALONE_MAX = 8
#: Members that a family needs for each dimension of a grid: twice the numbers that such a formula has.
MEMBERS_BY_DIMENSION = 4


@dataclass(frozen=True)
class GlobalPattern:
    """One segment of a group of processes, in the same place of their sequences."""

    #: Ascending, and the segment of each.
    ranks: tuple[int, ...]
    segments: tuple[Segment, ...]
    #: For each number of the loops (`tree.numbers`); None where they follow none, or places are random.
    formulas: tuple[RankFormula, ...] | None
    #: Whether `ranks` are ranks of MPI; else they are numbers by the order in which processes appeared.
    is_ranked: bool = True

    @property
    def begins(self) -> tuple[int, ...] | None:
        """Where each process of a family begins, ascending; None where there are ranks, or more than that differs."""
        if self.is_ranked or not all(each.is_regular for each in self.segments):
            return None
        at, shapes = zip(*((_values(each)[0], _shape(each)) for each in self.segments), strict=True)
        return tuple(sorted(at)) if len(set(shapes)) == 1 else None

    @property
    def row(self) -> tuple[int, int] | None:
        """Where the lowest of a family begins, and how far each next one lies behind the one before; None where these
        distances differ.
        """
        begins = self.begins
        if begins is None:
            return None
        steps = {after - before for before, after in itertools.pairwise(begins)} or {0}
        return (begins[0], steps.pop()) if len(steps) == 1 else None

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


def global_patterns(
    local: Sequence[LocalPatterns], processes: int, is_ranked: bool = True
) -> tuple[GlobalPattern, ...]:
    """The patterns of all processes of a file, by the order in which they began."""
    groups: dict[object, list[LocalPatterns]] = defaultdict(list)
    for each in local:
        groups[tuple(segment.form for segment in each.segments)].append(each)
    found: list[GlobalPattern] = []
    patterns = _patterns if is_ranked else _families
    head, tail = _common([group[0] for group in groups.values()])
    everybody = list(local)
    for place in range(head):
        found += patterns(everybody, [each.segments[place] for each in everybody], processes)
    for group in groups.values():
        for place in range(head, len(group[0].segments) - tail):
            found += patterns(group, [each.segments[place] for each in group], processes)
    for place in range(-tail, 0):
        found += patterns(everybody, [each.segments[place] for each in everybody], processes)
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


def _families(group: Sequence[LocalPatterns], segments: Sequence[Segment], processes: int) -> Iterator[GlobalPattern]:
    """Of processes without ranks: each family, the others alone, or as one pattern where they are many."""
    ranks = tuple(each.rank for each in group)

    def pattern(places: Sequence[int], is_family: bool = True) -> GlobalPattern:
        those, theirs = tuple(ranks[place] for place in places), tuple(segments[place] for place in places)
        dimensions = max(1, len(places) // MEMBERS_BY_DIMENSION)
        formulas = formulas_of(those, theirs, processes, dimensions) if is_family else None
        return GlobalPattern(those, theirs, formulas, is_ranked=False)

    if not segments[0].is_regular:
        yield pattern(range(len(ranks)), is_family=False)
        return
    families: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, segment in enumerate(segments):
        families[_shape(segment)].append(place)
    alone = [places[0] for places in families.values() if len(places) == 1]
    if len(alone) > ALONE_MAX:
        yield pattern(alone, is_family=False)
        alone = []
    yield from (pattern([place]) for place in alone)
    yield from (pattern(places) for places in families.values() if len(places) > 1)


def series_of(ranks: Sequence[int], segments: Sequence[Segment]) -> list[dict[int, int]]:
    """For each number of the segments' loops its value by rank."""
    columns = zip(*(_values(segment) for segment in segments), strict=True)
    return [dict(zip(ranks, column, strict=True)) for column in columns]


def _values(segment: Segment) -> list[int]:
    assert segment.loop is not None
    return [value for _, value in numbers(segment.loop)]


def _shape(segment: Segment) -> tuple[int, ...]:
    """All numbers but where it begins."""
    return tuple(_values(segment)[1:])


def formulas_of(
    ranks: Sequence[int], segments: Sequence[Segment], processes: int, dimensions_max: int = 3
) -> tuple[RankFormula, ...] | None:
    """A formula for each number, all on the plainest grid on which there are some; None without."""
    series = series_of(ranks, segments)
    for dimensions in range(1, min(dimensions_max, 3) + 1):
        for found in fit_all(series, processes, dimensions):
            return tuple(found)
    return None
