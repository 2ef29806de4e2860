"""What building a copy and bringing it up to writes ask of devices, access by access, as builder and runtime do it.

Where every access waits for itself, order and number of accesses are what counts: a write of many blocks that stand
apart in a copy is one access in the file and one for each block there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..units import KIB, MIB
from .blocks import Standing, StridedBlocks

Int = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

#: A write goes to the file and to its copies in parts of so many bytes (crates/runtime, io/twice.rs, CHUNK_BYTES).
WRITE_BYTES = 128 * KIB
#: The builder reads so many bytes of a set, then writes them (crates/store, moves/throttle.rs, CAREFUL_CHUNK_BYTES).
BUILD_BYTES = MIB
#: In `Steps.copy`: the file itself.
FILE = -1


@dataclass(frozen=True)
class Steps:
    """Accesses, arrays of one shape: each client's come one after another.

    `copy` is the number of the copy or `FILE`, `offset` and `size` (above 0) bytes in either.
    """

    client: Int
    write: Bool
    copy: Int
    offset: Int
    size: Int

    def chosen(self, those: Bool) -> Steps:
        """Some of them."""
        return Steps(self.client[those], self.write[those], self.copy[those], self.offset[those], self.size[those])


def building(blocks: Sequence[StridedBlocks]) -> Steps:
    """One process makes the copy set by set: it reads a chunk's blocks in the copy's order, those that lie side by side
    in the file as one, then writes the chunk.
    """
    columns: list[tuple[Int, Int, Int]] = []
    base = 0
    for part in blocks:
        starts = part.offsets()
        whole = part.bytes
        chunk_at = np.arange(0, whole, BUILD_BYTES, dtype=np.int64)
        at = np.union1d(np.arange(part.count, dtype=np.int64) * part.block, chunk_at)
        size = np.diff(at, append=whole)
        logical, chunk = starts[at // part.block] + at % part.block, at // BUILD_BYTES
        goes_on = (logical[1:] == logical[:-1] + size[:-1]) & (chunk[1:] == chunk[:-1])
        begins = np.flatnonzero(np.concatenate([[True], ~goes_on]))
        copy = np.concatenate([np.full(len(begins), FILE), np.zeros(len(chunk_at), np.int64)])
        offset = np.concatenate([logical[begins], base + chunk_at])
        sizes = np.concatenate([np.add.reduceat(size, begins), np.diff(chunk_at, append=whole)])
        order = np.argsort(np.concatenate([chunk[begins], np.arange(len(chunk_at))]), kind="stable")
        columns.append((copy[order], offset[order], sizes[order]))
        base += whole
    copy, offset, size = (np.concatenate(each) for each in zip(*columns, strict=True))
    return Steps(np.zeros(len(copy), np.int64), copy != FILE, copy, offset, size)


def writing(client: Int, offset: Int, size: Int, copies: Sequence[Sequence[StridedBlocks]]) -> Steps:
    """Writes of a file with these copies: part by part to the file, then to each block of each copy that has of it."""
    times = -(-size // WRITE_BYTES)
    row = np.repeat(np.arange(len(size)), times)
    done = (np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)) * WRITE_BYTES
    at, length = offset[row] + done, np.minimum(size[row] - done, WRITE_BYTES)
    # Of each access its part, the turn in it, and where it goes.
    columns = [(np.arange(len(row)), np.zeros(len(row), np.int64), np.full(len(row), FILE), at, length)]
    turn = 0
    for number, blocks in enumerate(copies):
        base = 0
        for each in blocks:
            turn += 1
            part, _, place, held = Standing((each,)).find(at, length)
            there = place >= 0
            alike = np.ones(int(there.sum()), np.int64)
            columns.append((part[there], turn * alike, number * alike, base + place[there], held[there]))
            base += each.bytes
    part, turns, copy, places, sizes = (np.concatenate(each) for each in zip(*columns, strict=True))
    order = np.lexsort((turns, part))
    return Steps(client[row][part[order]], np.ones(len(order), dtype=bool), copy[order], places[order], sizes[order])
