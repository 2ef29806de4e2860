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
from .expected.touched import times_asked
from .trial import Trial, trial_s
from .tuning import FRESH_TIMES, SLOWER, TIMES


@dataclass(frozen=True)
class Judged:
    """Seconds that decide, those of the trace, and what every active server was busy for in the trace."""

    seconds: float
    traced_s: float
    busy_s: Float


class Judge:
    """Judges plans of one workload; `runs` are likely ones, none where the trace alone decides."""

    def __init__(
        self, workload: Workload, runs: Sequence[Workload], fresh: Sequence[Workload], cluster: Cluster
    ) -> None:
        self.cluster = cluster
        self.traced = Trial(workload, cluster)
        asked = times_asked(workload)
        self.told, self.fresh_share = max(0.0, 2 * asked / (asked + TIMES) - 1), asked / (asked + FRESH_TIMES)
        self.likely = [Trial(run, cluster) for run in runs]
        self.fresh = [Trial(run, cluster) for run in fresh]
        #: Requests that were simulated for single plans: what limits a search, whatever the machine.
        self.simulated = 0

    def all_s(self, plans: Sequence[Plan], bounds_s: Sequence[float]) -> tuple[list[float], list[float]]:
        """Seconds that decide, and those of the trace, of every plan; inf of those that cannot be the quickest."""
        traced_s = trial_s(plans, bounds_s, self.traced)
        if not self.likely:
            return traced_s, list(traced_s)
        likely_s = np.mean([trial_s(plans, bounds_s, trial) for trial in self.likely], axis=0)
        return [self._seconds(each, float(likely)) for each, likely in zip(traced_s, likely_s, strict=True)], traced_s

    def one(self, plan: Plan, than: Judged | None = None) -> Judged | None:
        """One plan; None where its run of the trace is slower than what was judged before by more than a little."""
        traced = self.traced.run(plan)
        self.simulated += self.traced.requests
        if than is not None and traced.seconds > than.traced_s * (1 + SLOWER * bool(self.likely)):
            return None
        seconds = traced.seconds
        if self.likely:
            self.simulated += sum(trial.requests for trial in self.likely)
            seconds = self._seconds(seconds, float(np.mean([trial.run(plan).seconds for trial in self.likely])))
        busy_s = np.array([traced.busy_s.get(target.name, 0.0) for target in self.cluster.active])
        return Judged(seconds, traced.seconds, busy_s)

    def holds(self, plan: Plan, other: Plan) -> bool:
        """Whether a plan is quicker than the other on runs that neither was made with, where there are such."""
        if not self.fresh:
            return True

        def gained(trial: Trial) -> float:
            return float(np.log(trial.run(other).seconds / trial.run(plan).seconds))

        fresh = float(np.mean([gained(trial) for trial in self.fresh]))
        return (1 - self.fresh_share) * fresh + self.fresh_share * gained(self.traced) > 0

    def _seconds(self, traced_s: float, likely_s: float) -> float:
        if np.isinf(traced_s + likely_s):
            return float("inf")
        return self.told * traced_s + (1 - self.told) * (max(likely_s, traced_s) + likely_s + traced_s) / 3
