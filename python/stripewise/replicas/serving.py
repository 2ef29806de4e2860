"""Which requests a set of replicas serves, and where: the requests of a file as its containers and the file get them.

A read that lies in one block of a replica goes to that replica's container, the one of the smallest such block; a home
also serves parts of reads and of writes; what is written goes to the copies that hold it, too. Copies that writes
invalidate get none of them, and serve no read of a block that the requests write at all, before or after. All else goes
to the file. The parts of one request that lie side by side in a container are one request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..workload.requests import Requests
from .blocks import Standing
from .candidate import Candidate
from .stale import Stale, mark_bytes

Int = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Served:
    """The requests of a file as they are served: those of the file itself, and those of each replica's container.

    Rows are those of the program, with offset and size as they are served; parts of one request have its times.
    """

    file: Requests
    containers: tuple[Requests, ...]


@dataclass(frozen=True)
class _Parts:
    """Parts of requests: row of the request, logical offset, size; arrays of one shape, by row and offset ascending."""

    row: Int
    offset: Int
    size: Int

    def split(self, standing: Standing) -> tuple[_Parts, _Parts]:
        """What stands in a replica, its offsets those in the container, and what is left."""
        part, logical, at, size = standing.find(self.offset, self.size)
        there = at >= 0
        found = _Parts(self.row[part[there]], at[there], size[there])
        return found.joined(), _Parts(self.row[part[~there]], logical[~there], size[~there])

    def joined(self) -> _Parts:
        """Parts of one request that go on where the one before ends, as one."""
        if not len(self.row):
            return self
        goes_on = (self.row[1:] == self.row[:-1]) & (self.offset[1:] == self.offset[:-1] + self.size[:-1])
        begins = np.flatnonzero(np.concatenate([[True], ~goes_on]))
        return _Parts(self.row[begins], self.offset[begins], np.add.reduceat(self.size, begins))

    def requests(self, program: Requests) -> Requests:
        """As requests, in the order of the program's."""
        order = np.argsort(self.row, kind="stable")
        made = program[self.row[order]].copy()
        made["offset"], made["size"] = self.offset[order], self.size[order]
        return made


def served(program: Requests, replicas: Sequence[Candidate]) -> Served:
    """The requests of one file (rows of REQUEST_DTYPE) as these replicas of it serve them."""
    standing = [Standing(each.blocks) for each in replicas]
    moved = np.flatnonzero(program["size"] > 0)
    offset, size = program["offset"].astype(np.int64), program["size"].astype(np.int64)
    reader, place = _whole(offset, size, standing)
    reader[program["write"] | (program["size"] <= 0)] = -1
    is_invalidated = np.array([*(each.on_write == "invalidate" for each in replicas), False])
    if is_invalidated.any():
        wrote = moved[program["write"][moved]]
        stale = Stale(offset[wrote], size[wrote], mark_bytes(int((offset + size).max(initial=0))))
        # Of -1, by no replica, the last entry.
        reader[is_invalidated[reader] & stale.touches(offset, size)] = -1
    left = _of(moved[reader[moved] < 0], offset, size)
    written = _of(moved[program["write"][moved]], offset, size)
    containers = []
    for number, (each, where) in enumerate(zip(replicas, standing, strict=True)):
        whole = np.flatnonzero(reader == number)
        parts = [_Parts(whole, place[whole], size[whole])]
        if each.is_home:
            mine, left = left.split(where)
            parts.append(mine)
        elif each.on_write == "update":
            parts.append(written.split(where)[0])
        containers.append(_together(parts).requests(program))
    return Served(left.requests(program), tuple(containers))


def _whole(offset: Int, size: Int, standing: Sequence[Standing]) -> tuple[Int, Int]:
    """By request: the replica with the smallest block that holds all of it (-1: none does), and where it begins there.

    Among equal blocks the first replica.
    """
    reader, place = np.full(len(offset), -1, np.int64), np.zeros(len(offset), np.int64)
    smallest = np.full(len(offset), np.iinfo(np.int64).max)
    for number, each in enumerate(standing):
        if not len(each.start):
            continue
        block = np.searchsorted(each.start, offset, side="right") - 1
        length = each.end[block] - each.start[block]
        better = (block >= 0) & (offset + size <= each.end[block]) & (length < smallest)
        reader[better], smallest[better] = number, length[better]
        place[better] = (each.at[block] + offset - each.start[block])[better]
    return reader, place


def _of(rows: Int, offset: Int, size: Int) -> _Parts:
    return _Parts(rows, offset[rows], size[rows])


def _together(parts: Sequence[_Parts]) -> _Parts:
    columns = ((each.row, each.offset, each.size) for each in parts)
    return _Parts(*(np.concatenate(column) for column in zip(*columns, strict=True)))
