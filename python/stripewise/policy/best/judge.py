"""What decides between plans: simulated seconds of the trace, of likely runs, and of the slower of both, on average.

A plan that follows the trace's chance is quick on the trace alone; one that follows what the heat has wrong is quick on
likely runs alone. Where every place was asked for many times the trace's chance is small, and it counts more. Where
most places were asked for often enough that the same run is worth a plan of its own, no plan counts that is slower in
it than one made for it alone, and of the others the quickest in likely runs. What was searched for with the help of
these runs is held against fresh ones.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ...cluster import Cluster
from ...model.general import Float
from ...plan import Plan
from ...workload.requests import Workload
from ..toolkit.build import slices
from .expected.touched import times_asked
from .trial import Placed, Trials, trial_s
from .tuning import (
    CLOSER,
    FEW_RUNS,
    FRESH_TIMES,
    OFTEN,
    SEEN_POWER,
    SEEN_SLACK,
    SLOWER,
    TIED,
    TIMES,
    UNSEEN,
)


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
        asked, middle, unseen = times_asked(workload)
        known = max(0.0, 1 - unseen / UNSEEN)
        self.told = known * max(0.0, 2 * asked / (asked + TIMES) - 1)
        self.fresh_share = known * asked / (asked + FRESH_TIMES)
        self.likely = list(range(1, 1 + len(runs)))
        self.fresh = list(range(1 + len(runs), 1 + len(runs) + len(fresh)))
        #: Whether no plan counts that is slower in the trace than one made for it alone, and how long that one takes.
        self.repeats, self.least_s = bool(runs) and middle >= OFTEN, 0.0
        #: Requests that were simulated for single plans: what limits a search, whatever the machine.
        self.simulated = 0

    @contextmanager
    def by_trace(self) -> Iterator[None]:
        """Lets the trace alone decide for a while."""
        likely, fresh, self.likely, self.fresh = self.likely, self.fresh, [], []
        try:
            yield
        finally:
            self.likely, self.fresh = likely, fresh

    def all_s(self, plans: Sequence[Plan], bounds_s: Sequence[float], until: float = float("inf")) -> list[Float]:
        """Seconds of the trace and of likely runs of every plan; inf of those that cannot be the quickest, and of those
        with the largest bounds once it is later than `until` (monotonic seconds).
        """
        few = self.likely[:FEW_RUNS]
        if self.repeats:
            # Who is slow in the trace does not count, so the quickest in it alone are run once more.
            traced = trial_s(plans, bounds_s, self.trials, (0,), until)
            found = [np.array([*each, *(np.inf for _ in few)]) for each in traced]
            order = np.argsort([each[0] for each in found], kind="stable")[:CLOSER].tolist()
            for number in dict.fromkeys([0, *order]):
                if np.isfinite(found[number][0]) and (number == 0 or time.monotonic() < until):
                    found[number][1:] = self._seconds_of(plans[number], few)
            return found
        found = list(trial_s(plans, bounds_s, self.trials, [0, *few], until))
        seconds = [self.decides(each) for each in found]
        for number in np.argsort(seconds, kind="stable")[:CLOSER].tolist() if len(self.likely) > len(few) else ():
            if np.isfinite(seconds[number]) and time.monotonic() < until:
                more = self._seconds_of(plans[number], self.likely[FEW_RUNS:])
                found[number] = np.array([*found[number], *more])
        return found

    def one(self, plan: Plan | Placed, than: Judged | None = None) -> Judged | None:
        """One plan; None where its run of the trace is slower than what was judged before by more than a little, or the
        first likely runs tell that it is no quicker.
        """
        placed = self.trials.as_written(plan) if isinstance(plan, Plan) else plan
        (traced,) = self.trials.run(placed)
        self.simulated += self.trials.requests[0]
        slack = SLOWER * (1 - self.told) if self.likely else 0.0
        least_s = self.least_s * (1 + SEEN_SLACK) if self.likely else 0.0
        if than is not None and traced.seconds > max(than.traced_s * (1 + slack), least_s):
            return None
        seconds = np.array([traced.seconds])
        for some in (self.likely[:FEW_RUNS], self.likely[FEW_RUNS:]):
            if not some:
                break
            if len(seconds) > 1 and than and self.decides(seconds) > self.decides(than.runs_s[: len(seconds)]):
                return None
            self.simulated += sum(self.trials.requests[number] for number in some)
            seconds = np.array([*seconds, *(run.seconds for run in self.trials.run(placed, some))])
        return Judged(self.decides(seconds), seconds, traced.busy_s)

    def holds(self, plan: Plan, other: Plan) -> bool:
        """Whether a plan is quicker than the other on runs that neither was made with, where there are such."""
        if not self.fresh:
            return True
        if self.least_s:
            return self.anew(plan) < self.anew(other)
        mine, others = (self._seconds_of(each, [0, *self.fresh]) for each in (plan, other))
        traced, *fresh = np.log(np.array(others) / np.array(mine)).tolist()
        return bool((1 - self.fresh_share) * np.mean(fresh) + self.fresh_share * traced > 0)

    def anew(self, plan: Plan) -> float:
        """Seconds that decide, by the trace and by runs, where there are any, that no layout was made from."""
        return self.decides(np.array(self._seconds_of(plan, [0, *self.fresh])))

    def io_s(self, plan: Plan) -> float:
        """The I/O time of the trace, which is told of a plan."""
        return self.trials.in_flight_s(self.trials.as_written(plan))

    def _seconds_of(self, plan: Plan, which: Sequence[int]) -> list[float]:
        """Seconds of some of the runs."""
        return [run.seconds for run in self.trials.run(self.trials.as_written(plan), which)]

    def decides(self, seconds: Float) -> float:
        """What decides, of the seconds of the trace and of other runs."""
        traced_s = float(seconds[0])
        if len(seconds) == 1 or not np.isfinite(seconds).all():
            return float(seconds.max())
        likely_s = float(seconds[1:].mean())
        if self.least_s:
            return float(likely_s * max(1.0, traced_s / (self.least_s * (1 + SEEN_SLACK))) ** SEEN_POWER)
        return self.told * traced_s + (1 - self.told) * (max(likely_s, traced_s) / 3 + likely_s / 2 + traced_s / 6)


def plainest(plans: Sequence[Plan], seconds: Sequence[float], bounds_s: Sequence[float], chosen: int) -> int:
    """Of the plans that are as good as the chosen one within a hair, by what decides and by their bounds, the one that
    names the fewest slices, which gives no byte a place for nothing; the chosen one among equals.
    """
    most_s, most_bound_s = seconds[chosen] * (1 + TIED), bounds_s[chosen] * (1 + TIED)
    alike = [n for n, each in enumerate(seconds) if each <= most_s and bounds_s[n] <= most_bound_s]
    return min(alike, key=lambda n: (slices(plans[n]), n != chosen, n))
