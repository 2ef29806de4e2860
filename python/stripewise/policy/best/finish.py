"""Candidates, what simulated runs tell of them, and the last steps: the quickest with parts moved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from ...cluster import Cluster
from ...errors import PlanError
from ...layout import share_bytes
from ...model import Bound
from ...model.general import Float
from ...plan import Plan, Window
from ...workload.requests import Workload
from ..base import PlanOptions
from .expected.heats import FileHeat
from .judge import Judge, Judged
from .polish import can_move, polished
from .reasons import pieces_of
from .strategies.case import Piece
from .strategies.propose import plan_of
from .tuning import BY_TRACE_PART, FINALISTS, POLISH_REQUESTS, POLISHED


@dataclass(frozen=True)
class Candidate:
    """A plan that may be chosen, with its bound in seconds, windows and copies included."""

    plan: Plan
    bound_s: float
    bounds: Sequence[Bound]

    def in_turn_s(self, processes: int) -> float:
        """The bound as if the pieces of a request that regions cut were served one after the other."""
        if all(bound.pieces == 1 for bound in self.bounds):
            return self.bound_s
        return sum(replace(bound, pieces=1).makespan_s(processes) for bound in self.bounds)


@dataclass
class Field:
    """All candidates, DEF's first, and of each the seconds of the trace and of likely runs."""

    candidates: list[Candidate]
    runs_s: list[Float]
    judge: Judge

    @classmethod
    def of(cls, candidates: list[Candidate], judge: Judge, until: float = float("inf")) -> Field:
        """The candidates, each run as far as it may be the quickest, and as there is time (monotonic seconds)."""
        found = judge.all_s([each.plan for each in candidates], [each.bound_s for each in candidates], until)
        return cls(candidates, found, judge)

    def judged(self, more: list[Candidate], until: float) -> None:
        """Further candidates, run in the same way; DEF is run beside them."""
        found = Field.of([self.candidates[0], *more], self.judge, until)
        self.candidates += more
        self.runs_s += found.runs_s[1:]

    @property
    def seconds(self) -> list[float]:
        """What decides, of each."""
        return [self.judge.decides(each) for each in self.runs_s]

    @property
    def traced_s(self) -> list[float]:
        """Seconds of the trace, of each."""
        return [float(each[0]) for each in self.runs_s]

    @property
    def anew_s(self) -> list[float]:
        """Of DEF and the quickest, the seconds that decide by the trace and fresh runs; inf of the others.

        What was searched for with the help of runs is quicker on these than on any other.
        """
        seconds = self.seconds
        if not self.judge.fresh:
            return seconds
        quickest = np.argsort(seconds, kind="stable")[:FINALISTS].tolist()
        finals = {0, *(number for number in quickest if np.isfinite(seconds[number]))}
        return [
            self.judge.anew(each.plan) if number in finals else float("inf")
            for number, each in enumerate(self.candidates)
        ]

    def add(self, candidate: Candidate, judged: Judged) -> None:
        """One more."""
        self.candidates.append(candidate)
        self.runs_s.append(judged.runs_s)


def taken(candidates: Iterator[Candidate], until: float) -> list[Candidate]:
    """The first of the candidates, as many as there is time for (monotonic seconds)."""
    found = []
    for each in candidates:
        found.append(each)
        if time.monotonic() > until:
            break
    return found


@dataclass
class Finish:
    """The last steps of a search over one window: what it is for, and until when (monotonic seconds)."""

    workload: Workload
    runs: Sequence[Workload]
    heats: Sequence[FileHeat | None]
    cluster: Cluster
    capacity: Float
    options: PlanOptions
    window: Window
    until: float

    def polish(self, field: Field) -> None:
        """Adds the quickest candidates with parts moved, the last of these once more as long as it is the quickest.

        Where the same run is worth a plan of its own, those by the trace alone come first: they tell how long it takes.
        """
        judge = field.judge
        if judge.repeats:
            with judge.by_trace():
                found = list(self._polished(field, field.traced_s, BY_TRACE_PART))
            for candidate, _ in found:
                whole = judge.one(candidate.plan)
                assert whole is not None
                field.add(candidate, whole)
            judge.least_s = min(field.traced_s)
        for candidate, judged in self._polished(field, field.seconds, 1.0):
            field.add(candidate, judged)

    def _polished(self, field: Field, seconds: list[float], part: float) -> Iterator[tuple[Candidate, Judged]]:
        """The quickest by these seconds with parts moved, in this part of the time and of the requests simulated."""
        judge = field.judge
        last = judge.simulated + part * POLISH_REQUESTS
        until = time.monotonic() + part * (self.until - time.monotonic())

        def go_on() -> bool:
            return time.monotonic() < until and judge.simulated < last

        order = np.argsort(seconds, kind="stable").tolist()
        # Stripes over many servers are not moved: what lies whole on servers gains most.
        first = [number for number in order if can_move(field.candidates[number].plan)]
        numbers = list(dict.fromkeys(each for pair in zip(first, order, strict=False) for each in pair) or order)
        queue, least = [field.candidates[number] for number in numbers[:POLISHED]], min(seconds)
        for seed in count(self.options.seed):
            candidate = None
            while queue and go_on():
                found = self._with_parts_moved(queue.pop(0), field, go_on, seed)
                if found is None:
                    continue
                yield found
                candidate, judged = found
                is_least = judged.seconds <= least
                least = min(least, judged.seconds)
            if candidate is None or not is_least or not go_on():
                return
            queue = [candidate]

    def _with_parts_moved(
        self, candidate: Candidate, field: Field, go_on: Callable[[], bool], seed: int
    ) -> tuple[Candidate, Judged] | None:
        """The candidate with parts moved until runs get no quicker; None where no step made them so.

        Steps are held against each other with all regions apart; what they lead to is judged as it would be written.
        """
        judge = field.judge
        begun = judge.one(judge.trials.placed(candidate.plan))
        assert begun is not None
        runs = [self.workload, *(self.runs if judge.likely else ())]
        numbers = judge.trials.number
        begins = pieces_of(candidate.plan, self.workload)
        # Files of which no byte was moved are in no run, and stay.
        still = [piece for piece in begins if piece.file not in numbers]
        pieces, judged = polished(
            [piece for piece in begins if piece.file in numbers], begun, self.heats, runs, self.cluster,
            self._room_beside(still), numbers, judge.one, go_on, seed,
        )  # fmt: skip
        if judged is begun:
            return None
        pieces = sorted([*pieces, *still], key=lambda piece: (piece.file, piece.start))
        try:
            plan, bound = plan_of(
                pieces, self.workload, self.cluster, self.options, [self.window],
                field.candidates[0].plan.expected.cost_def_s,
            )  # fmt: skip
        except PlanError:
            return None
        if not judge.holds(plan, candidate.plan):
            return None
        written = judge.one(plan)
        assert written is not None
        return Candidate(plan, bound.makespan_s(max(1, self.workload.processes)), [bound]), written

    def _room_beside(self, pieces: Sequence[Piece]) -> Float:
        """Bytes that these pieces leave free on every active server."""
        number = {target.name: each for each, target in enumerate(self.cluster.active)}
        free = self.capacity.copy()
        for piece in pieces:
            for name, share in share_bytes(piece.stripes, piece.length).items():
                free[number[name]] -= share
        return free
