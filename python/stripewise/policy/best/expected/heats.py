"""The heat of every file on its requests' own grid, phase by phase of the run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ....model.general import Bool, Float, Int
from ....units import GRANULE_BYTES, round_up
from ....workload.requests import FileRequests, Workload
from ..tuning import FILES_MAX, PERIOD_MAX, PERIODS_LEAST, RUNS_LEAST, RUNS_MAX, SPANS_MAX
from .heat import Runs, heat_of
from .phases import phases_of, segments_of
from .sequence import is_sequence


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
    """A file's heat: the requests that moved bytes (`at` in the file's own order), and of each its slot, its run, where
    in its slot it begins, and the segment of the run in which it does.

    `phases` are those of the segments; `by_phase`, of shape (phases, runs), is what is expected of the runs in each.
    Where the heat is not `is_told`, it is even: one run.
    """

    grid: Grid
    runs: Runs
    by_phase: Float
    phases: Int
    at: Int
    slot: Int
    run: Int
    inside: Int
    size: Int
    write: Bool
    segment: Int
    end: int
    in_sequence: bool
    is_told: bool

    @property
    def phase(self) -> Int:
        """The phase of every request."""
        return np.asarray(self.phases[self.segment])

    @property
    def varies(self) -> bool:
        """Whether another run may ask for something else."""
        return len(self.at) > 0 and (not self.in_sequence or 0 < self.write.mean() < 1)

    def finest(self) -> FileHeat:
        """With runs that may be cut anywhere: where requests begin, however long they are."""
        return self.at_grain(1 - self.grid.unit.bit_length()) if self.grid.unit > 1 else self

    def at_grain(self, power: int) -> FileHeat:
        """With runs that may be cut at 2^power times as many slots; the same where no cut runs through requests."""
        if self.grid.is_apart or not len(self.at):
            return self
        unit = max(1, self.grid.unit << power if power > 0 else self.grid.unit >> -power)
        grid = replace(self.grid, unit=unit)
        if not self.is_told:
            return replace(self, grid=grid)
        runs, by_phase = _told(grid, self.slot, self.phase, RUNS_MAX)
        run = np.searchsorted(runs.first, self.slot, side="right") - 1
        return replace(self, grid=grid, runs=runs, by_phase=by_phase, run=run)


def heats_of(workload: Workload) -> list[FileHeat | None]:
    """The heat of every file; None of those without a byte."""
    total = max(1, workload.requests)
    counts = np.array([len(file.requests) for file in workload.files])
    told = np.zeros(len(counts), dtype=bool)
    told[np.argsort(-counts, kind="stable")[:FILES_MAX]] = True
    segments = segments_of([file.requests for file in workload.files])
    return [
        _heat(file, segment, max(RUNS_LEAST, RUNS_MAX * len(file.requests) // total), is_told)
        for file, segment, is_told in zip(workload.files, segments, told.tolist(), strict=True)
    ]


def _heat(file: FileRequests, segment: Int, most: int, is_told: bool) -> FileHeat | None:
    at = np.flatnonzero(file.requests["size"] > 0)
    moved, segment = file.requests[at], segment[at]
    offset, size = moved["offset"].astype(np.int64), moved["size"].astype(np.int64)
    write = moved["write"].astype(bool)
    end = max([file.size_bytes, *([int((offset + size).max())] if len(moved) else [])])
    if not end:
        return None
    if not len(moved):
        nothing = np.zeros(0, dtype=np.int64)
        runs = Runs(np.zeros(1, dtype=np.int64), np.zeros(0))
        grid = Grid(0, GRANULE_BYTES, round_up(end) // GRANULE_BYTES, False, 1)
        phases = phases_of(nothing, nothing)
        return FileHeat(
            grid, runs, np.zeros((1, 0)), phases, at, nothing, nothing, nothing, size, write, segment, end, False, False
        )  # fmt: skip
    grid = _grid(offset, size, end)
    slot = (offset - grid.base) // grid.slot_bytes
    in_sequence = is_sequence(moved)
    # A sequence is nowhere twice: it has no phases but its own advance.
    inside = (offset - grid.base) % grid.slot_bytes
    place = _place(slot, inside, grid)
    phases = phases_of(segment[:0] if in_sequence else segment, place[:0] if in_sequence else place)
    if is_told:
        runs, by_phase = _told(grid, slot, phases[segment], most)
    else:
        runs = Runs(np.array([0, grid.slots], dtype=np.int64), np.array([float(len(slot))]))
        by_phase = np.bincount(phases[segment], minlength=int(phases[-1]) + 1)[:, None].astype(np.float64)
    run = np.searchsorted(runs.first, slot, side="right") - 1
    return FileHeat(
        grid, runs, by_phase, phases, at, slot, run, inside, size, write, segment, end, in_sequence, is_told
    )  # fmt: skip


def _place(slot: Int, inside: Int, grid: Grid) -> Int:
    """What tells phases apart: slots, and the places in them where requests begin, if these are few."""
    begins, which = np.unique(inside, return_inverse=True)
    return np.asarray(which * grid.slots + slot) if len(begins) <= SPANS_MAX else slot


def _told(grid: Grid, slot: Int, phase: Int, most: int) -> tuple[Runs, Float]:
    """Runs that are expected to be asked for alike in every phase, and what is expected of them in each."""
    finest, phases = grid.unit.bit_length() - 1, int(phase.max()) + 1
    found = [
        heat_of(slot[phase == each], np.ones(int((phase == each).sum())), grid.slots, finest, max(1, most // phases))
        for each in range(phases)
        if (phase == each).any()
    ]
    first = np.unique(np.concatenate([runs.first for runs in found]))
    by_phase = np.zeros((phases, len(first) - 1))
    for each, runs in zip(np.unique(phase).tolist(), found, strict=True):
        of = np.searchsorted(runs.first, first[:-1], side="right") - 1
        by_phase[each] = runs.expected[of] * np.diff(first) / runs.slots[of]
    return Runs(first, by_phase.sum(axis=0)), by_phase


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
