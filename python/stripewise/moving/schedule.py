"""What a plan wants where at which time, and the order in which a file's regions get there.

Windows follow the run's clock: window 0 is the placement that the run begins with, later ones begin with their
migration. Within a window, what leaves the targets of limited capacity goes before what comes to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..cluster import Cluster
from ..errors import UsageError
from ..layout import Region, target_bytes
from ..plan import FilePlan, Plan
from ..plan.migrations import Move, moved_layout
from .move_gain import gainful_moves

_RANK = {"out": 0, "restripe": 1, "in": 2}


@dataclass(frozen=True)
class Step:
    """One file gets `layout`, in which the bytes [start, start + len) lie anew.

    `len` 0 means all of it, and -1 that there is no such file.
    """

    path: str
    start: int
    len: int
    layout: tuple[Region, ...]
    direction: str
    bytes: int

    @property
    def key(self) -> tuple[str, int, int]:
        """What identifies the step while the mover runs."""
        return (self.path, self.start, self.len)


class Schedule:
    """The windows of a plan that are to be followed, all without `windows`.

    `min_gain` leaves out moves whose modelled gain is not more than so many times their cost, and those that make room
    for them. `limited` names the targets of limited capacity.
    """

    def __init__(
        self, plan: Plan, limited: frozenset[str], windows: frozenset[int] | None = None, min_gain: float | None = None
    ) -> None:
        self.plan = plan
        self.limited = limited
        known = {0, *(migration.window for migration in plan.migrations)}
        unknown = sorted((windows or frozenset()) - set(range(max(len(plan.windows), 1))))
        if unknown:
            raise UsageError(f"--windows: the plan has no window {unknown[0]}; it has {max(len(plan.windows), 1)}")
        self.chosen = frozenset(known if windows is None else known & windows)
        self.starts_s: dict[int, float] = {0: 0.0} if 0 in self.chosen else {}
        self.moves: dict[int, tuple[Move, ...]] = {}
        paying = None if min_gain is None else gainful_moves(plan, limited, min_gain)
        for migration in plan.migrations:
            if migration.window in self.chosen:
                self.starts_s[migration.window] = migration.start_ns / 1e9
                self.moves[migration.window] = migration.moves if paying is None else paying[migration.window]

    @property
    def last(self) -> int:
        """The last window that is followed."""
        return max(self.starts_s, default=0)

    def is_planned(self, step: Step, window: int | None) -> bool:
        """Whether a step of `window` is a move of the plan's, of that window or one before it."""
        return window is not None and any(
            (step.path, step.start) == (move.file, move.start)
            for number, moves in self.moves.items()
            if number <= window
            for move in moves
        )

    def window_at(self, clock_s: float) -> int | None:
        """The window that has begun last; None before the first one that is followed."""
        begun = [window for window, start in self.starts_s.items() if start <= clock_s]
        return max(begun, default=None)

    def next_start_s(self, clock_s: float) -> float | None:
        """When the next window begins; None after the last."""
        return min((start for start in self.starts_s.values() if start > clock_s), default=None)

    def steps(self, file: FilePlan, window: int, now: Sequence[Region]) -> list[Step]:
        """What is left to do so that `file`, whose layout is `now`, lies as `window` wants it.

        Moves of earlier windows that a later one supersedes are not made. Raises UsageError when the file's regions are
        not the plan's and window 0, which would bring them about, is not followed.
        """
        moves = [m for w in sorted(self.moves) if w <= window for m in self.moves[w] if m.file == file.path]
        directions = {m.start: m.direction for m in moves}
        wanted = moved_layout(file.layout, moves)
        last = wanted[-1]
        base = on_grid(now, wanted)
        if base is None:
            if 0 not in self.chosen:
                raise UsageError(
                    f"{file.path}: its regions are not the plan's; follow window 0, too, or apply the plan"
                )
            return [Step(file.path, 0, 0, wanted, self._direction(file.size, now, wanted), file.size)]
        present = {(r.start, r.len): r.stripes for r in base}
        # What the last region repeats into is a region of its own once the last one has moved.
        if base[-1].stripes != last.stripes:
            present[last.start, last.len] = base[-1].stripes
        order = {m.start: number for number, m in enumerate(moves)}
        steps = []
        for region in wanted:
            differs = region.stripes != present[region.start, region.len]
            if not differs or (0 not in self.chosen and region.start not in directions):
                continue
            layout = _with(base, region, region is last)
            size = max(0, min(region.len, file.size - region.start))
            direction = directions.get(region.start) or self._direction(file.size, now, layout)
            steps.append(Step(file.path, region.start, region.len, layout, direction, size))
        return sorted(steps, key=lambda step: (_RANK[step.direction], order.get(step.start, -1), step.start))

    def _direction(self, size: int, before: Sequence[Region], after: Sequence[Region]) -> str:
        held, holds = target_bytes(before, size), target_bytes(after, size)
        growth = sum(holds.get(name, 0) - held.get(name, 0) for name in self.limited)
        return "in" if growth > 0 else "out" if growth < 0 else "restripe"


