"""Which requests a set of replicas serves, and where: the requests of a file as its containers and the file get them.

A read that lies in one block of a replica goes to that replica's container, the one of the smallest such block; a home
also serves parts of reads and of writes; what is written goes to the copies that hold it, too. Copies that writes
invalidate get none of them, and serve no read of a block that the requests write at all, before or after. All else goes
to the file. A call of MPI-IO whose blocks all stand in copies reads these, and the reads that it made of the file in
the run are none. The parts of one request that lie side by side in a container are one request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..pattern.views import Views
from ..units import KIB
from ..workload.requests import REQUEST_DTYPE, Requests
from .blocks import Standing
from .candidate import Candidate
from .stale import Stale, mark_bytes

Int = npt.NDArray[np.int64]

#: Reads behind a view that copies have in smaller pieces on average are left to the MPI library (docs/replicas.md).
PIECE_BYTES = 4 * KIB


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


def served(program: Requests, replicas: Sequence[Candidate], views: Views | None = None) -> Served:
    """The requests of one file (rows of REQUEST_DTYPE) as these replicas of it serve them.

    `views` are the calls of MPI-IO that made reads of it: those that copies serve make none.
    """
    standing = [Standing(each.blocks) for each in replicas]
    moved = np.flatnonzero(program["size"] > 0)
    offset, size = program["offset"].astype(np.int64), program["size"].astype(np.int64)
    reader, place = _whole(offset, size, standing)
    reader[program["write"] | (program["size"] <= 0)] = -1
    is_invalidated = np.array([*(each.on_write == "invalidate" for each in replicas), False])
    wrote = moved[program["write"][moved] & is_invalidated.any()]
    stale = Stale(offset[wrote], size[wrote], mark_bytes(int((offset + size).max(initial=0))))
    # Of -1, by no replica, the last entry.
    reader[is_invalidated[reader] & stale.touches(offset, size)] = -1
    called: list[Requests] = [program[:0]] * len(replicas)
    if views is not None and replicas and len(program):
        is_copy = np.array([*(not each.is_home for each in replicas), False])
        found, at = _whole(views.offset, views.size, standing)
        found[is_invalidated[found] & stale.touches(views.offset, views.size)] = -1
        is_served = (found >= 0) & is_copy[found] & (views.start_ns <= program["start_ns"].max())
        calls, called = _called(views, found, at, is_served, len(replicas))
        call = views.call_of(program["rank"].astype(np.int64), program["start_ns"])
        is_made = (call >= 0) & calls[call] & ~program["write"]
        moved, reader = moved[~is_made[moved]], np.where(is_made, -1, reader)
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
        made = _together(parts).requests(program)
        if len(called[number]):
            made = np.concatenate([made, called[number]])
            made = made[np.argsort(made["start_ns"], kind="stable")]
        containers.append(made)
    return Served(left.requests(program), tuple(containers))


def _called(
    views: Views, reader: Int, place: Int, is_served: npt.NDArray[np.bool_], replicas: int
) -> tuple[npt.NDArray[np.bool_], list[Requests]]:
    """Which calls copies serve, by number, and the reads that they are of each replica: what lies side by side in it is
    one, and a call has its reads one after another.
    """
    count = int(views.call[-1]) + 1
    calls = np.bincount(views.call[~is_served], minlength=count) == 0
    kept = np.flatnonzero(calls[views.call])
    call, of, at, size = views.call[kept], reader[kept], place[kept], views.size[kept]
    goes_on = (call[1:] == call[:-1]) & (of[1:] == of[:-1]) & (at[1:] == at[:-1] + size[:-1])
    begins = np.flatnonzero(np.concatenate([[True], ~goes_on])) if len(kept) else np.zeros(0, np.int64)
    length = np.add.reduceat(size, begins) if len(kept) else size
    pieces = np.bincount(call[begins], minlength=count)
    # The MPI library is quicker with many small ones.
    calls &= np.bincount(call[begins], weights=length, minlength=count) >= pieces * PIECE_BYTES
    large = calls[call[begins]]
    begins, length = begins[large], length[large]
    row, number = kept[begins], call[begins]
    first = np.flatnonzero(np.diff(number, prepend=-1))
    turn = np.arange(len(number)) - np.repeat(first, np.diff(first, append=len(number)))
    made = np.zeros(len(row), REQUEST_DTYPE)
    each_ns = (views.end_ns[row] - views.start_ns[row]) // np.maximum(pieces[number], 1)
    made["start_ns"] = views.start_ns[row] + turn * each_ns
    made["end_ns"] = made["start_ns"] + each_ns
    made["rank"], made["offset"], made["size"] = views.rank[row], at[begins], length
    return calls, [made[of[begins] == each] for each in range(replicas)]


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
