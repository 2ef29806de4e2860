"""Uses of one file, for which copies and homes are compared: their requests, and what RADAR sees of them.

A use is a few phases, run one after another, each a job that begins when the one before has ended. Requests are made in
memory; patterns are those that `stripewise pattern` would find, one per phase and operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from common import KIB, MIB
from stripewise.replicas import Accesses, Found
from stripewise.replicas.accesses import Extent, Writes
from stripewise.workload import REQUEST_DTYPE, FileRequests, Workload
from stripewise.workload.requests import Requests
from stripewise.workload.zipf import ZipfRun

Int = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
FILE = "/file"
#: Of a matrix: a block of a column, and a row.
BLOCK, ROW = 16 * KIB, 256 * KIB
#: One column of nine, so that it fits an eighth of the data.
COLUMNS = 9
#: Between requests of a process, exponential: processes do not keep step (docs/simulator.md, No jitter).
THINK_S = 0.0001
#: Between phases on the clock of the trace, so that RADAR has a bucket for each.
PHASE_NS = 10**12


@dataclass(frozen=True)
class Phase:
    """Requests of shape (processes, requests of each), each process's in its order; a random phase has no pattern."""

    words: str
    offset: Int
    size: Int
    write: Bool
    is_random: bool = False

    @property
    def bytes(self) -> int:
        """Of all requests."""
        return int(self.size.sum())

    def rows(self, seed: int, start_ns: int) -> Requests:
        """As requests with think times that the seed draws."""
        random = np.random.default_rng(seed)
        think = random.exponential(THINK_S * 1e9, self.offset.shape).astype(np.int64) + 1
        made = np.zeros(self.offset.size, REQUEST_DTYPE)
        made["start_ns"] = made["end_ns"] = (start_ns + np.cumsum(think, axis=1)).reshape(-1)
        made["rank"] = np.repeat(np.arange(len(self.offset)), self.offset.shape[1])
        made["write"], made["offset"], made["size"] = (x.reshape(-1) for x in (self.write, self.offset, self.size))
        return made

    def patterns(self, start_ns: int) -> list[Accesses]:
        """Its reads and its writes, a pattern each."""
        if self.is_random:
            return []
        client = np.repeat(np.arange(len(self.offset), dtype=np.int64), self.offset.shape[1])
        write, offset, size = self.write.reshape(-1), self.offset.reshape(-1), self.size.reshape(-1)
        return [
            Accesses(
                FILE, self.words, True, client[kind], write[kind], offset[kind], size[kind], start_ns, start_ns + 1
            )
            for kind in (~write, write)
            if kind.any()
        ]


@dataclass(frozen=True)
class Use:
    """A file of `file_bytes` and what is done with it."""

    name: str
    file_bytes: int
    phases: tuple[Phase, ...]

    @property
    def processes(self) -> int:
        """All phases have as many."""
        return len(self.phases[0].offset)

    def workload(self, phase: int, seed: int) -> Workload:
        """One phase, as it is run."""
        rows = self.phases[phase].rows(seed, 0)
        return Workload((FileRequests(FILE, rows, self.file_bytes),), self.processes, self.name)

    def whole(self, seed: int) -> Workload:
        """All phases in one trace, from which homes are planned."""
        rows = np.concatenate([each.rows(seed, n * PHASE_NS) for n, each in enumerate(self.phases)])
        return Workload((FileRequests(FILE, rows, self.file_bytes),), self.processes, self.name)

    def found(self) -> Found:
        """What RADAR decides about."""
        patterns = [one for n, each in enumerate(self.phases) for one in each.patterns(n * PHASE_NS)]
        random = [
            (FILE, each.words, "random requests follow no pattern", int(each.size.sum()))
            for each in self.phases
            if each.is_random
        ]
        read = sum(int(each.size[~each.write].sum()) for each in self.phases)
        written = sum(int(each.size[each.write].sum()) for each in self.phases)
        writing = [each for each in patterns if each.write.any()]
        writes = Writes(
            *(np.concatenate([np.zeros(0, np.int64), *column]) for column in zip(
                *((each.client, each.offset, each.size) for each in writing), strict=True
            ))
        ) if writing else None  # fmt: skip
        return Found(tuple(patterns), tuple(random), {FILE: Extent(self.file_bytes, read, written, writes)})


