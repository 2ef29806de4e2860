"""First assignments for the solver, and on large problems most of the way: longest processing time first (Graham).

`greedy` takes every region in turn, the most demanding first, to the server where the busiest then is least busy: the
hottest regions take the swift servers until these are as busy as the slow ones, or full. `spread` follows the linear
programme (`relaxed.py`), which says to what class of servers a region goes: within a class all are alike, and each
region goes where it makes the busiest server least busy, as room lets it. Nothing moves between windows.
"""

from __future__ import annotations

import numpy as np

from ....model.general import Bool, Float, Int
from ...toolkit.assignment import Problem, Solution
from .problem import Posed
from .relaxed import Classes, Relaxed
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


def spread(posed: Posed, classes: Classes, relaxed: Relaxed) -> Int | None:
    """An assignment of shape (1, regions) for a problem of one window; None where something does not fit."""
    dealer = _Dealer(posed, classes)
    problem = posed.problem
    least = np.min([dealer.seconds(number) for number in range(len(dealer.groups))], axis=0)
    result = np.full(problem.regions, -1, dtype=np.int64)
    for region in np.argsort(-least, kind="stable").tolist():
        wanted = int(relaxed.choice[region])
        chosen = dealer.deal(region, wanted) if wanted >= 0 else -1
        if chosen < 0:
            # Room is left in bits: the next best by price, such as a team whose members hold a part each.
            order = np.argsort(dealer.prices(region, relaxed), kind="stable").tolist()
            chosen = next((found for number in order if (found := dealer.deal(region, number)) >= 0), -1)
        if chosen < 0:
            return None
        result[region] = chosen
    return result[None]


class _Dealer:
    """How busy and how full every server is, and the choices of every class side by side."""

    def __init__(self, posed: Posed, classes: Classes) -> None:
        problem = posed.problem
        self.problem = problem
        self._priced: tuple[Float, Float] | None = None
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

    def seconds(self, number: int) -> Float:
        """Of every region on a group of choices: its busiest member's."""
        return np.asarray((self.features[:, self.shapes[number]] @ self.rows[number].T).max(axis=1))

    def prices(self, region: int, relaxed: Relaxed) -> Float:
        """Seconds of the run that the region costs on every group."""
        if self._priced is None:
            first = [self.problem.choices[int(group[0])] for group in self.groups]
            row = [sum(relaxed.resource[at] * np.array(q) for at, q in choice.entries) for choice in first]
            hold = [sum(float(relaxed.space[at]) * share for at, share in choice.shares) for choice in first]
            self._priced = np.array(row), np.array(hold)
        each, room = self._priced
        return np.asarray((self.features[region, self.shapes] * each).sum(axis=1) + self.valid[region] * room)

    def deal(self, region: int, number: int) -> int:
        """Puts the region where, in this group, the busiest member is least busy afterwards; -1 where none has room."""
        members = self.members[number]
        more = self.rows[number] @ self.features[region, self.shapes[number]]
        after = (self.busy[members] + more).max(axis=1)
        after[~self._fits(region, number)] = np.inf
        at = int(after.argmin())
        if not np.isfinite(after[at]):
            return -1
        self.busy[members[at]] += more
        self.free[members[at]] -= self.shares[number] * self.valid[region]
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
