"""Several runs of one layout: their mean, and how far from it the true one may lie."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..plan import Plan
from .measure import Measured

#: Two-sided 95 % quantiles of Student's t by degrees of freedom, from 1 on.
T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
#: With one run each: layouts that differ by less are taken to be alike.
ALIKE = 0.05


@dataclass(frozen=True)
class Repeated:
    """The runs of one layout, and the plan that made it."""

    plan: Plan
    runs: tuple[Measured, ...]

    @property
    def policy(self) -> str:
        """The policy that the layout is of."""
        return self.runs[0].policy

    @property
    def mean(self) -> Measured:
        """Means of all figures; None where a run lacks one."""
        runs = self.runs
        return replace(
            runs[0],
            read_mb_s=_mean(runs, lambda run: run.read_mb_s),
            write_mb_s=_mean(runs, lambda run: run.write_mb_s),
            io_seconds=statistics.fmean(run.io_seconds for run in runs),
            elapsed_seconds=statistics.fmean(run.elapsed_seconds for run in runs),
            busy_s={name: statistics.fmean(run.busy_s.get(name, 0.0) for run in runs) for name in runs[0].busy_s},
            verified_bytes=min((run.verified_bytes for run in runs if run.verified_bytes is not None), default=None),
        )

    @property
    def half_width(self) -> float | None:
        """Half of the 95 % confidence interval of the mean I/O time over that mean; None with a single run."""
        seconds = [run.io_seconds for run in self.runs]
        mean = statistics.fmean(seconds)
        if len(seconds) < 2 or mean <= 0:
            return None
        return float(_t95(len(seconds) - 1) * statistics.stdev(seconds) / len(seconds) ** 0.5 / mean)

    def beats(self, other: Repeated) -> bool:
        """Whether it is surely faster; with one run each by more than `ALIKE`."""
        ahead, off = self._ahead(other)
        return ahead > (ALIKE if off is None else off)

    def gain_range(self, other: Repeated) -> tuple[float, float] | None:
        """The 95 % confidence interval of how many times as fast it is as another; None with one run each."""
        ahead, off = self._ahead(other)
        return None if off is None else (math.exp(ahead - off), math.exp(ahead + off))

    def _ahead(self, other: Repeated) -> tuple[float, float | None]:
        """The logarithm of how many times as fast it is, and half the 95 % interval of that; None with one run each.

        By Student's t of the times' logarithms, whose spread is taken to be the same.
        """
        mine, others = (np.log([max(run.io_seconds, 1e-9) for run in each.runs]) for each in (self, other))
        ahead = float(others.mean() - mine.mean())
        free = len(mine) + len(others) - 2
        if not free:
            return ahead, None
        squares = float(((mine - mine.mean()) ** 2).sum() + ((others - others.mean()) ** 2).sum())
        off = float(np.sqrt(squares / free * (1 / len(mine) + 1 / len(others))))
        return ahead, _t95(free) * off

    def as_json(self) -> dict[str, Any]:
        """The mean as `tune --json` prints it, with how many runs it is of."""
        return {
            **self.mean.as_json(),
            "repeats": len(self.runs),
            "io_seconds_each": [run.io_seconds for run in self.runs],
            "half_width": self.half_width,
        }


def _t95(free: int) -> float:
    return T_95[min(free, len(T_95)) - 1]


def _mean(runs: Sequence[Measured], figure: Callable[[Measured], float | None]) -> float | None:
    found = [value for run in runs if (value := figure(run)) is not None]
    return statistics.fmean(found) if len(found) == len(runs) else None
