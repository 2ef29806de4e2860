"""How a series of numbers depends on the number of processes: every formula that fits the runs that were seen.

A formula is a factor times a product of terms: P, the extents of the process grid, the counts and sizes of the pattern,
and what is left of a whole that P or an extent divides (a file cut into equal shares). All arithmetic is exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, isqrt

#: Factors of a share that are tried, beside the largest.
FACTORS_MAX = 64
#: Value by number of processes.
Series = Mapping[int, int]


@dataclass(frozen=True)
class Term:
    """Something that depends on P, in words."""

    text: str
    value: Callable[[int], Fraction]


@dataclass(frozen=True)
class Formula:
    """A formula of P."""

    text: str
    value: Callable[[int], Fraction]

    def __call__(self, processes: int) -> int | None:
        """Its value at so many processes; None where that is not a whole number."""
        found = self.value(processes)
        return int(found) if found.denominator == 1 else None


def low_divisor(processes: int) -> int:
    """The largest divisor up to the root: the shorter side of the squarest grid."""
    return max(each for each in range(1, isqrt(processes) + 1) if processes % each == 0)


def cubic(processes: int) -> tuple[int, int, int]:
    """The most cubic grid of three dimensions, longest first."""
    found = [
        (processes // (a * b), b, a)
        for a in range(1, processes + 1)
        if a**3 <= processes and processes % a == 0
        for b in [low_divisor_from(processes // a, a)]
        if b
    ]
    return min(found, key=lambda grid: (grid[0] - grid[2], grid))


def low_divisor_from(processes: int, least: int) -> int:
    """The largest divisor between `least` and the root; 0 without."""
    found = [each for each in range(least, isqrt(processes) + 1) if processes % each == 0]
    return max(found, default=0)


#: What grids are made of.
TERMS = (
    Term("P", lambda p: Fraction(p)),
    Term("side(P)", lambda p: Fraction(low_divisor(p))),
    Term("P/side(P)", lambda p: Fraction(p // low_divisor(p))),
    Term("cube1(P)", lambda p: Fraction(cubic(p)[0])),
    Term("cube2(P)", lambda p: Fraction(cubic(p)[1])),
    Term("cube3(P)", lambda p: Fraction(cubic(p)[2])),
)


def formulas(series: Series, terms: Sequence[Term] = TERMS) -> Iterator[Formula]:
    """All formulas that give the series, the plainest first."""
    at = sorted(series)
    values = [series[p] for p in at]
    if len(set(values)) == 1:
        only = values[0]
        yield Formula(str(only), lambda p: Fraction(only))
    if not any(values):
        return
    for factors in (1, 2):
        for product in itertools.combinations_with_replacement(terms, factors):
            yield from _proportional(at, values, product, ())
    for over in terms:
        yield from _proportional(at, values, (), (over,))
        yield from _shares(at, values, over)
        for one in terms:
            if one.text != over.text:
                yield from _proportional(at, values, (one,), (over,))
    for product in itertools.combinations_with_replacement(terms, 3):
        yield from _proportional(at, values, product, ())
    if len(at) > 2:
        for one in terms:
            yield from _linear(at, values, one)


def _product(product: Sequence[Term], over: Sequence[Term], p: int) -> Fraction:
    found = Fraction(1)
    for term in product:
        found *= term.value(p)
    for term in over:
        divisor = term.value(p)
        found = found / divisor if divisor else Fraction(0)
    return found


def _proportional(
    at: Sequence[int], values: Sequence[int], product: Sequence[Term], over: Sequence[Term]
) -> Iterator[Formula]:
    base = [_product(product, over, p) for p in at]
    if not all(base) or len(set(base)) == 1:
        return
    factor = values[0] / base[0]
    if all(factor * each == value for each, value in zip(base, values, strict=True)):
        text = " x ".join([*([str(factor)] if factor != 1 or not product else []), *(term.text for term in product)])
        text += "".join(f" / {term.text}" for term in over)
        yield Formula(text, lambda p: factor * _product(product, over, p))


def _shares(at: Sequence[int], values: Sequence[int], over: Term) -> Iterator[Formula]:
    """A factor times the whole part of something that is divided; of all wholes that fit the roundest."""
    divisors = [over.value(p) for p in at]
    if not all(divisors) or len(set(divisors)) == 1:
        return
    common = gcd(*values)
    for factor in (*(each for each in range(1, FACTORS_MAX) if common % each == 0), common):
        parts = list(zip((value // factor for value in values), divisors, strict=True))
        low = max(part * each for part, each in parts)
        high = min((part + 1) * each for part, each in parts)
        if low < high:
            yield _share(factor, _roundest(-(-low // 1), -(-high // 1) - 1), over)
            return


def _share(factor: int, whole: int, over: Term) -> Formula:
    times = f"{factor} x " if factor != 1 else ""
    return Formula(f"{times}({whole} div {over.text})", lambda p: Fraction(factor * (whole // over.value(p))))


def _roundest(low: int, high: int) -> int:
    """The number from low to high that the highest power of two divides."""
    step = 1
    while -(-low // (2 * step)) * 2 * step <= high:
        step *= 2
    return -(-low // step) * step


def _linear(at: Sequence[int], values: Sequence[int], term: Term) -> Iterator[Formula]:
    base = [term.value(p) for p in at]
    if base[0] == base[-1]:
        return
    slope = (values[-1] - values[0]) / (base[-1] - base[0])
    rest = values[0] - slope * base[0]
    if rest and slope and all(slope * each + rest == value for each, value in zip(base, values, strict=True)):
        yield Formula(f"{slope} x {term.text} + {rest}", lambda p: slope * term.value(p) + rest)
