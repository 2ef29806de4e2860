"""Parts of a layout go from server to server as long as simulated runs get quicker.

No bound tells how requests queue, which of them continue others, or what phases do to a server that is idle half of the
time. So parts of the quickest layouts are moved between servers, and what judges the candidates judges each step.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import cycle, pairwise

import numpy as np

from ...cluster import Cluster
from ...layout import Stripes, share_bytes
from ...model.general import Float, Int
from ...plan import Plan
from ...units import GRANULE_BYTES
from ...workload.requests import Workload
from .expected.heats import FileHeat
from .expected.spans import groups_of_run
from .expected.touched import touched
from .judge import Judged
from .strategies.case import Piece
from .trial import Placed
from .tuning import (
    APART_MAX,
    BUSIEST,
    DENSEST,
    DRAWN,
    EVENING,
    EXCHANGED,
    GUIDED,
    IN_VAIN,
    IN_VAIN_LATE,
    LATE,
    LEAST,
    MOST_POWER,
    MOVED,
    NORM,
    POLISH_PART,
    POLISH_PARTS_MAX,
    POLISH_ROOM,
    QUICKER,
    STEPS_MAX,
    TOGETHER,
)

#: Judges a layout; None where it is slower than what was judged before.
Judge = Callable[[Placed, Judged], Judged | None]
#: One server's stripe, whatever the length.
ALONE_BYTES = 1 << 40


def polished(
    pieces: Sequence[Piece],
    begun: Judged,
    heats: Sequence[FileHeat | None],
    runs: Sequence[Workload],
    cluster: Cluster,
    rooms: Float,
    numbers: Mapping[int, int],
    judge: Judge,
    go_on: Callable[[], bool],
    seed: int,
) -> tuple[list[Piece], Judged]:
    """The pieces after all steps that made them quicker; the same where none did.

    `numbers` are those by which the judge knows the files.
    """
    state = _State(pieces, heats, runs, cluster, rooms, numbers)
    rng = np.random.default_rng(seed)
    best, failed = begun, 0
    evened = state.evened(rng)
    found = judge(evened.placed(), best)
    if found is not None and found.seconds < best.seconds * (1 - QUICKER):
        state, best = evened, found
    for _ in range(STEPS_MAX):
        step = state.drawn(rng, best.busy_s)
        if step is None:
            continue
        if failed >= IN_VAIN or not go_on():
            break
        failed += 1
        found = judge(state.placed(step), best)
        if found is not None and found.seconds < best.seconds * (1 - QUICKER):
            best, failed = found, 0
            state.take(step)
    state, best = _shaken(state, best, rng, judge, go_on)
    return state.laid_out(), best


def _shaken(
    state: _State, best: Judged, rng: np.random.Generator, judge: Judge, go_on: Callable[[], bool]
) -> tuple[_State, Judged]:
    """The quickest state on a way that goes on over slower ones, as long as none is slower than `LATE` steps before."""
    kept, here, failed = state, best, 0
    state = state.copied()
    before = [best] * LATE
    for number in range(STEPS_MAX):
        step = state.drawn(rng, here.busy_s)
        if step is None:
            continue
        if failed >= IN_VAIN_LATE or not go_on():
            break
        failed += 1
        late = before[number % LATE]
        found = judge(state.placed(step), late if late.seconds > here.seconds else here)
        if found is not None and found.seconds <= max(late.seconds, here.seconds):
            here = found
            state.take(step)
            if here.seconds < best.seconds * (1 - QUICKER):
                kept, best, failed = state.copied(), here, 0
        before[number % LATE] = here
    return kept, best


@dataclass(frozen=True)
class _Step:
    """Parts, by number, and the server that each goes to."""

    parts: Int
    server: Int


class _State:
    """The parts of a layout: the server of each (-1: stripes over several), and what is asked of it."""

    def __init__(
        self,
        pieces: Sequence[Piece],
        heats: Sequence[FileHeat | None],
        runs: Sequence[Workload],
        cluster: Cluster,
        rooms: Float,
        numbers: Mapping[int, int],
    ) -> None:
        self.cluster, self.rooms = cluster, rooms
        self.names = [target.name for target in cluster.active]
        number = {name: each for each, name in enumerate(self.names)}
        figures = [(t.startup_read_s, t.startup_write_s, t.per_byte_read_s, t.per_byte_write_s) for t in cluster.active]
        self.figures = np.array(figures).T / np.array([target.channels for target in cluster.active])
        group = groups_of_run(heats)
        self.cycles_apart, apart = taken_apart(pieces)
        whole = touched(apart, heats, runs, group).sum(axis=1) @ self.figures
        self.pieces = _cut(apart, heats, whole, float(rooms.min()))
        self.asked = touched(self.pieces, heats, runs, group)
        self.work = self.asked.sum(axis=1) @ self.figures
        self.length = np.array([piece.length for piece in self.pieces], dtype=np.float64)
        self.server = np.array(
            [number[piece.stripes[0][0]] if len(piece.stripes) == 1 else -1 for piece in self.pieces], dtype=np.int64
        )
        self.begun = self.server.copy()
        self.cycles: list[list[tuple[int, int]]] = [[(each, ALONE_BYTES)] for each in range(len(self.names))]
        rows = []
        for piece, server in zip(self.pieces, self.server.tolist(), strict=True):
            rows.append((numbers[piece.file], piece.start, piece.length, len(self.cycles) if server < 0 else server, 0))
            if server < 0:
                self.cycles.append([(number[name], width) for name, width in piece.stripes])
        self.rows = np.array(rows, dtype=np.int64)
        self.free = rooms.copy()
        # Seconds that every server is busy for in every group of segments, as the figures have it.
        self.load = np.zeros((len(self.names), self.asked.shape[1]))
        for part, piece in enumerate(self.pieces):
            for name, share in share_bytes(piece.stripes, piece.length).items():
                self.free[number[name]] -= share
                self.load[number[name]] += self._of(part, number[name]) * share / piece.length

    def _of(self, parts: Int | int, server: int) -> Float:
        """What parts keep a server busy for, by groups."""
        asked = self.asked[parts]
        return np.asarray((asked.sum(axis=0) if asked.ndim > 2 else asked) @ self.figures[:, server])

    def copied(self) -> _State:
        """The same state, to take steps of its own."""
        found = copy(self)
        found.server, found.free, found.load = self.server.copy(), self.free.copy(), self.load.copy()
        found.rows = self.rows.copy()
        return found

    def evened(self, rng: np.random.Generator) -> _State:
        """Another state, with steps taken as long as they even the servers' load group by group."""
        found = self.copied()
        uneven, failed = _uneven(found.load), 0
        for _ in range(EVENING):
            step = found.step(rng, found.load.sum(axis=1))
            failed += 1
            if step is not None and (now := _uneven(found.load_after(step))) < uneven * (1 - QUICKER):
                found.take(step)
                uneven, failed = now, 0
            if failed > EVENING // 10:
                break
        return found

    def drawn(self, rng: np.random.Generator, busy_s: Float) -> _Step | None:
        """A step: any, or that of several which evens the load most."""
        if rng.random() >= GUIDED:
            return self.step(rng, busy_s)
        steps = [step for step in (self.step(rng, busy_s) for _ in range(DRAWN)) if step is not None]
        return min(steps, key=lambda each: _uneven(self.load_after(each)), default=None)

    def load_after(self, step: _Step) -> Float:
        """The load as it is after the step."""
        load = self.load.copy()
        for server in np.unique(step.server).tolist():
            parts = step.parts[step.server == server]
            load[server] += self._of(parts, server)
            for before in np.unique(self.server[parts]).tolist():
                load[before] -= self._of(parts[self.server[parts] == before], before)
        return load

    def step(self, rng: np.random.Generator, busy_s: Float) -> _Step | None:
        """Parts that lie whole on a busy server go to a less busy one, or are exchanged; None where none can."""
        order = np.argsort(-busy_s, kind="stable")
        high = int(order[0]) if rng.random() < BUSIEST else int(rng.choice(order))
        low = int(order[-1]) if rng.random() < LEAST else int(rng.choice(order))
        if high == low:
            return None
        here = np.flatnonzero((self.server == high) & (self.work[:, high] > 0))
        if not len(here):
            return None
        # What leaves one server keeps the other one busy for as long as it takes there.
        each, there = self.work[here, high], self.work[here, low]
        ratio = float(there.sum() / max(each.sum(), 1e-300))
        wanted = max(0.0, busy_s[high] - busy_s[low]) / (1 + ratio) * rng.uniform(*MOVED) * 2
        exchanged = rng.random() < EXCHANGED
        more = float(each.sum()) * rng.uniform(0, 0.2) if exchanged or wanted <= 0 else 0.0
        wanted += more
        most = max(1, int(2 ** rng.uniform(0, MOST_POWER)))
        way = rng.random()
        if way < TOGETHER:
            order = np.roll(np.arange(len(here)), -int(rng.integers(len(here))))
        elif way < TOGETHER + DENSEST:
            order = np.argsort(-each / self.length[here] * rng.uniform(0.5, 1.0, len(here)), kind="stable")
        else:
            order = rng.permutation(len(here))
        count = max(1, int(np.searchsorted(np.cumsum(each[order]), wanted, side="right")))
        chosen = here[order[: min(count, most)]]
        need = float(self.length[chosen].sum()) - self.free[low]
        if need <= 0 and not exchanged:
            return _Step(chosen, np.full(len(chosen), low))
        back = np.flatnonzero(self.server == low)
        if exchanged:
            back = rng.permutation(back)
            many = int(np.searchsorted(np.cumsum(self.work[back, high]), more)) + 1
        else:
            many = 0
            # There is no room: what is least asked for there comes back.
            back = back[np.argsort(self.work[back, high] / self.length[back], kind="stable")]
        many = max(many, int(np.searchsorted(np.cumsum(self.length[back]), need)) + 1)
        back = back[:many]
        given = float(self.length[back].sum())
        if given < need or given - float(self.length[chosen].sum()) > self.free[high]:
            return None
        server = np.concatenate([np.full(len(chosen), low), np.full(len(back), high)])
        return _Step(np.concatenate([chosen, back]), server)

    def placed(self, step: _Step | None = None) -> Placed:
        """The layout, after the step if there is one; neighbours that lie whole on one server are one region."""
        rows = self.rows.copy()
        if step is not None:
            rows[step.parts, 3] = step.server
        joined = (np.diff(rows[:, 0]) == 0) & (np.diff(rows[:, 3]) == 0) & (rows[1:, 3] < len(self.names))
        first = np.flatnonzero(np.insert(~joined, 0, True))
        made = rows[first]
        made[:, 2] = np.add.reduceat(rows[:, 2], first)
        return Placed(self.cycles, made)

    def laid_out(self) -> list[Piece]:
        """All pieces as they are now; those that moved have no reason yet, a cycle of which nothing moved is one."""
        moved = self.server != self.begun
        place = [(piece.file, piece.start) for piece in self.pieces]
        made: list[Piece] = []
        part = 0
        for each in self.cycles_apart:
            low, high = (bisect_left(place, (each.file, at)) for at in (each.start, each.end))
            if not moved[low:high].any():
                made += [*self._pieces(part, low, moved), each]
                part = high
        return [*made, *self._pieces(part, len(place), moved)]

    def _pieces(self, first: int, end: int, moved: Sequence[bool]) -> list[Piece]:
        """Some of the parts as they are now."""
        made = self.pieces[first:end]
        for at, part in enumerate(range(first, end)):
            if moved[part]:
                stripes = ((self.names[int(self.server[part])], made[at].length),)
                made[at] = replace(made[at], stripes=stripes, reason="")
        return made

    def take(self, step: _Step) -> None:
        """The step is kept."""
        self.load = self.load_after(step)
        length = self.length[step.parts]
        np.add.at(self.free, self.server[step.parts], length)
        np.subtract.at(self.free, step.server, length)
        self.server[step.parts] = step.server
        self.rows[step.parts, 3] = step.server


