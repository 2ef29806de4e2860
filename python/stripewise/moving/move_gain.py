"""Which of a plan's moves pay, where a mover is told `min_gain` and the plan was made without.

placement.md, DDM: a region comes in only if its gain is more than `min_gain` times its copy, and takes another's place
only if what the swap gains is more than `min_gain` times both copies. So a move that makes room is dropped along with
the one that it makes room for; the region stays, and is the first to leave when a later window needs the place.
"""

from __future__ import annotations

from ..layout import Stripes, share_bytes, target_bytes
from ..plan import Plan
from ..plan.migrations import Move, pays, replay
from ..units import round_up

Place = tuple[str, int]


def gainful_moves(plan: Plan, limited: frozenset[str], min_gain: float) -> dict[int, tuple[Move, ...]]:
    """The moves to make, by window. `limited` names the targets of limited capacity; O(moves).

    No such target ever holds more than the plan itself puts there at some time.
    """
    places = _Places(plan, limited)
    chosen: dict[int, tuple[Move, ...]] = {}
    #: Regions that the plan has moved out and that stayed, because what was to come did not.
    stayed: dict[Place, Move] = {}
    for migration in plan.migrations:
        for move in migration.moves:
            stayed.pop((move.file, move.start), None)
        made: list[Move] = []
        leaving = list(stayed.values())
        coming = []
        for move in migration.moves:
            if places.grows(move):
                coming.append(move)
            elif _pays([move], min_gain):
                places.make(move)
                made.append(move)
            elif move.direction == "out" and places.now[move.file, move.start] != move.stripes:
                leaving.append(move)
        for move in coming:
            swap = places.swap(move, leaving)
            if swap is not None and _pays([move], min_gain) and _pays([*swap, move], min_gain):
                for each in (*swap, move):
                    places.make(each)
                made += [*swap, move]
                leaving = leaving[len(swap) :]
        stayed = {(move.file, move.start): move for move in leaving}
        chosen[migration.window] = tuple(made)
    return chosen


def _pays(moves: list[Move], min_gain: float) -> bool:
    return pays(sum(move.gain_s for move in moves), sum(move.cost_s for move in moves), min_gain)


class _Places:
    """Where every region lies, and how much more the targets of limited capacity may hold."""

    def __init__(self, plan: Plan, limited: frozenset[str]) -> None:
        self.sizes = {file.path: file.size for file in plan.files}
        self.lengths = {(file.path, r.start): r.len for file in plan.files for r in file.layout}
        self.now: dict[Place, Stripes] = {(file.path, r.start): r.stripes for file in plan.files for r in file.layout}
        held: dict[str, int] = dict.fromkeys(limited, 0)
        for file in plan.files:
            for name, count in target_bytes(file.layout, file.size).items():
                held[name] = held.get(name, 0) + count
        most = {name: held[name] for name in limited}
        self.free = {name: -held[name] for name in limited}
        for state in replay(plan.migrations, {file.path: file.layout for file in plan.files}, self.sizes, held):
            for name in most:
                most[name] = max(most[name], state.after.get(name, 0))
        self.free = {name: most[name] + free for name, free in self.free.items()}

    def _growth(self, move: Move) -> dict[str, int]:
        """Bytes that each limited target holds more after a move."""
        place = (move.file, move.start)
        valid = max(0, min(self.lengths[place], self.sizes[move.file] - move.start))
        growth: dict[str, int] = {}
        for sign, stripes in ((1, move.stripes), (-1, self.now[place])):
            for name, share in share_bytes(stripes, valid).items():
                if name in self.free:
                    growth[name] = growth.get(name, 0) + sign * round_up(share)
        return growth

    def grows(self, move: Move) -> bool:
        """Whether limited targets hold more after it, as everything lies now."""
        return sum(self._growth(move).values()) > 0

    def make(self, move: Move) -> None:
        for name, count in self._growth(move).items():
            self.free[name] -= count
        self.now[move.file, move.start] = move.stripes

    def swap(self, coming: Move, leaving: list[Move]) -> list[Move] | None:
        """The first of `leaving` that must go for `coming` to fit; None when it does not fit without them all."""
        free = dict(self.free)
        for name, count in self._growth(coming).items():
            free[name] -= count
        for number, move in enumerate(leaving):
            if min(free.values(), default=0) >= 0:
                return leaving[:number]
            for name, count in self._growth(move).items():
                free[name] -= count
        return list(leaving) if min(free.values(), default=0) >= 0 else None
