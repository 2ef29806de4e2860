"""The problem with divisible regions, over classes of servers that are alike: a linear programme, solved by HiGHS.

Servers with the same figures and the same room may be given the same prices: the dual is concave and does not change
when they change places, so the mean over all their orders proves as much. So a class of a thousand servers is one
resource whose load is the mean of its members' and one room that is their sum, and the programme grows with kinds of
servers, not with their number:

    min Z   such that   sum_gc x_gc L_gc,R <= Z for every resource R,   sum_c x_gc = 1,   room of every class kept

Its duals are the prices of the proof (`limits.py` evaluates them exactly), its x say to what class a region goes;
within a class regions are dealt out by longest processing time (`start.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....cluster import Cluster
from ....model.general import Float, Int
from ...toolkit.assignment import Solution
from ..proven.proof import Priced
from .demand import FEATURES
from .problem import Posed

#: Columns that are solved quickly enough.
COLUMNS_MAX = 400_000
#: Entries smaller than this part of the column's largest are left out: HiGHS would round them to nothing anyhow.
TINY = 1e-12
#: A share of a region from which on it counts as the whole.
WHOLE = 1e-6
#: Of HiGHS.
SOLVER = "simplex"


@dataclass(frozen=True)
class Classes:
    """Servers, resources and choices by what they are alike in."""

    #: Of every server, every resource and every choice: its class.
    server: Int
    resource: Int
    choice: Int
    #: How many of each there are.
    servers: Int
    resources: Int

    @property
    def choices(self) -> int:
        """How many classes of choices there are."""
        return int(self.choice.max()) + 1


def classes_of(cluster: Cluster, capacity: Float) -> Int:
    """The class of every active target: same figures, same room."""
    found: dict[tuple[float, ...], int] = {}
    keys = [
        (t.startup_read_s, t.startup_write_s, t.per_byte_read_s, t.per_byte_write_s, t.channels, float(room))
        for t, room in zip(cluster.active, capacity, strict=True)
    ]
    return np.array([found.setdefault(key, len(found)) for key in keys], dtype=np.int64)


def classed(posed: Posed) -> Classes:
    """The classes of a problem."""
    ground, problem = posed.ground, posed.problem
    server = classes_of(ground.cluster, ground.capacity)
    kinds = int(server.max()) + 1
    # Servers, the requests' time, and on a network links and connections of servers, then those of nodes.
    resource = [*server, kinds]
    if posed.network:
        resource += [*(kinds + 1 + server), *(2 * kinds + 1 + server), 3 * kinds + 1, 3 * kinds + 2]
    of = np.array(resource, dtype=np.int64)
    found: dict[tuple[object, ...], int] = {}
    choice = np.empty(len(problem.choices), dtype=np.int64)
    for number, each in enumerate(problem.choices):
        loads = tuple(sorted((int(of[at]), row) for at, row in each.entries))
        shares = tuple(sorted((int(server[at]), share) for at, share in each.shares))
        choice[number] = found.setdefault((each.shape, loads, shares), len(found))
    return Classes(server, of, choice, np.bincount(server, minlength=kinds), np.bincount(of))


@dataclass(frozen=True, eq=False)
class Relaxed:
    """One window's solution: prices by resource and by server, and the class of choices that most of a region takes."""

    seconds: float
    resource: Float
    space: Float
    choice: Int
    #: Seconds for which a single region keeps one server busy at most.
    longest_s: float


def solve_relaxed(
    posed: Posed, classes: Classes, window: int, seconds: float, longest_s: float = np.inf
) -> Relaxed | None:
    """The programme of one window; None where it is too large, or found no end in time.

    No region is given a choice on which it keeps one member busy for more than `longest_s`, if it has another one: a
    region does lie on some server, so a class's mean tells too little of it (Lenstra, Shmoys, Tardos 1990). Prices then
    prove less than those of the programme without it.
    """
    model = _Model(posed, classes, window, longest_s)
    if len(model.touched) * classes.choices > COLUMNS_MAX or not len(model.touched):
        return None
    return model.solve(seconds)


