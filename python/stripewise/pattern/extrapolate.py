"""From runs with some numbers of processes to the run with another: which formulas of P fit, and what they predict.

A prediction takes the plainest formula of every number. It is *sure* where all formulas that fit the runs say the same
for the number of processes that was asked for; what they disagree on is told.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from .ranks import Grid, RankFormula, fit_all
from .scaling import TERMS, Formula, Term, formulas
from .together import GlobalPattern, series_of
from .tree import Tree, numbers, rebuilt, skeleton

#: Combinations of grids that are tried, and formulas that are told of one number.
GRIDS_MAX = 256
TOLD_MAX = 6


@dataclass(frozen=True)
class Run:
    """The global patterns of a file in one run."""

    processes: int
    patterns: tuple[GlobalPattern, ...]


#: What the numbers of a loop or a request are called for people.
WORDS = {"at": "first byte", "stride": "distance", "count": "rounds", "size": "request bytes"}


@dataclass(frozen=True)
class Scaled:
    """A global pattern with its numbers as formulas of P."""

    #: Which ranks it is of: all, first, last, but first, but last.
    ranks: str
    form: object
    #: For each extent of the grid, and for each number its constant and coefficients: all formulas that fit.
    grid: tuple[tuple[Formula, ...], ...]
    numbers: tuple[tuple[str, tuple[tuple[Formula, ...], ...]], ...]

    def ranks_at(self, processes: int) -> range:
        """The ranks it is of among so many processes."""
        return _SETS[self.ranks](processes)

    def trees(self, processes: int) -> dict[int, Tree] | None:
        """The loops of each rank at so many processes; None where a formula gives no whole number."""
        extents = [each[0](processes) for each in self.grid]
        values = [[each[0](processes) for each in series] for _, series in self.numbers]
        if None in extents or any(None in each for each in values) or not all(each and each > 0 for each in extents):
            return None
        grid: Grid = tuple(each for each in extents if each is not None)
        of = [[each for each in row if each is not None] for row in values]
        by_rank = [RankFormula(grid, row[0], tuple(row[1:])) for row in of]
        assert isinstance(self.form, tuple)
        return {
            rank: rebuilt(self.form[1], [formula(rank) for formula in by_rank]) for rank in self.ranks_at(processes)
        }

    def doubts(self, processes: int) -> list[str]:
        """Where formulas that fit the runs disagree at so many processes: one phrase each."""
        named = [(f"extent {axis + 1} of the grid", each) for axis, each in enumerate(self.grid)]
        for what, series in self.numbers:
            named += [(f"{WORDS[what]}, {_role(place)}", each) for place, each in enumerate(series)]
        return [f"{what}: {' or '.join(said)}" for what, each in named if len(said := _said(each, processes)) > 1]


def _role(place: int) -> str:
    return "of rank 0" if place == 0 else f"along axis {place}"


def _said(fitting: Sequence[Formula], processes: int) -> list[str]:
    found: dict[Fraction, str] = {}
    for formula in fitting:
        found.setdefault(formula.value(processes), formula.text)
    return [f"{value}" if text == f"{value}" else f"{value} (by {text})" for value, text in found.items()]


_SETS: dict[str, Callable[[int], range]] = {
    "all": range,
    "first": lambda p: range(1),
    "last": lambda p: range(p - 1, p),
    "but first": lambda p: range(1, p),
    "but last": lambda p: range(p - 1),
}


def ranks_of(pattern: GlobalPattern, processes: int) -> str | None:
    """The name of the set of ranks that a pattern is of; None where it has none."""
    return next((name for name, of in _SETS.items() if tuple(of(processes)) == pattern.ranks), None)


def scaled(runs: Sequence[Run]) -> tuple[tuple[Scaled, ...], tuple[GlobalPattern, ...]]:
    """The patterns that all runs have, as formulas of P, in the order of the first run; and its other ones."""
    tables = [_by_identity(run) for run in runs]
    found, others = [], []
    for identity, pattern in tables[0].items():
        alike = [table.get(identity) for table in tables]
        one = None
        if identity[0] is not None and pattern.is_symbolic and all(alike):
            alike_runs = [(run.processes, each) for run, each in zip(runs, alike, strict=True) if each is not None]
            one = _scaled(identity[0], alike_runs)
        if one is None:
            others.append(pattern)
        else:
            found.append(one)
    return tuple(found), tuple(others)


def _by_identity(run: Run) -> dict[tuple[str | None, object, int], GlobalPattern]:
    """Patterns by set of ranks, form, and which one of these it is."""
    found: dict[tuple[str | None, object, int], GlobalPattern] = {}
    for pattern in run.patterns:
        key = (ranks_of(pattern, run.processes), pattern.form)
        which = next(number for number in itertools.count() if (*key, number) not in found)
        found[(*key, which)] = pattern
    return found


def _scaled(ranks: str, runs: Sequence[tuple[int, GlobalPattern]]) -> Scaled | None:
    first = runs[0][1]
    assert first.segments[0].loop is not None
    names = [name for name, _ in numbers(first.segments[0].loop)]
    for dimensions in (1, 2, 3):
        fits = [
            list(fit_all(series_of(pattern.ranks, pattern.segments), processes, dimensions))
            for processes, pattern in runs
        ]
        for chosen in itertools.islice(itertools.product(*fits), GRIDS_MAX):
            by_run = {processes: row for (processes, _), row in zip(runs, chosen, strict=True)}
            found = _in_processes(by_run, names)
            if found is not None:
                return Scaled(ranks, ("regular", skeleton(first.segments[0].loop)), *found)
    return None


def _told(series: Mapping[int, int], terms: Sequence[Term]) -> tuple[Formula, ...]:
    """The plainest formulas that fit, those that say the same only once."""
    found: list[Formula] = []
    for formula in formulas(series, terms):
        found.append(formula)
        if len(found) == TOLD_MAX:
            break
    return tuple(found)


def _in_processes(
    runs: Mapping[int, Sequence[RankFormula]], names: Sequence[str]
) -> tuple[tuple[tuple[Formula, ...], ...], tuple[tuple[str, tuple[tuple[Formula, ...], ...]], ...]] | None:
    """Formulas of P for the grid and for each number; None where one has none."""
    some = next(iter(runs.values()))
    grid = []
    for axis in range(len(some[0].grid)):
        fitting = _told({processes: row[0].grid[axis] for processes, row in runs.items()}, TERMS)
        if not fitting:
            return None
        grid.append(fitting)
    terms = [*TERMS, *_terms("grid", (fitting[0] for fitting in grid))]
    found: dict[int, tuple[tuple[Formula, ...], ...]] = {}
    # What is counted comes first: places and strides are often made of it.
    for place in sorted(range(len(names)), key=lambda place: names[place] not in ("count", "size")):
        rows = {processes: (row[place].constant, *row[place].coefficients) for processes, row in runs.items()}
        columns = zip(*rows.values(), strict=True)
        fitting_all = tuple(_told(dict(zip(rows, column, strict=True)), terms) for column in columns)
        if not all(fitting_all):
            return None
        found[place] = fitting_all
        if names[place] in ("count", "size") and some[place].is_constant:
            terms += _terms(WORDS[names[place]].replace(" ", "-"), [fitting_all[0][0]])
    return tuple(grid), tuple((name, found[place]) for place, name in enumerate(names))


def _terms(name: str, fitted: Iterator[Formula] | Sequence[Formula]) -> list[Term]:
    return [Term(f"{name}[{formula.text}]", formula.value) for formula in fitted]
