"""A first assignment: every region in turn, the most demanding first, where the busiest server then is least busy.

Greedy scheduling by longest processing time (Graham's rule) on uneven servers with limited space: the hottest regions
take the swift servers until these are as busy as the slow ones, or full. Nothing moves between windows. The solver
makes it better; on large problems it is most of the way.
"""

from __future__ import annotations

import numpy as np

from ...model.general import Int
from ..assignment import Problem
from .teams import Team


def greedy(problem: Problem, teams: tuple[Team, ...]) -> Int | None:
    """An assignment of shape (windows, regions) to single servers; None where it does not fit so."""
    alone = [number for number, team in enumerate(teams) if team.is_one]
    servers = np.array([problem.choices[number].shares[0][0] for number in alone])
    shape = problem.choices[alone[0]].shape
    # Seconds per feature of every server, in the order of `alone`.
    seconds = np.array(
        [dict(problem.choices[number].entries)[server] for number, server in zip(alone, servers, strict=True)]
    )
    features = problem.features[:, :, shape]
    asked = features @ seconds.mean(axis=0)
    window_s = np.maximum(asked.sum(axis=1), 1e-12)
    load = np.zeros((problem.windows, len(alone)))
    free = problem.capacity[servers].copy()
    result = np.zeros((problem.windows, problem.regions), dtype=np.int64)
    for region in np.argsort(-(asked / window_s[:, None]).sum(axis=0), kind="stable").tolist():
        after = load + features[:, region] @ seconds.T
        busiest = (after / window_s[:, None]).max(axis=0)
        busiest[free < problem.valid_bytes[region]] = np.inf
        here = int(busiest.argmin())
        if not np.isfinite(busiest[here]):
            return None
        load[:, here] = after[:, here]
        free[here] -= problem.valid_bytes[region]
        result[:, region] = alone[here]
    return result
