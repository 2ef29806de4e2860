"""What a store's targets did in a run: each request dealt out to the targets of its file's layout.

A target's part of a request is one access of as many bytes as the layout gives it there. It takes its device startup +
bytes x time per byte, by the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..layout import Layout, Region, Stripes
from .layouts import TracedStore, TracedTarget

Numbers = npt.NDArray[Any]
#: So many pieces of requests are dealt out at a time.
CHUNK = 1 << 20


class Served:
    """Sums by target of a store: `bytes` and `accesses` as [read, written], `work_s` of its device.

    `requests` is how many were dealt out.
    """

    def __init__(self, store: TracedStore) -> None:
        self.store = store
        self.names = [target.name for target in store.targets]
        self.bytes: Numbers = np.zeros((len(self.names), 2), dtype=np.int64)
        self.accesses: Numbers = np.zeros((len(self.names), 2), dtype=np.int64)
        self.work_s: Numbers = np.zeros(len(self.names))
        self.requests = 0

    def add(self, path: str, offset: Numbers, size: Numbers, write: Numbers) -> Iterator[tuple[Numbers, ...]]:
        """Adds requests of a file that has a layout, at known offsets; `write` is 0 or 1.

        Yields their pieces, some at a time: the request's row, the target's place, bytes, and ns of its device.
        """
        layout = self.store.layouts[path]
        self.requests += len(offset)
        for row, target, count, accesses in dealt(layout, self.names, offset, size):
            operation = write[row].astype(np.int64)
            time_ns = times_ns(self.store.targets, target, count, accesses, operation)
            np.add.at(self.bytes, (target, operation), count)
            np.add.at(self.accesses, (target, operation), accesses)
            self.work_s += np.bincount(target, weights=time_ns, minlength=len(self.names)) / 1e9
            yield row, target, count, time_ns


def served_by(store: TracedStore, files: Iterable[tuple[str, Numbers, Numbers, Numbers]]) -> Served:
    """What the targets of a store did for files: path, and by request offset, bytes and whether it writes."""
    served = Served(store)
    for path, offset, size, write in files:
        if path in store.layouts:
            for _ in served.add(path, offset, size, write):
                pass
    return served


def dealt(
    layout: Layout, names: Sequence[str], offset: Numbers, size: Numbers
) -> Iterator[tuple[Numbers, Numbers, Numbers, Numbers]]:
    """As `parts`, some requests at a time, so that any number of them fits."""
    for rows in _some(layout, offset, size):
        row, *others = parts(layout, names, offset[rows], size[rows])
        yield row + rows.start, *others


def _some(layout: Layout, offset: Numbers, size: Numbers) -> Iterator[slice]:
    """Rows of requests that come to CHUNK pieces or so together."""
    starts = np.array([region.start for region in layout.regions], dtype=np.int64)
    first = np.searchsorted(starts, offset, side="right")
    pieces = np.searchsorted(starts, offset + size, side="left") - first + 3
    most = max(len(region.stripes) for region in layout.regions)
    done = np.cumsum(pieces * most)
    begin = 0
    while begin < len(offset):
        before = int(done[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(done, before + CHUNK, side="right")))
        yield slice(begin, end)
        begin = end


def parts(
    layout: Layout, names: Sequence[str], offset: Numbers, size: Numbers
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """The pieces of requests: the request's row, the target's place in `names`, bytes, and accesses.

    The bytes of a request that a target has in one region are one access. A request that lies in one stretch of one
    object, over several regions that are whole on its target, is one (crates/runtime, io.rs).
    """
    place = {name: number for number, name in enumerate(names)}
    found: list[list[Numbers]] = [[np.zeros(0, dtype=np.int64)] for _ in range(5)]
    for stripes, row, low, high, times, goes_on in _cut(layout.regions, place, offset, size):
        cycle = sum(width for _, width in stripes)
        begin = 0
        for name, width in stripes:
            count = _before(high, cycle, begin, width) - _before(low, cycle, begin, width)
            kept = count > 0
            joined = ((goes_on == place[name]) & (begin == 0)).astype(np.int64)
            columns = (row, np.full(len(row), place[name], dtype=np.int64), count * times, times, joined)
            for column, values in zip(found, columns, strict=True):
                column.append(values[kept])
            begin += width
    row, target, count, accesses, joined = (np.concatenate(column) for column in found)
    pieces = np.bincount(row, minlength=len(offset))
    in_one = pieces == np.bincount(row, weights=joined, minlength=len(offset)) + 1
    # Repetitions in between go on where each other ends, as the first of them does.
    return row, target, count, np.where(in_one[row], 1 - joined, accesses)


def _is_whole(region: Region) -> bool:
    """Whether it lies whole on one target."""
    return len(region.stripes) == 1 or region.stripes[0][1] >= region.len


def _before(at: Numbers, cycle: int, begin: int, width: int) -> Numbers:
    """Bytes of a stripe among the first `at` of a region."""
    return np.asarray(at // cycle * width + np.clip(at % cycle - begin, 0, width))


def _cut(
    regions: Sequence[Region], place: Mapping[str, int], offset: Numbers, size: Numbers
) -> Iterator[tuple[Stripes, Numbers, Numbers, Numbers, Numbers, Numbers]]:
    """Requests cut at the borders of regions, those of one cycle together: rows, ranges within their regions, how many
    such regions it is, and the target where the request's piece before ends an object's slice (-1: there is none).

    The last region repeats: each repetition is a region of its own, and those in between are one piece.
    """
    starts = np.array([region.start for region in regions], dtype=np.int64)
    last, final = regions[-1], len(regions) - 1
    end = offset + size
    # A number for each region, and on from the last for its repetitions.
    first = np.searchsorted(starts, offset, side="right") - 1 + np.maximum(0, offset - last.start) // last.len
    until = np.searchsorted(starts, end, side="left") - 1 + np.maximum(0, end - 1 - last.start) // last.len
    # The first whole repetition that is not the request's first piece, and its last piece.
    whole = np.maximum(first + 1, final)
    many = np.maximum(1, until - whole)
    pieces = until - first + 1 - (many - 1)
    row = np.repeat(np.arange(len(offset)), pieces)
    number = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + first[row]
    number = np.where(number > whole[row], number + many[row] - 1, number)
    times = np.where(number == whole[row], many[row], 1)
    region = np.minimum(number, final)
    base = starts[region] + (number - region) * last.len
    length = np.array([each.len for each in regions], dtype=np.int64)[region]
    low = np.maximum(offset[row] - base, 0)
    high = np.minimum(end[row] - base, length)
    alone = np.array([place[each.stripes[0][0]] if _is_whole(each) else -1 for each in regions])
    before = np.minimum(number - 1, final)
    goes_on = np.where(number > first[row], alone[np.maximum(before, 0)], -1)
    alike: dict[Stripes, list[int]] = {}
    for position, one in enumerate(regions):
        alike.setdefault(one.stripes, []).append(position)
    kind = np.zeros(len(regions), dtype=np.int64)
    for code, positions in enumerate(alike.values()):
        kind[positions] = code
    for code, stripes in enumerate(alike):
        chosen = kind[region] == code
        yield stripes, row[chosen], low[chosen], high[chosen], times[chosen], goes_on[chosen]


def times_ns(
    targets: Sequence[TracedTarget], target: Numbers, size: Numbers, accesses: Numbers, write: Numbers
) -> Numbers:
    """Nanoseconds that each piece takes its device, over its channels."""
    channels = np.array([each.channels for each in targets], dtype=float)[target]
    startup = np.array([[each.startup_read_s, each.startup_write_s] for each in targets])[target, write]
    per_byte = np.array([[each.per_byte_read_s, each.per_byte_write_s] for each in targets])[target, write]
    return np.asarray((accesses * startup + size * per_byte) / channels * 1e9)
