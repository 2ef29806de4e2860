"""`best` beside the portfolio, seen and unseen: python -m portfolio.compare FIRST END [--limit S] [--best-limit S]

Both plan from run 0 of an instance; runs 1 to 3 are the ones that neither has seen. A line per instance, the losing
ones listed at the end.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass

import numpy as np

from stripewise.plan import Plan
from stripewise.policy import POLICIES, PlanOptions, plan_by

from .cells import by_request
from .heuristics import layouts, quickest
from .instances import Instance, instance
from .judge import as_plan, fits, plan_s

#: Runs that no plan has seen.
UNSEEN = (1, 2, 3)
#: Seen requests tell something where half of the cells that are asked for have so many of them. (The mean is no
#: measure: a few hot cells have it above this where most cells were asked for once.)
TOLD = 30.0


@dataclass(frozen=True)
class Verdict:
    """`best` over the portfolio's quickest in simulated seconds: above 1, best is behind."""

    number: int
    seen: float
    unseen: float
    #: The same over the heuristic that is quickest on unseen requests, if asked for: nobody can know it before.
    hindsight: float
    #: Requests of a cell that is asked for, in the middle.
    told: float
    #: What the plan says nobody can undercut, over the least seconds of both: above 1 it is wrong.
    proven: float
    name: str
    best_s: float
    planned_s: float

    @property
    def binding(self) -> float:
        """What counts: unseen requests, and seen ones where there are enough of each cell."""
        return max(self.seen, self.unseen) if self.told >= TOLD else self.unseen


def compare(number: int, limit_s: float, best_limit_s: float | None = None, hindsight: bool = False) -> Verdict:
    """One instance, both planning from its run 0."""
    of = instance(number)
    seen = of.workload(0)
    begun = time.monotonic()
    plan = plan_by(POLICIES["best"], seen, of.cluster, PlanOptions(time_limit_s=best_limit_s or limit_s))
    planned_s = time.monotonic() - begun
    assert fits(of, plan), f"instance {number}: best overfills a target"
    found = quickest(of, seen, limit_s)
    other = as_plan(found.layout, seen)
    best_s = plan_s(of, plan, seen)
    assert plan.expected.proven_continued_s is not None
    proven = plan.expected.proven_continued_s / min(best_s, found.seconds)
    others = [as_plan(layout, seen) for layout in layouts(of, seen, limit_s)] if hindsight else []
    unseen, least = _unseen(of, plan, [other, *others])
    return Verdict(
        number, best_s / found.seconds, unseen, least, _told(of), proven, found.name, best_s, planned_s,
    )  # fmt: skip


def _unseen(of: Instance, plan: Plan, others: list[Plan]) -> tuple[float, float]:
    """Geometric means over the runs not seen, each run under both: over the first of the others, and the least."""
    runs = [of.workload(seed) for seed in UNSEEN]
    taken = [plan_s(of, plan, run) for run in runs]
    found = [
        float(statistics.geometric_mean(mine / plan_s(of, other, run) for mine, run in zip(taken, runs, strict=True)))
        for other in others
    ]
    return found[0], max(found)


def _told(of: Instance) -> float:
    cells = by_request(of.workload(0))
    if cells is None:
        return 0.0
    asked = cells.count.sum(axis=1)
    return float(np.median(asked[asked > 0])) if asked.any() else 0.0


def main() -> None:
    """The table of a range of instances."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds of the portfolio for each")
    parser.add_argument("--best-limit", type=float, default=None, help="seconds of best, if others")
    parser.add_argument("--hindsight", action="store_true", help="look for the quickest heuristic on unseen runs, too")
    given = parser.parse_args()
    verdicts = []
    print("instance   seen unseen hindsight requests proven   best s  planned s  portfolio", flush=True)
    for number in range(given.first, given.end):
        found = compare(number, given.limit, given.best_limit, given.hindsight)
        verdicts.append(found)
        print(
            f"{number:8} {found.seen:6.3f} {found.unseen:6.3f} {found.hindsight:9.3f} {found.told:8.1f} "
            f"{found.proven:6.3f} {found.best_s:8.3f} {found.planned_s:10.1f}  {found.name}",
            flush=True,
        )
    behind = [each for each in verdicts if each.binding > 1.01]
    late = [each.number for each in verdicts if each.hindsight > 1.01]
    worst = max(verdicts, key=lambda each: each.binding)
    wrong = [each.number for each in verdicts if each.proven > 1 + 1e-9]
    print(f"best behind by more than 1 % in {len(behind)} of {len(verdicts)}: {[each.number for each in behind]}")
    if given.hindsight:
        print(f"behind the heuristic that hindsight would take in {len(late)}: {late}")
    print(f"worst: instance {worst.number}, {worst.binding:.3f}; proven above a layout that exists in {wrong}")


if __name__ == "__main__":
    main()