def limited_targets(cluster: Cluster) -> frozenset[str]:
    """The targets of limited capacity."""
    return frozenset(target.name for target in cluster.targets if target.capacity_bytes)


def in_order(steps: Sequence[Step]) -> list[Step]:
    """The steps of several files: all that make room first; within a direction as they come."""
    return sorted(steps, key=lambda step: _RANK[step.direction])


def on_grid(now: Sequence[Region], grid: Sequence[Region]) -> tuple[Region, ...] | None:
    """The layout `now`, which keeps every byte where it is, with the regions of `grid` and what comes after them.

    The windows of a last region that repeats can be told apart; other regions cannot be cut without a move: then None.
    """
    present = {(r.start, r.len): r.stripes for r in now}
    tail, end = now[-1], grid[-1].start + grid[-1].len

    def is_window(start: int, length: int) -> bool:
        return length == tail.len and start >= tail.start and (start - tail.start) % tail.len == 0

    regions = []
    for r in grid:
        stripes = present.get((r.start, r.len), tail.stripes if is_window(r.start, r.len) else None)
        if stripes is None:
            return None
        regions.append(Region(r.start, r.len, stripes))
    after = [r for r in now if r.start >= end]
    if not after and (regions[-1].len, regions[-1].stripes) != (tail.len, tail.stripes):
        if not is_window(end, tail.len):
            return None
        after = [Region(end, tail.len, tail.stripes)]
    return (*regions, *after)


def with_region(now: Sequence[Region], step: Step) -> tuple[Region, ...]:
    """The layout to ask for when the file lies as `now`: the step's region as it should be, all others as they are."""
    base = on_grid(now, step.layout)
    if step.len == 0 or base is None:
        return step.layout
    wanted = next(r for r in step.layout if r.start == step.start)
    return _with(base, wanted, wanted is step.layout[-1])


def _with(now: Sequence[Region], wanted: Region, repeats: bool) -> tuple[Region, ...]:
    """`now` with one region as `wanted`; the last one that repeats takes what follows along."""
    kept = [r for r in now if not repeats or r.start <= wanted.start]
    return tuple(wanted if (r.start, r.len) == (wanted.start, wanted.len) else r for r in kept)


def parse_windows(text: str) -> frozenset[int]:
    """The windows meant by `0,2-4`. Raises UsageError."""
    chosen: set[int] = set()
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()) or int(high or low) < int(low):
            raise UsageError(f"--windows: '{text}' is not a list of windows; write numbers and ranges as in 0,2-4")
        if int(high or low) > 1_000_000:
            raise UsageError(f"--windows: {high or low} is more windows than any plan has; give those of the plan")
        chosen.update(range(int(low), int(high or low) + 1))
    return frozenset(chosen)
