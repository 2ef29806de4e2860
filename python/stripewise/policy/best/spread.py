"""From classes of servers to servers: regions dealt out within their class by longest processing time.

The linear programme (`relaxed.py`) says to what class of servers a region goes. Within a class all are alike, so the
most demanding region comes first, and each goes where it makes the busiest server least busy, as room lets it. With
many regions per server that is all there is to do; else it is where the solver starts.
"""

from __future__ import annotations

import numpy as np

from ...model.general import Bool, Float, Int
from ..assignment import Solution
from .problem import Posed
from .relaxed import Classes, Relaxed


def spread(posed: Posed, classes: Classes, relaxed: Relaxed) -> Int | None:
    """An assignment of shape (1, regions) for a problem of one window; None where something does not fit."""
    dealer = _Dealer(posed, classes)
    problem = posed.problem
    least = np.full(problem.regions, np.inf)
    for of in dealer.groups:
        least = np.minimum(least, dealer.seconds(of))
    result = np.full(problem.regions, -1, dtype=np.int64)
    for region in np.argsort(-least, kind="stable").tolist():
        wanted = int(relaxed.choice[region])
        chosen = dealer.deal(region, [wanted] if wanted >= 0 else [])
        if chosen < 0:
            chosen = dealer.deal(region, dealer.alone)
        if chosen < 0:
            return None
        result[region] = chosen
    return result[None]


class _Dealer:
    """How busy and how full every server is, and the choices of every class side by side."""

    def __init__(self, posed: Posed, classes: Classes) -> None:
        problem = posed.problem
        self.features, self.valid = problem.features[0], problem.valid_bytes
        self.busy = np.zeros(len(problem.capacity))
        self.free = problem.capacity.copy()
        self.groups = [np.flatnonzero(classes.choice == number) for number in range(classes.choices)]
        self.members, self.shares, self.rows, self.shapes = [], [], [], []
        for of in self.groups:
            each = [problem.choices[number] for number in of.tolist()]
            self.members.append(np.array([[at for at, _ in choice.shares] for choice in each]))
            self.shares.append(np.array([share for _, share in each[0].shares]))
            rows = dict(each[0].entries)
            self.rows.append(np.array([rows[at] for at, _ in each[0].shares]))
            self.shapes.append(each[0].shape)
        self.alone = [number for number, members in enumerate(self.members) if members.shape[1] == 1]

    def seconds(self, of: Int) -> Float:
        """Of every region on a group of choices, by the number of its class: its busiest member's."""
        number = next(at for at, group in enumerate(self.groups) if group is of)
        return np.asarray((self.features[:, self.shapes[number]] @ self.rows[number].T).max(axis=1))

    def deal(self, region: int, groups: list[int]) -> int:
        """Puts the region where the busiest member is least busy afterwards, of the choices of these classes; -1 where
        none has room."""
        best, chosen = np.inf, (-1, 0)
        for number in groups:
            members = self.members[number]
            more = self.rows[number] @ self.features[region, self.shapes[number]]
            after = (self.busy[members] + more).max(axis=1)
            after[~self._fits(region, number)] = np.inf
            at = int(after.argmin())
            if after[at] < best:
                best, chosen = float(after[at]), (number, at)
        number, at = chosen
        if number < 0:
            return -1
        members = self.members[number][at]
        self.busy[members] += self.rows[number] @ self.features[region, self.shapes[number]]
        self.free[members] -= self.shares[number] * self.valid[region]
        return int(self.groups[number][at])

    def _fits(self, region: int, number: int) -> Bool:
        return np.asarray((self.free[self.members[number]] >= self.shares[number] * self.valid[region]).all(axis=1))


def as_solution(posed: Posed, assignment: Int, relaxed: Relaxed) -> Solution:
    """An assignment of one window with the prices of the linear programme, as the solver would give it."""
    problem = posed.problem
    busy = np.zeros(problem.resources)
    for number in np.unique(assignment[0]).tolist():
        choice = problem.choices[number]
        total = problem.features[0, assignment[0] == number, choice.shape].sum(axis=0)
        for at, row in choice.entries:
            busy[at] += float(total @ np.array(row))
    seconds = float(busy.max())
    return Solution(assignment, (seconds,), min(relaxed.seconds, seconds), relaxed.resource[None], relaxed.space[None])
