"""Small problems solved to the end: a mixed-integer programme over real requests, by HiGHS.

With a handful of regions chance is no longer evened out and every request counts, so the choices are priced by the very
requests: each subset of servers, with widths that let all members end together, equal ones, and one part of the region
per server, and pairs for heads and tails where sizes are nested (`heads.py`). One binary variable per region, window
and choice, one variable for the makespan of every window:

    min sum_w Z_w   such that   Z_w >= L_iw + copies,   Z_w >= sum_j T_j / p,   one choice each,   space kept

The result is optimal over these choices up to the gap that HiGHS reports.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ....layout import Stripes, share_bytes
from ....model import Bound
from ....units import GRANULE_BYTES, round_up
from ...toolkit.pricing import plan_bound
from ...toolkit.regions import RegionTable
from ..tuning import MEMBERS_MAX, NODES_MAX
from .layout import copy_demand
from .problem import Ground
from .teams import Mix, split_bytes, stripes_of

if TYPE_CHECKING:
    import highspy


def homes(ground: Ground, piece: int) -> list[Stripes]:
    """The choices for a piece; every subset of at most MEMBERS_MAX servers."""
    targets = ground.cluster.active
    length = int(ground.cuts.length[piece])
    request_bytes = max(1, int(ground.request_bytes[piece]))
    mix = Mix(float(ground.write_share[piece]))
    found: dict[Stripes, None] = {((target.name, length),): None for target in targets}
    for size in range(2, min(MEMBERS_MAX, len(targets)) + 1):
        for members in combinations(targets, size):
            balanced, _ = split_bytes(members, request_bytes, mix)
            equal = round_up(-(-request_bytes // size))
            part = round_up(-(-int(ground.whole.valid_bytes[piece]) // size))
            for widths in (balanced, [equal] * size, [part] * size):
                stripes = tuple((target.name, width) for target, width in zip(members, widths, strict=True) if width)
                if len(stripes) == size:
                    found[stripes] = None
    for team in ground.headed:
        found[stripes_of(team, length, request_bytes, mix, 0)] = None
    return list(found)


def count_of(ground: Ground) -> int:
    """Binary variables that the programme would have, counted no further than they matter."""
    servers = len(ground.cluster.active)
    each = servers + len(ground.headed)
    for size in range(2, min(MEMBERS_MAX, servers) + 1):
        subsets = 1
        for number in range(size):
            subsets = subsets * (servers - number) // (number + 1)
        each += 3 * subsets
    return each * ground.cuts.pieces * len(ground.windows)


def solve_exactly(ground: Ground, seconds: float) -> list[list[Stripes]] | None:
    """The optimal stripes of every piece in every window; None where none was found in time, or the data do not fit."""
    model = _Model(ground)
    return model.solve(seconds)


class _Model:
    """The programme while it is written down."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.choices = [homes(ground, piece) for piece in range(ground.cuts.pieces)]
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.cost: list[float] = []
        self.whole: list[bool] = []
        self.rows: list[tuple[float, float, dict[int, float]]] = []
        windows = range(len(ground.windows))
        self.makespan = [self._variable(1.0, np.inf, False) for _ in windows]
        self.chosen = [[[self._variable(0.0, 1.0, True) for _ in stripes] for stripes in self.choices] for _ in windows]
        self.demand: list[dict[str, dict[int, float]]] = [{} for _ in windows]
        for window in windows:
            self._window(window)

    def _variable(self, cost: float, upper: float, whole: bool) -> int:
        self.lower.append(0.0)
        self.upper.append(upper)
        self.cost.append(cost)
        self.whole.append(whole)
        return len(self.cost) - 1

    def _window(self, window: int) -> None:
        ground = self.ground
        table = ground.windows[window]
        alone: dict[int, float] = {}
        space: dict[str, dict[int, float]] = {}
        for piece, stripes in enumerate(self.choices):
            of = self.chosen[window][piece]
            self.rows.append((1.0, 1.0, dict.fromkeys(of, 1.0)))
            valid = int(ground.whole.valid_bytes[piece])
            for variable, each in zip(of, stripes, strict=True):
                if table is not None and table.first[piece + 1] > table.first[piece]:
                    bound = _bound_of(table, ground, piece, each)
                    for name, seconds in bound.demand_s.items():
                        self._load(window, name, variable, seconds)
                    alone[variable] = bound.alone_s / ground.processes
                for name, share in share_bytes(each, valid).items():
                    space.setdefault(name, {})[variable] = float(round_up(share))
            if window:
                self._moves(window, piece)
        for target, capacity in zip(ground.cluster.active, ground.capacity, strict=True):
            if np.isfinite(capacity) and target.name in space:
                # In granules: numbers near 1 keep the solver's tolerances meaningful.
                scaled = {variable: held / GRANULE_BYTES for variable, held in space[target.name].items()}
                self.rows.append((-np.inf, float(capacity // GRANULE_BYTES), scaled))
        for loads in (*self.demand[window].values(), alone):
            self.rows.append((-np.inf, 0.0, {**loads, self.makespan[window]: -1.0}))

    def _load(self, window: int, name: str, variable: int, seconds: float) -> None:
        if seconds:
            loads = self.demand[window].setdefault(name, {})
            loads[variable] = loads.get(variable, 0.0) + seconds

    def _moves(self, window: int, piece: int) -> None:
        """A variable per choice that is 1 when the piece leaves it, and one when it comes to it."""
        ground = self.ground
        targets = {target.name: target for target in ground.cluster.targets}
        valid = int(ground.whole.valid_bytes[piece])
        before, now = self.chosen[window - 1][piece], self.chosen[window][piece]
        for was, becomes, stripes in zip(before, now, self.choices[piece], strict=True):
            for more, less, write in ((was, becomes, False), (becomes, was, True)):
                moved = self._variable(0.0, 1.0, False)
                self.rows.append((-np.inf, 0.0, {more: 1.0, less: -1.0, moved: -1.0}))
                for name, seconds in copy_demand(stripes, valid, write, targets).items():
                    self._load(window, name, moved, seconds)

    def solve(self, seconds: float) -> list[list[Stripes]] | None:
        """Runs HiGHS, which is loaded here: few plans need it."""
        import highspy

        highs = highspy.Highs()  # type: ignore[no-untyped-call]
        highs.silent()
        highs.setOptionValue("time_limit", max(0.1, seconds))
        highs.setOptionValue("mip_rel_gap", 1e-3)
        highs.setOptionValue("mip_max_nodes", NODES_MAX)
        highs.setOptionValue("threads", 1)
        highs.passModel(self._lp())
        highs.run()
        solution = highs.getSolution()
        if not solution.value_valid:
            return None
        values = np.array(solution.col_value)
        return [
            [stripes[int(values[of].argmax())] for of, stripes in zip(window, self.choices, strict=True)]
            for window in self.chosen
        ]

    def _lp(self) -> highspy.HighsLp:
        import highspy

        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.cost), len(self.rows)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = (np.array(each) for each in (self.cost, self.lower, self.upper))
        lp.row_lower_ = np.array([low for low, _, _ in self.rows])
        lp.row_upper_ = np.array([high for _, high, _ in self.rows])
        matrix = lp.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.start_ = np.cumsum([0, *(len(row) for _, _, row in self.rows)])
        matrix.index_ = np.array([column for _, _, row in self.rows for column in row])
        matrix.value_ = np.array([value for _, _, row in self.rows for value in row.values()])
        kinds = highspy.HighsVarType
        lp.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in self.whole]
        return lp


def _bound_of(table: RegionTable, ground: Ground, piece: int, stripes: Stripes) -> Bound:
    """The demands of one piece's requests on one choice."""
    placed: list[Stripes] = [()] * table.regions
    placed[piece] = stripes
    return plan_bound(_only(table, piece), ground.cluster, placed)


def _only(table: RegionTable, piece: int) -> RegionTable:
    """The table with the requests of one piece alone."""
    low, high = int(table.first[piece]), int(table.first[piece + 1])
    rows = slice(low, high)
    first = np.where(np.arange(table.regions + 1) > piece, high - low, 0)
    asked = np.zeros_like(table.request_bytes)
    asked[piece] = table.request_bytes[piece]
    return RegionTable(
        table.region_bytes, table.file, table.number, table.valid_bytes, asked, first,
        table.offset[rows], table.size[rows], table.write[rows], table.count[rows],
    )  # fmt: skip
