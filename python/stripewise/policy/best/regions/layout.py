"""From the solver's choices to stripes: every piece's home in every window, the moves between, and what that is worth.

The solver counts space in shares and takes a move's two copies for one; here every slice is counted on its target and
both copies are held at once, move by move. What does not fit stays where it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ....cluster import Cluster, Target
from ....layout import Stripes, share_bytes
from ....model import Bound
from ....model.general import Float, Int
from ....units import format_size, round_up
from ....workload.requests import Workload
from ...base import PlanOptions
from ...toolkit.build import region_name
from ...toolkit.copying import COPY_CHUNK_BYTES
from ...toolkit.pricing import plan_bound
from ...toolkit.space import Space
from .heads import is_headed
from .problem import Ground, Posed


@dataclass(frozen=True)
class Layout:
    """Stripes of every piece in every window, and the moves that lead from one window to the next, in their order."""

    placed: tuple[tuple[Stripes, ...], ...]
    moves: tuple[tuple[tuple[int, Stripes, Stripes], ...], ...]

    @property
    def first(self) -> tuple[Stripes, ...]:
        """Window 0."""
        return self.placed[0]


def lay_out(posed: Posed, assignment: Int, workload: Workload, options: PlanOptions) -> Layout:
    """The layout of an assignment of shape (windows, pieces).

    Raises PlanError, naming file and region, when the data do not fit.
    """
    made: dict[tuple[int, int], Stripes] = {}

    def stripes(piece: int, choice: int) -> Stripes:
        if (piece, choice) not in made:
            made[piece, choice] = posed.stripes(piece, choice)
        return made[piece, choice]

    wanted = [[stripes(piece, choice) for piece, choice in enumerate(choices)] for choices in assignment.tolist()]
    return carry_out(posed.ground, wanted, workload, options)


def carry_out(ground: Ground, wanted: Sequence[Sequence[Stripes]], workload: Workload, options: PlanOptions) -> Layout:
    """The layout that comes as near to the stripes wanted of every piece in every window as space lets it.

    Raises PlanError, naming file and region, when the data do not fit.
    """
    space = Space(ground.cluster, options.reserved_bytes)
    valid = ground.whole.valid_bytes
    now: list[Stripes] = [()] * ground.cuts.pieces
    # Much used pieces first, should the granules' rounding leave no room for all.
    rows = np.repeat(np.arange(ground.whole.regions), np.diff(ground.whole.first))
    uses = np.bincount(rows, weights=ground.whole.count.astype(np.float64), minlength=ground.whole.regions)
    for piece in np.argsort(-uses, kind="stable").tolist():
        name = region_name(workload, ground.whole, piece)
        request_bytes = max(1, int(ground.request_bytes[piece]))
        turn = int(ground.cuts.region[piece])
        homes = [wanted[0][piece]]
        if is_headed(homes[0], ground.cluster, ground.periods):
            # Where room is short for heads, all lies where the tails would.
            homes.append(((homes[0][1][0], int(ground.cuts.length[piece])),))
        now[piece], _ = space.place(homes, turn, request_bytes, int(valid[piece]), name)
    placed, moves = [tuple(now)], []
    for window in range(1, len(ground.windows)):
        # What had no room in an earlier window is tried again where its requests are now.
        wishes = [
            (piece, wanted[window][piece])
            for piece in range(ground.cuts.pieces)
            if wanted[window][piece] != now[piece]
            and (wanted[window][piece] != wanted[window - 1][piece] or _is_touched(ground, window, piece))
        ]
        moves.append(tuple(_carry(ground, window, now, wishes, space)))
        placed.append(tuple(now))
    return Layout(tuple(placed), tuple(moves))


def settle_untouched(posed: Posed, assignment: Int) -> Int:
    """The assignment with the pieces that no request is for in long runs on one server each, and never moved.

    They cost nothing anywhere, so the simplest layout is the best: HServers take them first, each as many bytes as it
    has room for in proportion. What does not fit so stays where the solver has it.
    """
    ground, teams = posed.ground, posed.teams
    touched = posed.problem.features.any(axis=(0, 2, 3))
    idle = np.flatnonzero(~touched)
    if not len(idle):
        return assignment
    alone = {team.members[0].name: number for number, team in enumerate(teams) if team.is_one}
    index = {target.name: number for number, target in enumerate(ground.cluster.active)}
    valid = ground.whole.valid_bytes
    free = ground.capacity.copy()
    for window in assignment:
        used = np.zeros(len(free))
        for choice in np.unique(window[touched]).tolist():
            bytes_there = float(valid[touched & (window == choice)].sum())
            for target in teams[choice].members:
                # A team's members share it in one way or another: the whole on each is safe.
                used[index[target.name]] += bytes_there
        free = np.minimum(free, ground.capacity - used)
    result = assignment.copy()
    total = float(valid[idle].sum())
    hdds = [index[target.name] for target in ground.cluster.hservers or ground.cluster.active]
    room = np.minimum(np.maximum(free[hdds], 0.0), total)
    quota = dict(zip(hdds, room / max(float(room.sum()), 1.0) * total, strict=True))
    waiting, taken = list(hdds), 0.0
    for piece in idle.tolist():
        need = float(round_up(int(valid[piece])))
        while waiting and (taken >= quota[waiting[0]] or taken + need > free[waiting[0]]):
            waiting, taken = waiting[1:], 0.0
        if not waiting:
            break
        result[:, piece] = alone[ground.cluster.active[waiting[0]].name]
        taken += need
    return result


def _is_touched(ground: Ground, window: int, piece: int) -> bool:
    table = ground.windows[window]
    return table is not None and bool(table.request_bytes[piece])


def _carry(
    ground: Ground, window: int, now: list[Stripes], wishes: Sequence[tuple[int, Stripes]], space: Space
) -> list[tuple[int, Stripes, Stripes]]:
    """Makes the moves that fit, again and again while one of them makes room for another; changes `now` and `space`.

    Where pieces wait for each other's room, the one of them with the fewest requests gives way to an HServer.
    """
    valid = ground.whole.valid_bytes
    table = ground.windows[window]
    uses: Float = np.zeros(ground.cuts.pieces)
    if table is not None:
        rows = np.repeat(np.arange(table.regions), np.diff(table.first))
        weights = table.count.astype(np.float64)
        uses = np.bincount(rows, weights=weights, minlength=table.regions).astype(np.float64)
    made: list[tuple[int, Stripes, Stripes]] = []

    def moved(piece: int, new: Stripes) -> bool:
        if not space.take(new, int(valid[piece])):
            return False
        space.give(now[piece], int(valid[piece]))
        made.append((piece, now[piece], new))
        now[piece] = new
        return True

    left = [(piece, new) for piece, new in wishes if now[piece] != new]
    scarce = {target.name for target in ground.cluster.sservers}
    while left:
        waiting = [(piece, new) for piece, new in left if not moved(piece, new)]
        if len(waiting) == len(left):
            wanted = {name for _, new in waiting for name, _ in new} & scarce
            holding = [each for each in waiting if wanted & {name for name, _ in now[each[0]]}]
            coldest = min(holding, key=lambda each: (uses[each[0]], each[0]), default=None)
            if coldest is None or not any(moved(coldest[0], home) for home in _whole_homes(ground, coldest[0])):
                break
            waiting.remove(coldest)
        left = waiting
    return made


def _whole_homes(ground: Ground, piece: int) -> list[Stripes]:
    """The piece whole on every HServer, another one first for every piece."""
    hservers = ground.cluster.hservers
    length = int(ground.cuts.length[piece])
    return [((hservers[(piece + turn) % len(hservers)].name, length),) for turn in range(len(hservers))]


def copy_demand(stripes: Stripes, valid_bytes: int, write: bool, targets: Mapping[str, Target]) -> dict[str, float]:
    """Service seconds per target of one pass of the mover over a region: chunks of COPY_CHUNK_BYTES, one access
    each."""
    widths = dict(stripes)
    seconds = {}
    for name, share in share_bytes(stripes, valid_bytes).items():
        if share:
            chunks = min(-(-valid_bytes // COPY_CHUNK_BYTES), -(-share // min(widths[name], COPY_CHUNK_BYTES)))
            target = targets[name]
            startup, per_byte = (
                (target.startup_write_s, target.per_byte_write_s)
                if write
                else (target.startup_read_s, target.per_byte_read_s)
            )
            seconds[name] = (chunks * startup + share * per_byte) / target.channels
    return seconds


def window_bounds(ground: Ground, layout: Layout) -> list[Bound]:
    """The demands of every window's requests and copies (cost-models section 7), by the real requests."""
    targets = {target.name: target for target in ground.cluster.targets}
    bounds = []
    for window, (table, placed) in enumerate(zip(ground.windows, layout.placed, strict=True)):
        bound = Bound(dict.fromkeys(targets, 0.0))
        if table is not None:
            bound = plan_bound(table, ground.cluster, placed)
        if window:
            for piece, old, new in layout.moves[window - 1]:
                for stripes, write in ((old, False), (new, True)):
                    for name, seconds in copy_demand(
                        stripes, int(ground.whole.valid_bytes[piece]), write, targets
                    ).items():
                        bound.demand_s[name] = bound.demand_s.get(name, 0.0) + seconds
        bounds.append(bound)
    return bounds


def named(stripes: Stripes, cluster: Cluster, periods: Sequence[int] = ()) -> str:
    """Stripes in a few words; those that fill one of `periods`, or a piece of it, are head and rest."""
    if len(stripes) == 1:
        return f"whole on {stripes[0][0]}"
    if is_headed(stripes, cluster, periods):
        (first, width), *rest = stripes
        period = format_size(sum(each for _, each in stripes))
        names = ", ".join(name for name, _ in rest[:4]) + (", .." if len(rest) > 4 else "")
        return f"first {format_size(width)} of every {period} on {first}, the rest on {names}"
    widths = sorted({width for _, width in stripes})
    said = format_size(widths[0]) if len(widths) == 1 else f"{format_size(widths[0])} to {format_size(widths[-1])}"
    names = ", ".join(name for name, _ in stripes[:4])
    return f"stripes of {said} on {len(stripes)} servers ({names}{', ..' if len(stripes) > 4 else ''})"