def _uneven(load: Float) -> float:
    """Seconds of all groups together: of each its busiest servers, the others counting little."""
    return float(((np.maximum(load, 0.0) ** NORM).sum(axis=0) ** (1 / NORM)).sum())


def can_move(plan: Plan) -> bool:
    """Whether parts of every region that holds something can be moved."""
    return all(
        _is_movable(region.stripes, min(region.len, file.size - region.start))
        for file in plan.files
        for region in file.regions
        if region.start < file.size
    )


def _is_movable(stripes: Stripes, length: int) -> bool:
    """Whether parts of a piece can go from server to server: all of it lies on one, or its cycle has few stripes."""
    return len(stripes) == 1 or -(-length // sum(width for _, width in stripes)) * len(stripes) <= APART_MAX


def taken_apart(pieces: Sequence[Piece]) -> tuple[list[Piece], list[Piece]]:
    """The pieces whose cycles have few stripes, and all pieces by place, each stripe of these as one of its own."""
    cycles: list[Piece] = []
    made: list[Piece] = []
    left = POLISH_PARTS_MAX
    for piece in sorted(pieces, key=lambda each: (each.file, each.start)):
        if len(piece.stripes) == 1 or left <= 0 or not _is_movable(piece.stripes, piece.length):
            made.append(piece)
            continue
        cycles.append(piece)
        at, turns = piece.start, cycle(piece.stripes)
        while at < piece.end:
            name, width = next(turns)
            width = min(width, piece.end - at)
            made.append(replace(piece, start=at, length=width, stripes=((name, width),), reason=""))
            at, left = at + width, left - 1
    return cycles, made


def _cut(pieces: Sequence[Piece], heats: Sequence[FileHeat | None], work: Float, room: float) -> list[Piece]:
    """Pieces of one server in parts of little work and length, cut where their requests begin."""
    servers = work.shape[1]
    here = work.min(axis=1)
    fair = max(float(here.sum()) / servers * POLISH_PART, 1e-300)
    length = np.array([piece.length for piece in pieces], dtype=np.float64)
    parts = np.ceil(np.maximum(here / fair, np.where(here > 0, length / max(room * POLISH_ROOM, GRANULE_BYTES), 0.0)))
    while parts.sum() > POLISH_PARTS_MAX + len(pieces):
        parts = np.ceil(parts / 2)
    made: list[Piece] = []
    for piece, many in zip(pieces, parts.tolist(), strict=True):
        heat = heats[piece.file]
        if many <= 1 or len(piece.stripes) > 1 or heat is None:
            made.append(piece)
            continue
        grid = heat.grid
        step = grid.slot_bytes * (1 if grid.is_apart else grid.unit)
        ideal = piece.start + piece.length * np.arange(1, int(many)) / many
        edges = np.unique(np.rint((ideal - grid.base) / step).astype(np.int64) * step + grid.base)
        edges = edges[(edges > piece.start) & (edges < piece.start + piece.length) & (edges % GRANULE_BYTES == 0)]
        bounds = [piece.start, *edges.tolist(), piece.start + piece.length]
        name = piece.stripes[0][0]
        made += [
            replace(piece, start=low, length=high - low, stripes=((name, high - low),))
            for low, high in pairwise(bounds)
        ]
    return made
