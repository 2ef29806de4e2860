"""The heat of every file on its requests' own grid, and runs that are as likely as the traced one.

A plan for the next run is judged by runs that it was not made from. Requests of such a run begin where the heat expects
them, each of the size and kind of one that began nearby; their order, their processes and their times are the trace's.
What goes through a file in sequence does so again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....model.general import Bool, Int
from ....units import GRANULE_BYTES, round_up
from ....workload.requests import FileRequests, Workload
from .heat import Runs, heat_of

#: Runs of all files together at most, and of one at least.
RUNS_MAX, RUNS_LEAST = 40_000, 64
#: Periods are looked for up to so many places, where so many of them go by at least.
PERIOD_MAX, PERIODS_LEAST = 64, 4
#: Files whose heat is followed, those that are asked for most; the others' is even.
FILES_MAX = 2_000
#: A file of which so many requests continue the one before them, of the same process, is asked for in sequence.
SEQUENCE = 0.5


@dataclass(frozen=True)
class Grid:
    """Slots of `slot_bytes` from byte `base` on: the coarsest grid that all requests begin on.

    `is_apart`: every request lies in one slot. Runs may be cut at multiples of `unit` slots without cutting most
    requests.
    """

    base: int
    slot_bytes: int
    slots: int
    is_apart: bool
    unit: int


@dataclass(frozen=True)
class FileHeat:
    """A file's heat: the requests that moved bytes (`at` in the file's own order), and of each its slot, its run, and
    where in its slot it begins."""

    grid: Grid
    runs: Runs
    at: Int
    slot: Int
    run: Int
    inside: Int
    size: Int
    write: Bool
    end: int

    def at_grain(self, power: int) -> FileHeat:
        """With runs that may be cut at 2^power times as many slots; the same where no cut runs through requests."""
        if self.grid.is_apart or not len(self.at):
            return self
        unit = max(1, self.grid.unit << power if power > 0 else self.grid.unit >> -power)
        runs = heat_of(self.slot, np.ones(len(self.slot)), self.grid.slots, unit.bit_length() - 1)
        run = np.searchsorted(runs.first, self.slot, side="right") - 1
        return replace(self, grid=replace(self.grid, unit=unit), runs=runs, run=run)


def heats_of(workload: Workload) -> list[FileHeat | None]:
    """The heat of every file; None of those without a byte."""
    total = max(1, workload.requests)
    counts = np.array([len(file.requests) for file in workload.files])
    told = np.zeros(len(counts), dtype=bool)
    told[np.argsort(-counts, kind="stable")[:FILES_MAX]] = True
    return [
        _heat(file, max(RUNS_LEAST, RUNS_MAX * len(file.requests) // total), is_told)
        for file, is_told in zip(workload.files, told.tolist(), strict=True)
    ]


def _heat(file: FileRequests, most: int, is_told: bool) -> FileHeat | None:
    at = np.flatnonzero(file.requests["size"] > 0)
    moved = file.requests[at]
    offset, size = moved["offset"].astype(np.int64), moved["size"].astype(np.int64)
    write = moved["write"].astype(bool)
    end = max([file.size_bytes, *([int((offset + size).max())] if len(moved) else [])])
    if not end:
        return None
    if not len(moved):
        nothing = np.zeros(0, dtype=np.int64)
        runs = Runs(np.zeros(1, dtype=np.int64), np.zeros(0))
        grid = Grid(0, GRANULE_BYTES, round_up(end) // GRANULE_BYTES, False, 1)
        return FileHeat(grid, runs, at, nothing, nothing, nothing, size, write, end)
    grid = _grid(offset, size, end)
    slot = (offset - grid.base) // grid.slot_bytes
    if is_told:
        runs = heat_of(slot, np.ones(len(slot)), grid.slots, grid.unit.bit_length() - 1, most)
    else:
        runs = Runs(np.array([0, grid.slots], dtype=np.int64), np.array([float(len(slot))]))
    run = np.searchsorted(runs.first, slot, side="right") - 1
    return FileHeat(grid, runs, at, slot, run, (offset - grid.base) % grid.slot_bytes, size, write, end)


def _grid(offset: Int, size: Int, end: int) -> Grid:
    """The grid of requests; pages where they begin anywhere."""
    starts = np.unique(offset)
    base = int(starts[0])
    step = int(np.gcd.reduce(np.diff(starts))) if len(starts) > 1 else round_up(int(size.max()))
    if step % GRANULE_BYTES or base % GRANULE_BYTES:
        step, base = GRANULE_BYTES, 0
    else:
        base %= step
    if int(size.max()) <= step:
        step *= _period((starts - base) // step)
    slots = -(-(end - base) // step)
    if step > GRANULE_BYTES and int(size.max()) <= step:
        return Grid(base, step, slots, True, 1)
    typical = float((size.astype(np.float64) ** 2).sum() / size.sum())
    return Grid(base, step, slots, False, 1 << max(0, int(np.ceil(np.log2(max(1.0, typical / step))))))


def _period(places: Int) -> int:
    """The least period in which the places that are asked for at all fall together; 1 where they fall anywhere.

    By the Bayesian information criterion: the likelihood of the places' residues less what so many of them fit by
    chance.
    """
    best, found = 0.0, 1
    # Spans that are asked for from end to end are heat, not a period: none is longer than half of one.
    breaks = np.flatnonzero(np.diff(places, prepend=-2, append=places[-1] + 2) != 1)
    longest = int(np.diff(breaks).max())
    for period in range(max(2, 2 * longest), min(PERIOD_MAX, (int(places[-1]) + 1) // PERIODS_LEAST) + 1):
        count = np.bincount(places % period, minlength=period).astype(np.float64)
        told = count[count > 0]
        gained = float((told * np.log(told * period / len(places))).sum()) - 0.5 * (period - 1) * np.log(len(places))
        if gained > best * (1 + 1e-9):
            best, found = gained, period
    return found


def likely_run(workload: Workload, heats: Sequence[FileHeat | None], seed: int) -> Workload:
    """Another run of the same program, drawn from the heat of its files."""
    rng = np.random.default_rng(seed)
    files = [
        file if heat is None or not len(heat.at) or _in_sequence(file, heat) else _drawn(file, heat, rng)
        for file, heat in zip(workload.files, heats, strict=True)
    ]
    return replace(workload, files=tuple(files))


def _in_sequence(file: FileRequests, heat: FileHeat) -> bool:
    requests = file.requests[heat.at]
    order = np.lexsort((requests["start_ns"], requests["rank"]))
    ranks, offset = requests["rank"][order], requests["offset"][order]
    end = offset + requests["size"][order]
    follows = (ranks[1:] == ranks[:-1]) & (offset[1:] == end[:-1])
    return bool(follows.sum() > SEQUENCE * len(requests))


def _drawn(file: FileRequests, heat: FileHeat, rng: np.random.Generator) -> FileRequests:
    grid, runs = heat.grid, heat.runs
    count = len(heat.at)
    run = rng.choice(runs.count, count, p=runs.expected / runs.expected.sum())
    slot = runs.first[run] + (rng.random(count) * runs.slots[run]).astype(np.int64)
    # Whose like each is: a request of its run, or any where the run had none.
    order = np.argsort(heat.run, kind="stable")
    first = np.searchsorted(heat.run[order], np.arange(runs.count + 1))
    many = np.diff(first)[run]
    nth = first[run] + (rng.random(count) * np.maximum(many, 1)).astype(np.int64)
    like = heat.at[np.where(many > 0, order[np.minimum(nth, count - 1)], rng.integers(0, count, count))]
    requests = file.requests.copy()
    model = file.requests[like]
    inside = (model["offset"] - grid.base) % grid.slot_bytes
    requests["offset"][heat.at] = np.minimum(
        grid.base + slot * grid.slot_bytes + inside, np.maximum(0, heat.end - model["size"])
    )
    requests["size"][heat.at], requests["write"][heat.at] = model["size"], model["write"]
    return replace(file, requests=requests)
