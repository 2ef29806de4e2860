"""What a replica holds, in which order: strided blocks, each logical byte once, and where a request finds its bytes.

A pattern's requests become blocks in the order of access, process after process. Bytes that stand already are left out,
neighbours are joined, and what repeats at one stride is folded, loop by loop, until few strided sets remain. The form
is that of a layout's replicas (crates/layout, replica.rs): up to eight loops, each stride beyond what smaller ones
cover.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Int = npt.NDArray[np.int64]

#: Loops of one set, as in a layout file (docs/formats.md).
DIMS_MAX = 8
#: Requests of two interleaved sizes are told apart by size where their order of access gives more sets than this.
PARTS_FEW = 16


@dataclass(frozen=True)
class StridedBlocks:
    """Blocks of `block` bytes from `base` on, under loops of (stride in bytes, count), the outermost first."""

    base: int
    block: int
    dims: tuple[tuple[int, int], ...] = ()

    @property
    def count(self) -> int:
        """How many blocks."""
        count = 1
        for _, each in self.dims:
            count *= each
        return count

    @property
    def bytes(self) -> int:
        """Of all blocks."""
        return self.block * self.count

    @property
    def reach(self) -> int:
        """Bytes from the base to the end of the last block."""
        return self.block + sum(stride * (count - 1) for stride, count in self.dims)

    def offsets(self) -> Int:
        """The first logical byte of each block, shape (count,), in the order of the loops."""
        found = np.array([self.base], dtype=np.int64)
        for stride, count in self.dims:
            found = (found[:, None] + np.arange(count, dtype=np.int64) * stride).reshape(-1)
        return found

    def as_json(self) -> dict[str, Any]:
        """base, block and dims as [stride, count]."""
        return {"base": self.base, "block": self.block, "dims": [list(each) for each in self.dims]}


def is_divisible(block: int, dims: Iterable[tuple[int, int]]) -> bool:
    """Whether division by the strides, the largest first, finds each block: the rule of a layout's replicas."""
    reach = block
    for stride, count in sorted(each for each in dims if each[1] > 1):
        if stride < reach:
            return False
        reach += stride * (count - 1)
    return True


def first_touches(offset: Int, size: Int, taken: tuple[Int, Int] | None = None) -> tuple[Int, Int, Int]:
    """Requests without the bytes of earlier ones and of `taken` (starts, ends): row, offset, size, in their order.

    A row whose bytes all stand already is left out, one of which some do is cut (PDLA, Algorithm 1, line 13).
    """
    # Repetitions of the whole first: they need no cutting.
    order = np.lexsort((size, offset))
    again = (offset[order][1:] == offset[order][:-1]) & (size[order][1:] == size[order][:-1])
    row = np.sort(order[np.concatenate([[True], ~again])])
    start, end = offset[row], offset[row] + size[row]
    held = (np.zeros(0, np.int64), np.zeros(0, np.int64)) if taken is None else taken
    if _are_disjoint(np.concatenate([held[0], start]), np.concatenate([held[1], end])):
        return row, start, end - start
    bounds = np.unique(np.concatenate([held[0], held[1], start, end]))
    return _cut(row, np.searchsorted(bounds, start), np.searchsorted(bounds, end), bounds, held)


def _are_disjoint(start: Int, end: Int) -> bool:
    order = np.argsort(start, kind="stable")
    return bool((start[order][1:] >= end[order][:-1]).all())


