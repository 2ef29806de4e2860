"""Cells: parts of the files that a heuristic deals out whole, and what the requests ask of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stripewise.cluster import Target
from stripewise.workload import Workload

from .instances import PAGE
from .judge import Layout, Piece

Int = NDArray[np.int64]
Float = NDArray[np.float64]
#: More cells than this are not made: the grain is too fine for the time there is.
CELLS_MAX = 120_000


@dataclass(frozen=True)
class Cells:
    """Cells of all files in order: file, start, bytes; reads, writes and their bytes in each."""

    file: Int
    start: Int
    length: Int
    count: Float
    moved: Float

    def seconds(self, target: Target) -> Float:
        """What the requests cost this server, cell by cell; over its channels."""
        startup = np.array([target.startup_read_s, target.startup_write_s])
        per_byte = np.array([target.per_byte_read_s, target.per_byte_write_s])
        return np.asarray((self.count @ startup + self.moved @ per_byte) / target.channels)

    def layout(self, server: Int, targets: tuple[Target, ...], files: int) -> Layout:
        """Every cell whole on its server; neighbours on one server are one piece."""
        made: list[list[Piece]] = [[] for _ in range(files)]
        new = np.flatnonzero((np.diff(self.file, prepend=-1) != 0) | (np.diff(server, prepend=-1) != 0))
        for low, high in zip(new.tolist(), [*new[1:].tolist(), len(server)], strict=True):
            length = int(self.start[high - 1] + self.length[high - 1] - self.start[low])
            stripes = ((targets[int(server[low])].name, length),)
            made[int(self.file[low])].append(Piece(int(self.start[low]), length, stripes))
        return made


def by_grain(workload: Workload, grain: int) -> Cells | None:
    """Cells of `grain` bytes each; None where there would be too many."""
    return _cells(workload, [np.arange(0, file.size_bytes, grain, dtype=np.int64) for file in workload.files])


def by_request(workload: Workload) -> Cells | None:
    """Cells that begin and end where requests do, in whole pages; None where there would be too many."""
    starts = []
    for file in workload.files:
        offset, size = file.requests["offset"], file.requests["size"]
        edges = np.concatenate([[0], offset // PAGE * PAGE, -(-(offset + size) // PAGE) * PAGE])
        starts.append(np.unique(edges[edges < file.size_bytes]).astype(np.int64))
    return _cells(workload, starts)


def _cells(workload: Workload, starts: list[Int]) -> Cells | None:
    if sum(len(each) for each in starts) > CELLS_MAX:
        return None
    made = [_of_file(workload, number, each) for number, each in enumerate(starts)]
    return Cells(*(np.concatenate([each[column] for each in made]) for column in range(5)))


def _of_file(workload: Workload, number: int, start: Int) -> tuple[Int, Int, Int, Float, Float]:
    file = workload.files[number]
    end = np.append(start[1:], -(-file.size_bytes // PAGE) * PAGE)
    requests = file.requests
    low = requests["offset"].astype(np.int64)
    high = low + requests["size"]
    first = np.searchsorted(start, low, side="right") - 1
    last = np.searchsorted(start, high - 1, side="right") - 1
    pieces = last - first + 1
    of = np.repeat(np.arange(len(requests)), pieces)
    cell = first[of] + np.arange(len(of)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    moved = np.minimum(high[of], end[cell]) - np.maximum(low[of], start[cell])
    key = cell * 2 + requests["write"][of]
    shape = (len(start), 2)
    return (
        np.full(len(start), number),
        start,
        end - start,
        np.bincount(key, minlength=2 * len(start)).reshape(shape).astype(np.float64),
        np.bincount(key, weights=moved, minlength=2 * len(start)).reshape(shape),
    )
