"""Several runs of one layout: their mean, and how far from it the true one may lie.

All intervals are of one method: Student's t of the times' logarithms, whose spread is taken to be the same under all
layouts that were measured together, for a busy machine disturbs each of them by the same part of its time. So the
interval of a gain is that of the two times it is made of, and two runs each tell something. Where several layouts are
held against one, intervals of gains are wide enough for all of them together: the best of many is ahead by chance.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..plan import Plan
from .measure import Measured

#: What may come of chance, in all comparisons with one layout together.
CHANCE = 0.05
#: With one run each: layouts that differ by less are taken to be alike.
ALIKE = 0.05
#: What is less is taken for this: no time has a logarithm.
LEAST_S = 1e-9
#: Where a density is summed.
POINTS = 4001


@dataclass(frozen=True)
class Spread:
    """How far runs of one layout lie apart: the standard deviation of their I/O times' logarithms, of so many degrees
    of freedom.
    """

    deviation: float
    free: int

    def half(self, of: float, among: int = 1) -> float:
        """Half of the 95 % interval of a mean whose variance is `of` times that of one run; of `among` such intervals
        together (Bonferroni), where the one that tells most is chosen of them.
        """
        return quantile(self.free, CHANCE / among) * self.deviation * math.sqrt(of)


def spread_of(layouts: Iterable[Repeated]) -> Spread | None:
    """The spread within all layouts, whatever their means; None with one run each."""
    each = [np.log([max(run.io_seconds, LEAST_S) for run in layout.runs]) for layout in layouts]
    free = sum(len(times) - 1 for times in each)
    if not free:
        return None
    return Spread(math.sqrt(sum(float(((times - times.mean()) ** 2).sum()) for times in each) / free), free)


def together(layouts: Iterable[Repeated], others: int = 0) -> list[Repeated]:
    """Layouts that were measured together, with the spread of all; `others` more were, and are out of the race."""
    found = list(layouts)
    return [replace(each, spread=spread_of(found), among=max(1, len(found) + others - 1)) for each in found]


def tail(free: int, t: float) -> float:
    """The part of Student's t, of so many degrees of freedom, above a value."""

    # With t = sqrt(free) tan(angle) the density is cos(angle) to the power of free - 1.
    def area(low: float) -> float:
        heights = np.cos(np.linspace(low, math.pi / 2, POINTS)) ** (free - 1)
        return float((heights.sum() - (heights[0] + heights[-1]) / 2) * (math.pi / 2 - low))

    return area(math.atan(t / math.sqrt(free))) / area(-math.pi / 2)


@functools.cache
def quantile(free: int, chance: float) -> float:
    """The value that Student's t is beyond, on either side, by this chance."""
    low, high = 0.0, 1.0
    while tail(free, high) > chance / 2:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(free, middle) > chance / 2 else (low, middle)
    return high


@dataclass(frozen=True)
class Repeated:
    """The runs of one layout, and the plan that made it; `spread` as of all that it was measured with."""

    plan: Plan
    runs: tuple[Measured, ...]
    spread: Spread | None = None
    #: With how many others it is held against one.
    among: int = 1

    @property
    def policy(self) -> str:
        """The policy that the layout is of."""
        return self.runs[0].policy

    @property
    def mean(self) -> Measured:
        """Means of all figures, of the I/O time the geometric one; None where a run lacks one."""
        runs = self.runs
        return replace(
            runs[0],
            read_mb_s=_mean(runs, lambda run: run.read_mb_s),
            write_mb_s=_mean(runs, lambda run: run.write_mb_s),
            io_seconds=statistics.geometric_mean(max(run.io_seconds, LEAST_S) for run in runs),
            elapsed_seconds=statistics.fmean(run.elapsed_seconds for run in runs),
            busy_s={name: statistics.fmean(run.busy_s.get(name, 0.0) for run in runs) for name in runs[0].busy_s},
            verified_bytes=min((run.verified_bytes for run in runs if run.verified_bytes is not None), default=None),
        )

    @property
    def run_seconds(self) -> float:
        """The median time of the whole run, from the command's start to its end, in seconds."""
        return statistics.median(run.elapsed_seconds for run in self.runs)

    @property
    def io_range(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the mean I/O time, in seconds; None with a single run."""
        off = self._off(1 / len(self.runs))
        mean_s = self.mean.io_seconds
        return None if off is None else (mean_s / math.exp(off), mean_s * math.exp(off))

    @property
    def half_width(self) -> float | None:
        """Half of that interval over the mean; None with a single run."""
        off = self._off(1 / len(self.runs))
        return None if off is None else math.sinh(off)

    def beats(self, other: Repeated) -> bool:
        """Whether it is surely faster; with one run each by more than `ALIKE`."""
        ahead, off = self._ahead(other)
        return ahead > (ALIKE if off is None else off)

    def gain_range(self, other: Repeated) -> tuple[float, float] | None:
        """The 95 % confidence interval of how many times as fast it is as another; None with one run each."""
        ahead, off = self._ahead(other)
        return None if off is None else (math.exp(ahead - off), math.exp(ahead + off))

    def _off(self, of: float, *others: Repeated) -> float | None:
        spread = self.spread or spread_of((self, *others))
        return None if spread is None else spread.half(of, self.among if others else 1)

    def _ahead(self, other: Repeated) -> tuple[float, float | None]:
        """The logarithm of how many times as fast it is, and half the 95 % interval of that; None with one run each."""
        ahead = math.log(other.mean.io_seconds / self.mean.io_seconds)
        return ahead, self._off(1 / len(self.runs) + 1 / len(other.runs), other)

    def as_json(self) -> dict[str, Any]:
        """The mean as `tune --json` prints it, with how many runs it is of."""
        return {
            **self.mean.as_json(),
            "mpi": None if self.plan.mpi is None else self.plan.mpi.as_json(),
            "repeats": len(self.runs),
            "run_seconds": self.run_seconds,
            "io_seconds_each": [run.io_seconds for run in self.runs],
            "io_seconds_range": self.io_range,
            "half_width": self.half_width,
        }


def _mean(runs: Sequence[Measured], figure: Callable[[Measured], float | None]) -> float | None:
    found = [value for run in runs if (value := figure(run)) is not None]
    return statistics.fmean(found) if len(found) == len(runs) else None