def _cut(row: Int, low: Int, high: Int, bounds: Int, held: tuple[Int, Int]) -> tuple[Int, Int, Int]:
    """`first_touches` where bytes are shared: `low` and `high` are places in `bounds`, between which nothing ends."""
    # From a stretch that is taken to the next that is not, in few steps (union-find).
    following = list(range(len(bounds) + 1))

    def free(at: int) -> int:
        root = at
        while following[root] != root:
            root = following[root]
        while following[at] != root:
            following[at], at = root, following[at]
        return root

    def take(begin: int, end: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        at = free(begin)
        while at < end:
            following[at] = at + 1
            if found and found[-1][1] == at:
                found[-1] = (found[-1][0], at + 1)
            else:
                found.append((at, at + 1))
            at = free(at + 1)
        return found

    for begin, end in zip(np.searchsorted(bounds, held[0]), np.searchsorted(bounds, held[1]), strict=True):
        take(int(begin), int(end))
    pieces = [
        (number, *piece)
        for number, begin, end in zip(row.tolist(), low.tolist(), high.tolist(), strict=True)
        for piece in take(begin, end)
    ]
    rows, begins, ends = np.array(pieces, dtype=np.int64).reshape(-1, 3).T
    return rows, bounds[begins], bounds[ends] - bounds[begins]


def folded(client: Int, offset: Int, size: Int) -> tuple[tuple[StridedBlocks, ...], tuple[int, ...]]:
    """Disjoint blocks as strided sets in their order, and the bytes of each client in them; `client` ascends.

    A client's neighbours in order and in the file become one block. Sets of several clients that lie at one stride are
    one set, whose outermost loop goes over the clients.
    """
    parts: list[StridedBlocks] = []
    held = []
    bounds = np.flatnonzero(np.diff(client, prepend=-1, append=-1))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        at, length = _joined(offset[begin:end], size[begin:end])
        mine = _folded(at, length)
        if len(mine) > PARTS_FEW:
            # In the order of access their sizes alternate: one set for each size, if these are fewer.
            order = np.argsort(length, kind="stable")
            mine = min(mine, _folded(at[order], length[order]), key=len)
        parts += mine
        held.append(int(length.sum()))
    return tuple(_nested(parts, may_turn=False)), tuple(held)


def _joined(offset: Int, size: Int) -> tuple[Int, Int]:
    """Blocks that go on where the one before ends, as one."""
    begins = np.flatnonzero(np.concatenate([[True], offset[1:] != offset[:-1] + size[:-1]]))
    return offset[begins], np.add.reduceat(size, begins)


def _folded(offset: Int, size: Int) -> list[StridedBlocks]:
    """One client's blocks as strided sets."""
    stride = np.diff(offset)
    # Where a run at one stride and of one size ends: the first place whose step differs from the next one.
    equal = size[1:] == size[:-1]
    steady = (stride[1:] == stride[:-1]) & equal[1:] & equal[:-1]
    breaks = np.append(np.flatnonzero(~steady), len(steady))
    ends = np.append(breaks[np.searchsorted(breaks, np.arange(len(steady)))] + 2, len(offset)).tolist()
    at, length, alike = offset.tolist(), size.tolist(), equal.tolist()
    parts = []
    number = 0
    while number < len(at):
        end = ends[number] if number < len(ends) and number + 1 < len(at) and alike[number] else number + 1
        # Two alone, of which the second begins a longer run, are no run.
        if end == number + 2 and end < len(at) and alike[number + 1] and ends[number + 1] > number + 3:
            end = number + 1
        step = at[number + 1] - at[number] if end > number + 1 else 0
        part = _wrapped(StridedBlocks(at[number], length[number]), step, end - number, may_turn=True)
        if part is None:
            part, end = StridedBlocks(at[number], length[number]), number + 1
        parts.append(part)
        number = end
    return _nested(parts, may_turn=True)


def _wrapped(part: StridedBlocks, stride: int, count: int, may_turn: bool) -> StridedBlocks | None:
    """The part under one more loop; None where the form has none.

    A loop that goes backward is turned, if it may; two parts are none, but a loop that begins anew.
    """
    if count == 1:
        return part
    dims = ((abs(stride), count), *part.dims)
    if stride < 0 and (count == 2 or not may_turn):
        return None
    if len(dims) > DIMS_MAX or not is_divisible(part.block, dims):
        return None
    return StridedBlocks(part.base + min(0, stride * (count - 1)), part.block, dims)


def _nested(parts: list[StridedBlocks], may_turn: bool) -> list[StridedBlocks]:
    """Parts of one form at one stride as one part with one more loop, until there are none."""
    while True:
        found: list[StridedBlocks] = []
        number = 0
        while number < len(parts):
            count = _run(parts, number)
            if count == 2 and _run(parts, number + 1) > 2:
                count = 1
            step = parts[number + 1].base - parts[number].base if count > 1 else 0
            made = _wrapped(parts[number], step, count, may_turn)
            found.append(parts[number] if made is None else made)
            number += 1 if made is None else count
        if len(found) == len(parts):
            return found
        parts = found


def _run(parts: Sequence[StridedBlocks], first: int) -> int:
    """How many parts from the first on have its form, at one stride."""
    last = first
    while (
        last + 1 < len(parts)
        and (parts[last + 1].block, parts[last + 1].dims) == (parts[first].block, parts[first].dims)
        and parts[last + 1].base - parts[last].base == parts[first + 1].base - parts[first].base
    ):
        last += 1
    return last - first + 1


class Standing:
    """Where logical bytes stand in a replica of these parts; the parts share no byte."""

    def __init__(self, parts: Sequence[StridedBlocks]) -> None:
        offsets = [part.offsets() for part in parts]
        start = np.concatenate([np.zeros(0, np.int64), *offsets])
        size = np.concatenate([np.zeros(0, np.int64), *(np.full(part.count, part.block) for part in parts)])
        at = np.cumsum(size) - size
        order = np.argsort(start, kind="stable")
        self.start, self.end, self.at = start[order], (start + size)[order], at[order]
        self.bytes = int(size.sum())

    def find(self, offset: Int, size: Int) -> tuple[Int, Int, Int, Int]:
        """The requests cut at blocks: row, logical offset, offset in the replica (-1: does not stand in it), size.

        In the order of the rows, and of offsets in each; sizes above 0.
        """
        if not len(self.start):
            return np.arange(len(offset)), offset, np.full(len(offset), -1), size
        # A block and the gap before it are a pair of stretches: 2k is the gap before block k, 2k + 1 the block.
        bounds = np.stack([self.start, self.end], axis=1).reshape(-1)
        first = np.searchsorted(bounds, offset, side="right")
        last = np.searchsorted(bounds, offset + size, side="left")
        times = last - first + 1
        row = np.repeat(np.arange(len(offset)), times)
        stretch = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
        ends = np.append(bounds, np.iinfo(np.int64).max)
        begins = np.append(np.iinfo(np.int64).min, bounds)
        low = np.maximum(offset[row], begins[stretch])
        length = np.minimum(offset[row] + size[row], ends[stretch]) - low
        is_block = stretch % 2 == 1
        block = np.minimum(stretch // 2, len(self.start) - 1)
        at = np.where(is_block, self.at[block] + low - self.start[block], -1)
        kept = length > 0
        return row[kept], low[kept], at[kept], length[kept]

    def intervals(self) -> tuple[Int, Int]:
        """Starts and ends of its blocks in the file, ascending."""
        return self.start, self.end
