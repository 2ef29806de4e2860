"""Plans run in the simulator before one is chosen: what queues do with few processes no bound tells.

The bound is what no schedule beats; how near a layout comes to it depends on how many processes wait where. So the
plans that could be best by their bounds are run by crates/sim on the requests that they are for, and the quickest is
taken. Simulated seconds decide and are told; they are not measured ones.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import native
from ...cluster import Cluster
from ...errors import naming
from ...model.general import Float, Int
from ...plan import Plan
from ...simulate.scenario import Cycles, files_of, frame, moves_of
from ...workload.requests import Workload, dealt
from ..toolkit.build import join_runs
from ..toolkit.regions import checked_size
from .tuning import HOPELESS, TRIAL_REQUESTS_MAX


@dataclass(frozen=True)
class Placed:
    """A layout as the engine takes it: cycles of (active target's number, width in bytes); regions in the order of
    their files, rows of file, start, length, cycle and its first entry; moves, which begin (in seconds) with these."""

    cycles: Sequence[Sequence[Sequence[int]]]
    regions: Int
    moves: Sequence[tuple[float, int, int, int, int, int]] = ()


@dataclass(frozen=True)
class Run:
    """Simulated seconds, and what every active target's channels were busy for on average."""

    seconds: float
    busy_s: Float


class Trials:
    """The first requests of runs over the same files, closed loops with their think times, to be run on layouts.

    Processes that ran one after another do so, but in a sample, whose few requests of each do not tell.
    """

    def __init__(self, runs: Sequence[Workload], cluster: Cluster) -> None:
        workload = runs[0]
        # Files whose requests moved no byte have no place in a plan.
        moved = [number for number, file in enumerate(workload.files) if (file.requests["size"] > 0).any()]
        self.paths = [workload.files[number].path for number in moved]
        #: The number among `paths` of every file.
        self.number = {file: number for number, file in enumerate(moved)}
        most = max(1, TRIAL_REQUESTS_MAX // max(1, workload.processes))
        tables = [
            [each.tobytes() for each in dealt([run.files[number].requests for number in moved], run.processes)]
            for run in runs
        ]
        #: Of every run.
        self.requests = [
            min(TRIAL_REQUESTS_MAX, sum(len(run.files[number].requests) for number in moved)) for run in runs
        ]
        self.source, self.cluster = workload.source, cluster
        self.channels = np.array([target.channels for target in cluster.active], dtype=np.float64)
        self.targets = {target.name: number for number, target in enumerate(cluster.active)}
        sizes = [(workload.files[each].path, checked_size(workload.files[each], self.source)) for each in moved]
        described = json.dumps(frame(cluster, cluster.active, sizes))
        with naming(self.source):
            given = [(table, most, run.weight > 1) for run, table in zip(runs, tables, strict=True)]
            self.native: Any = native.make("Trials", described, given)

    def placed(self, plan: Plan) -> Placed:
        """A plan as the engine takes it, its regions as they are: of one that is written, or of files as they lie."""
        cycles, files = Cycles(self.targets, str(self.cluster.source)), files_of(plan, self.paths)
        rows = [
            (number, region.start, region.len, *cycles.place(region.stripes))
            for number, file in enumerate(files)
            for region in file.regions
        ]
        moves = [
            (each["at_s"], each["file"], each["start"], each["len"], each["cycle"], each["first"])
            for each in moves_of(plan, files, cycles)
        ]
        return Placed(cycles.made, np.array(rows, dtype=np.int64), moves)

    def as_written(self, plan: Plan) -> Placed:
        """A plan that a policy just made as `plan_by` hands it out: in regions that are joined, accesses continue each
        other across what were borders.
        """
        return self.placed(join_runs(plan))

    def run(self, layout: Plan | Placed, which: Sequence[int] = (0,)) -> list[Run]:
        """Some of the runs, by their numbers."""
        placed = self.placed(layout) if isinstance(layout, Plan) else layout
        rows = np.ascontiguousarray(placed.regions)
        with naming(self.source):
            found = native.parsed(self.native.run, placed.cycles, rows, list(placed.moves), list(which))
        return [Run(seconds, np.array(busy_s) / self.channels) for seconds, busy_s in found]

    def in_flight_s(self, layout: Plan | Placed) -> float:
        """Simulated seconds of the first run with any read under way and those with any write, added: the I/O time that
        `tune` measures, without what the program does between its requests.
        """
        placed = self.placed(layout) if isinstance(layout, Plan) else layout
        rows = np.ascontiguousarray(placed.regions)
        with naming(self.source):
            return float(native.parsed(self.native.in_flight_s, placed.cycles, rows, list(placed.moves), 0))


def trial_s(
    plans: Sequence[Plan],
    bounds_s: Sequence[float],
    trials: Trials,
    which: Sequence[int] = (0,),
    until: float = float("inf"),
) -> Float:
    """Simulated seconds of some of the runs under every plan as it would be written, shape (plans, runs).

    The first plan is always run, the others by their bounds in ascending order, and those that cannot be the quickest
    in the first of the runs are not: inf. A run is quicker than its bound where accesses continue others, so what tells
    is how much so far.
    """
    seconds: Float = np.full((len(plans), len(which)), np.inf)
    spared = float("inf")
    for number in [0, *sorted(range(1, len(plans)), key=lambda each: bounds_s[each])]:
        if number and time.monotonic() > until:
            break
        if number and bounds_s[number] * spared > HOPELESS * seconds[:, 0].min():
            break
        seconds[number] = [run.seconds for run in trials.run(trials.as_written(plans[number]), which)]
        spared = min(spared, float(seconds[number, 0]) / max(bounds_s[number], 1e-300))
    return seconds