class _Model:
    """The programme while it is written down: a column per touched region and class of choices, then Z and the rest."""

    def __init__(self, posed: Posed, classes: Classes, window: int, longest_s: float) -> None:
        self.posed, self.classes, self.longest_s = posed, classes, longest_s
        problem = posed.problem
        self.features = problem.features[window]
        self.valid = problem.valid_bytes
        touched = np.flatnonzero(self.features.any(axis=(1, 2)))
        idle = np.ones(problem.regions, dtype=bool)
        idle[touched] = False
        # Regions that ask for the same are one column with a multiplicity: there are few kinds of cold ones.
        key = np.column_stack(
            [self.features[touched].reshape(len(touched), self.features[0].size), self.valid[touched]]
        )
        _, first, inverse, self.many = np.unique(
            key, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        self.touched = touched[first]
        self.alike = [
            touched[part] for part in np.split(np.argsort(inverse.ravel(), kind="stable"), np.cumsum(self.many)[:-1])
        ]
        self.idle_bytes = float(self.valid[idle].sum())
        rooms = np.bincount(classes.server, weights=posed.ground.capacity)
        self.limited = np.flatnonzero(np.isfinite(rooms) & (rooms > 0))
        self.rooms = rooms
        self.first = [int(np.flatnonzero(classes.choice == number)[0]) for number in range(classes.choices)]

    def _loads(self, choice: int) -> tuple[Float, Float]:
        """Of one choice: seconds per feature on every class of resources, the mean of its members, and its shares."""
        loads = np.zeros((len(self.classes.resources), FEATURES))
        shares = np.zeros(len(self.classes.servers))
        each = self.posed.problem.choices[choice]
        for at, row in each.entries:
            of = self.classes.resource[at]
            loads[of] += np.array(row) / self.classes.resources[of]
        for at, share in each.shares:
            shares[self.classes.server[at]] += share
        return loads, shares

    def longest(self) -> Float:
        """Seconds that a region keeps the busiest server of a choice busy, by class of choices and touched region."""
        servers = len(self.classes.server)
        found = []
        for number in self.first:
            choice = self.posed.problem.choices[number]
            rows = np.array([row for at, row in choice.entries if at < servers])
            found.append((self.features[self.touched, choice.shape] @ rows.T).max(axis=1))
        return np.array(found)

    def solve(self, seconds: float) -> Relaxed | None:
        """Runs HiGHS, which is loaded here: the rest of the package does not need it."""
        import highspy

        regions, resources = len(self.touched), len(self.classes.resources)
        longest = self.longest()
        open_to = longest <= np.maximum(self.longest_s, longest.min(axis=0))
        columns, rows, values = [], [], []
        scale = 1.0
        for number, choice in enumerate(self.first):
            loads, shares = self._loads(choice)
            shape = self.posed.problem.choices[choice].shape
            busy = self.features[self.touched, shape] @ loads.T
            if not number:
                scale = max(float(busy.sum(axis=0).max()), 1e-300)
            room = self.valid[self.touched, None] * shares[self.limited] / self.rooms[self.limited]
            column = number * regions + np.arange(regions)
            one = np.ones((regions, 1))
            whole = np.concatenate([busy / scale, room, one], axis=1)
            at = np.empty_like(whole, dtype=np.int64)
            at[:, :-1] = np.arange(resources + len(self.limited))
            at[:, -1] = resources + len(self.limited) + np.arange(regions)
            held = (whole > TINY) & open_to[number, :, None]
            columns.append(np.broadcast_to(column[:, None], whole.shape)[held])
            rows.append(at[held])
            values.append(whole[held])
        count = regions * len(self.first)
        # Z, then the share of every class that what no request touches takes: by room alone.
        columns.append(np.full(resources, count))
        rows.append(np.arange(resources))
        values.append(np.full(resources, -1.0))
        idle = len(self.limited) if len(self.limited) == len(self.rooms) and self.idle_bytes else 0
        row = resources + len(self.limited) + regions
        for number in range(idle):
            columns.append(np.array([count + 1 + number] * 2))
            rows.append(np.array([resources + number, row]))
            values.append(np.array([self.idle_bytes / self.rooms[self.limited[number]], 1.0]))
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = count + 1 + idle, row + bool(idle)
        cost = np.zeros(lp.num_col_)
        cost[count] = 1.0
        lp.col_cost_, lp.col_lower_ = cost, np.zeros(lp.num_col_)
        # A choice that a region has not is a column of nothing, which stays at 0.
        lp.col_upper_ = np.full(lp.num_col_, np.inf)
        lp.col_upper_[:count] = np.where(open_to.ravel(), np.inf, 0.0)
        each = np.concatenate([self.many.astype(np.float64), np.ones(int(bool(idle)))])
        lp.row_lower_ = np.concatenate([np.full(resources + len(self.limited), -np.inf), each])
        lp.row_upper_ = np.concatenate([np.zeros(resources), np.ones(len(self.limited)), each])
        column, at, value = (np.concatenate(part) for part in (columns, rows, values))
        order = np.argsort(column, kind="stable")
        matrix = lp.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kColwise
        matrix.start_ = np.searchsorted(column[order], np.arange(lp.num_col_ + 1))
        matrix.index_, matrix.value_ = at[order], value[order]
        highs = highspy.Highs()  # type: ignore[no-untyped-call]
        highs.silent()
        highs.setOptionValue("time_limit", max(0.1, seconds))
        highs.setOptionValue("threads", 1)
        highs.setOptionValue("solver", SOLVER)
        highs.passModel(lp)
        highs.run()
        solution = highs.getSolution()
        if not solution.value_valid or not solution.dual_valid:
            return None
        taken = np.array(solution.col_value[:count]).reshape(len(self.first), regions)
        duals = -np.array(solution.row_dual)
        return self._told(scale * solution.col_value[count], duals, taken, scale)

    def _told(self, seconds: float, duals: Float, taken: Float, scale: float) -> Relaxed | None:
        classes = self.classes
        price = np.maximum(duals[: len(classes.resources)], 0.0)
        if not price.sum() > 0:
            return None
        price /= price.sum()
        room = np.zeros(len(self.rooms))
        paid = np.maximum(duals[len(classes.resources) :][: len(self.limited)], 0.0)
        room[self.limited] = paid * scale / self.rooms[self.limited]
        choice = np.full(len(self.valid), -1, dtype=np.int64)
        # Where its time ends HiGHS tells the point that it is at, which may have shares below none.
        whole = np.floor(np.maximum(taken, 0.0) + WHOLE)
        for kind, regions in enumerate(self.alike):
            # What is left after whole regions goes by the largest rest.
            left = int(self.many[kind] - whole[:, kind].sum())
            if left > 0:
                whole[np.argsort(whole[:, kind] - taken[:, kind], kind="stable")[:left], kind] += 1
            choice[regions] = np.repeat(np.arange(len(whole)), whole[:, kind].astype(np.int64))[: len(regions)]
        longest_s = float(np.where(whole > 0, self.longest(), 0.0).max())
        resource = (price / classes.resources)[classes.resource]
        return Relaxed(seconds, np.asarray(resource), np.asarray(room[classes.server]), choice, longest_s)


def prices_found(posed: Posed, solution: Solution | None, relaxed: Sequence[Relaxed | None]) -> list[list[Priced]]:
    """The prices of every window that the solver and the linear programme over classes found."""
    found: list[list[Priced]] = [[] for _ in relaxed]
    for window, programme in enumerate(relaxed):
        if solution is not None:
            found[window].append(Priced(posed.prices(solution.prices[window]), solution.room_prices[window]))
        if programme is not None:
            found[window].append(Priced(posed.prices(programme.resource), programme.space))
    return found