def _phase(words: str, offset: Int, size: int, is_write: bool = False) -> Phase:
    return Phase(words, offset, np.full_like(offset, size), np.full(offset.shape, is_write))


def _box(processes: int, several: Sequence[Int]) -> Int:
    """Offsets of boxes, dealt out to processes in turn, box after box."""
    return np.stack([np.concatenate(several[number::processes]) for number in range(processes)])


def column(processes: int, file_bytes: int = 256 * MIB) -> Phase:
    """One column of nine, each process in rows of its own."""
    count = file_bytes // (COLUMNS * BLOCK) // processes * processes
    offset = np.arange(count, dtype=np.int64).reshape(processes, -1) * COLUMNS * BLOCK
    return _phase("one column", offset, BLOCK)


def one_column(processes: int) -> Use:
    """The strided column."""
    return Use("one column", 256 * MIB, (column(processes),))


def rows_and_columns(processes: int, name: str, read_bytes: int, file_bytes: int = 256 * MIB) -> Use:
    """The first `read_bytes` by rows, then by columns, a process after another column."""
    count = read_bytes // ROW // processes * processes
    line = np.arange(count, dtype=np.int64) * ROW
    across = [line + number * BLOCK for number in range(ROW // BLOCK)]
    by_column = _box(processes, across)
    return Use(
        name, file_bytes, (_phase("by rows", line.reshape(processes, -1), ROW), _phase("by columns", by_column, BLOCK))
    )


#: The 4-D array: 16 steps of 16 x 16 rows of Z of 256 KiB, 1 GiB; row, column and cube read four of the steps.
SIDE, STEPS_READ = 16, (6, 10)


def four_uses(processes: int) -> Use:
    """Row, column, cube, time: RADAR's decompositions (section III-B), at 16 processes, or by one in their order."""
    z, y, x, t = ROW, SIDE * ROW, SIDE * SIDE * ROW, range(*STEPS_READ)

    def box(t: Sequence[int], x0: Sequence[int], y0: Sequence[int], z0: int) -> Int:
        grid = np.array([[[a * x + b * y + c * z + z0 for c in y0] for b in x0] for a in t], dtype=np.int64)
        return grid.reshape(-1)

    side, half = range(SIDE), range(SIDE // 2)
    low_high = (range(SIDE // 2), range(SIDE // 2, SIDE))
    rows = [box(t, [number], side, 0) for number in side]
    columns = [box(t, side, side, number * BLOCK) for number in side]
    cubes = [box(t, a, b, c * (ROW // 4)) for a in low_high for b in low_high for c in range(4)]
    times = [box([number], half, half, 0) for number in side]
    parts = (("row", rows, ROW), ("column", columns, BLOCK), ("cube", cubes, ROW // 4), ("time", times, ROW // 2))
    return Use(
        "four uses of an array",
        SIDE**3 * ROW,
        tuple(_phase(name, _box(processes, several), size) for name, several, size in parts),
    )


def zipf(processes: int, requests: int, seed: int) -> Use:
    """Random 256 KiB reads, regions of 4 MiB hot by Zipf 0.8."""
    run = ZipfRun(processes, 1024 * MIB, 4 * MIB, 256 * KIB, reads=requests, seed=seed)
    offset = np.stack([run.offsets(rank, 1) for rank in range(processes)])
    made = _phase("random reads", offset, 256 * KIB)
    return Use("Zipf 0.8", 1024 * MIB, (Phase(made.words, offset, made.size, made.write, True),))


def read_mostly(processes: int, every: int) -> Use:
    """The column; after each `every` reads of a process the last block but half of them is written again."""
    read = column(processes)
    count = read.offset.shape[1]
    back = np.arange(every - 1, count, every)
    offset = np.insert(read.offset, back + 1, read.offset[:, back - every // 2], axis=1)
    write = np.insert(read.write, back + 1, True, axis=1)
    name = f"column, {100 / (every + 1):.0f} % writes"
    return Use(name, 256 * MIB, (Phase("column with writes", offset, np.full_like(offset, BLOCK), write),))


def checkpoint(processes: int) -> Use:
    """The file is written in order, 1 MiB at a time, each process its part; then a column of it is read."""
    count = 256 * MIB // MIB // processes
    offset = np.arange(count * processes, dtype=np.int64).reshape(processes, -1) * MIB
    return Use("checkpoint", 256 * MIB, (_phase("write", offset, MIB, True), column(processes)))
