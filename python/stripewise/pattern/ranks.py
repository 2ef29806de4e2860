"""Numbers that follow one formula over the ranks: a + b x rank, or over the coordinates of the rank in a process grid.

A grid of q columns has rank = row x q + column; one of three dimensions rank = (plane x q1 + row) x q2 + column. What
is found holds for every rank that was looked at, exactly, or nothing is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

#: Extents of a grid but the first, outermost first: () for ranks in a row, (q,), (q1, q2).
Grid = tuple[int, ...]


@dataclass(frozen=True)
class RankFormula:
    """constant + sum of coefficient x coordinate of the rank in the grid."""

    grid: Grid
    constant: int
    #: One for each coordinate, the outermost first.
    coefficients: tuple[int, ...]

    @property
    def is_constant(self) -> bool:
        """Whether all ranks have one value."""
        return not any(self.coefficients)

    def __call__(self, rank: int) -> int:
        pairs = zip(self.coefficients, coordinates(rank, self.grid), strict=True)
        return self.constant + sum(each * where for each, where in pairs)


def coordinates(rank: int, grid: Grid) -> tuple[int, ...]:
    """Where a rank stands in the grid, outermost first."""
    found: tuple[int, ...] = ()
    for extent in reversed(grid):
        rank, inner = divmod(rank, extent)
        found = (inner, *found)
    return (rank, *found)


def grids(processes: int, dimensions: int) -> Iterator[Grid]:
    """All grids of 1 to 3 dimensions that so many processes fill, each dimension longer than 1."""
    divisors = [each for each in range(2, processes) if processes % each == 0]
    if dimensions == 1:
        yield ()
    elif dimensions == 2:
        yield from ((each,) for each in divisors)
    else:
        yield from ((a, b) for a in divisors for b in divisors if processes % (a * b) == 0 and a * b < processes)


def fit(values: Mapping[int, int], grid: Grid) -> RankFormula | None:
    """The formula on this grid that gives each rank its value; None where there is none.

    `values` are by rank and need not be of all ranks; a coordinate in which no two of them differ alone counts as 0.
    """
    places = {rank: coordinates(rank, grid) for rank in values}
    at = {place: rank for rank, place in places.items()}
    first = min(values)
    coefficients = []
    for axis in range(len(grid) + 1):
        step = _step(values, places, at, axis)
        if step is None:
            return None
        coefficients.append(step)
    moved = sum(each * where for each, where in zip(coefficients, places[first], strict=True))
    formula = RankFormula(grid, values[first] - moved, tuple(coefficients))
    return formula if all(formula(rank) == value for rank, value in values.items()) else None


def _step(
    values: Mapping[int, int],
    places: Mapping[int, tuple[int, ...]],
    at: Mapping[tuple[int, ...], int],
    axis: int,
) -> int | None:
    """What a step along an axis adds, from two ranks that differ in nothing else; None where it is not whole."""
    for rank, place in places.items():
        for step in (1, 2, 3):
            beside = at.get((*place[:axis], place[axis] + step, *place[axis + 1 :]))
            if beside is not None:
                whole, rest = divmod(values[beside] - values[rank], step)
                return None if rest else whole
    return 0


def fit_all(series: Sequence[Mapping[int, int]], processes: int, dimensions: int) -> Iterator[list[RankFormula]]:
    """For each grid of so many dimensions on which every series has a formula, those formulas."""
    for grid in grids(processes, dimensions):
        found: list[RankFormula] = []
        for values in series:
            formula = fit(values, grid)
            if formula is None:
                break
            found.append(formula)
        else:
            yield found
