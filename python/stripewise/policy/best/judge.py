"""What decides between plans: simulated seconds of the trace, of likely runs, and of the slower of both, on average.

A plan that follows the trace's chance is quick on the trace alone; one that follows what the heat has wrong is quick on
likely runs alone. Where every place was asked for many times the trace's chance is small, and it counts more. What was
searched for with the help of these runs is held against fresh ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...cluster import Cluster
from ...model.general import Float
from ...plan import Plan
from ...workload.requests import Workload
from ..toolkit.build import slices
from .expected.touched import times_asked
from .trial import Placed, Trials, trial_s
from .tuning import CLOSER, FEW_RUNS, FRESH_TIMES, SLOWER, TIED, TIMES, UNSEEN


@dataclass(frozen=True)
class Judged:
    """Seconds that decide, of the trace and every likely run, and what active servers were busy for in the trace."""

    seconds: float
    runs_s: Float
    busy_s: Float

    @property
    def traced_s(self) -> float:
        """Seconds of the trace."""
        return float(self.runs_s[0])


class Judge:
    """Judges plans of one workload as they would be written.

    `runs` are likely runs, none where the trace alone decides.
    """

    def __init__(
        self, workload: Workload, runs: Sequence[Workload], fresh: Sequence[Workload], cluster: Cluster
    ) -> None:
        self.trials = Trials([workload, *runs, *fresh], cluster)
        asked, unseen = times_asked(workload)
        known = max(0.0, 1 - unseen / UNSEEN)
        self.told = known * max(0.0, 2 * asked / (asked + TIMES) - 1)
        self.fresh_share = known * asked / (asked + FRESH_TIMES)
        self.likely = list(range(1, 1 + len(runs)))
        self.fresh = list(range(1 + len(runs), 1 + len(runs) + len(fresh)))
        #: Requests that were simulated for single plans: what limits a search, whatever the machine.
        self.simulated = 0

    def all_s(self, plans: Sequence[Plan], bounds_s: Sequence[float]) -> tuple[list[float], list[float]]:
        """Seconds that decide, and those of the trace, of every plan; inf of those that cannot be the quickest."""
        few = self.likely[:FEW_RUNS]
        found = trial_s(plans, bounds_s, self.trials, [0, *few])
        seconds = [self._seconds(each) for each in found]
        for number in np.argsort(seconds, kind="stable")[:CLOSER].tolist() if len(self.likely) > len(few) else ():
            if np.isfinite(seconds[number]):
                more = self._seconds_of(plans[number], self.likely[FEW_RUNS:])
                seconds[number] = self._seconds(np.array([*found[number], *more]))
        return seconds, found[:, 0].tolist()

    def one(self, plan: Plan | Placed, than: Judged | None = None) -> Judged | None:
        """One plan; None where its run of the trace is slower than what was judged before by more than a little, or the
        first likely runs tell that it is no quicker.
        """
        placed = self.trials.as_written(plan) if isinstance(plan, Plan) else plan
        (traced,) = self.trials.run(placed)
        self.simulated += self.trials.requests[0]
        slack = SLOWER * (1 - self.told) if self.likely else 0.0
        if than is not None and traced.seconds > than.traced_s * (1 + slack):
            return None
        seconds = np.array([traced.seconds])
        for some in (self.likely[:FEW_RUNS], self.likely[FEW_RUNS:]):
            if not some:
                break
            if len(seconds) > 1 and than and self._seconds(seconds) > self._seconds(than.runs_s[: len(seconds)]):
                return None
            self.simulated += sum(self.trials.requests[number] for number in some)
            seconds = np.array([*seconds, *(run.seconds for run in self.trials.run(placed, some))])
        return Judged(self._seconds(seconds), seconds, traced.busy_s)

    def holds(self, plan: Plan, other: Plan) -> bool:
        """Whether a plan is quicker than the other on runs that neither was made with, where there are such."""
        if not self.fresh:
            return True
        mine, others = (self._seconds_of(each, [0, *self.fresh]) for each in (plan, other))
        traced, *fresh = np.log(np.array(others) / np.array(mine)).tolist()
        return bool((1 - self.fresh_share) * np.mean(fresh) + self.fresh_share * traced > 0)

    def anew(self, plan: Plan) -> float:
        """Seconds that decide, by the trace and by runs, where there are any, that no layout was made from."""
        return self._seconds(np.array(self._seconds_of(plan, [0, *self.fresh])))

    def io_s(self, plan: Plan) -> float:
        """The I/O time of the trace, which is told of a plan."""
        return self.trials.in_flight_s(self.trials.as_written(plan))

    def _seconds_of(self, plan: Plan, which: Sequence[int]) -> list[float]:
        """Seconds of some of the runs."""
        return [run.seconds for run in self.trials.run(self.trials.as_written(plan), which)]

    def _seconds(self, seconds: Float) -> float:
        """What decides, of the seconds of the trace and of other runs."""
        traced_s = float(seconds[0])
        if len(seconds) == 1 or not np.isfinite(seconds).all():
            return float(seconds.max())
        likely_s = float(seconds[1:].mean())
        return self.told * traced_s + (1 - self.told) * (max(likely_s, traced_s) / 3 + likely_s / 2 + traced_s / 6)


def plainest(plans: Sequence[Plan], seconds: Sequence[float], bounds_s: Sequence[float], chosen: int) -> int:
    """Of the plans that are as good as the chosen one within a hair, by what decides and by their bounds, the one that
    names the fewest slices, which gives no byte a place for nothing; the chosen one among equals.
    """
    most_s, most_bound_s = seconds[chosen] * (1 + TIED), bounds_s[chosen] * (1 + TIED)
    alike = [n for n, each in enumerate(seconds) if each <= most_s and bounds_s[n] <= most_bound_s]
    return min(alike, key=lambda n: (slices(plans[n]), n != chosen, n))
