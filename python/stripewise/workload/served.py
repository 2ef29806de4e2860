"""What a store's targets did in a run: each request dealt out to the targets of its file's layout.

A target's part of a request is one access of as many bytes as the layout gives it there. It takes its device startup +
bytes x time per byte, by the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..layout import Layout, Region, Stripes
from .layouts import TracedStore, TracedTarget

Numbers = npt.NDArray[Any]
#: So many requests are dealt out at a time.
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

    def add(
        self, path: str, offset: Numbers, size: Numbers, write: Numbers
    ) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Adds requests of a file that has a layout; `write` is 0 or 1. Returns their accesses: the request's row, the
        target's place, bytes, and ns of its device.
        """
        row, target, count = parts(self.store.layouts[path], self.names, offset, size)
        operation = write[row].astype(np.int64)
        time_ns = times_ns(self.store.targets, target, count, operation)
        np.add.at(self.bytes, (target, operation), count)
        np.add.at(self.accesses, (target, operation), 1)
        self.work_s += np.bincount(target, weights=time_ns, minlength=len(self.names)) / 1e9
        self.requests += len(offset)
        return row, target, count, time_ns


def served_by(store: TracedStore, files: Iterable[tuple[str, Numbers, Numbers, Numbers]]) -> Served:
    """What the targets of a store did for files: path, and by request offset, bytes and whether it writes."""
    served = Served(store)
    for path, offset, size, write in files:
        if path in store.layouts:
            for begin in range(0, len(offset), CHUNK):
                chunk = slice(begin, begin + CHUNK)
                served.add(path, offset[chunk], size[chunk], write[chunk])
    return served


def parts(layout: Layout, names: Sequence[str], offset: Numbers, size: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The accesses of requests: the request's row, the target's place in `names`, bytes.

    The bytes of a request that a target has in one region are one access.
    """
    starts = np.array([region.start for region in layout.regions], dtype=np.int64)
    last = layout.regions[-1]
    place = {name: number for number, name in enumerate(names)}
    rows, targets, counts = [], [], []
    for stripes, row, low, high in _cut(layout.regions, starts, last, offset, size):
        cycle = sum(width for _, width in stripes)
        begin = 0
        for name, width in stripes:
            count = _before(high, cycle, begin, width) - _before(low, cycle, begin, width)
            kept = count > 0
            rows.append(row[kept])
            targets.append(np.full(int(kept.sum()), place[name], dtype=np.int64))
            counts.append(count[kept])
            begin += width
    none: Numbers = np.zeros(0, dtype=np.int64)
    return (
        np.concatenate([none, *rows]),
        np.concatenate([none, *targets]),
        np.concatenate([none, *counts]),
    )


def _before(at: Numbers, cycle: int, begin: int, width: int) -> Numbers:
    """Bytes of a stripe among the first `at` of a region."""
    return np.asarray(at // cycle * width + np.clip(at % cycle - begin, 0, width))


def _cut(
    regions: Sequence[Region], starts: Numbers, last: Region, offset: Numbers, size: Numbers
) -> Iterator[tuple[Stripes, Numbers, Numbers, Numbers]]:
    """Requests cut at the borders of regions, those of one cycle together: rows, and ranges within their regions."""
    end = offset + size
    first = np.searchsorted(starts, offset, side="right") - 1
    until = np.searchsorted(starts, end, side="left")
    # The last region repeats: each repetition is a region of its own.
    repeated = np.where(end > last.start, (np.maximum(end, last.start + 1) - 1 - last.start) // last.len, 0)
    begun = np.where(offset > last.start, (offset - last.start) // last.len, 0)
    number = first + begun
    times = until - 1 + repeated - number + 1
    row = np.repeat(np.arange(len(offset)), times)
    each = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times) + number[row]
    final = len(regions) - 1
    region = np.minimum(each, final)
    base = starts[region] + (each - region) * last.len
    length = np.array([region.len for region in regions], dtype=np.int64)[region]
    low = np.maximum(offset[row] - base, 0)
    high = np.minimum(end[row] - base, length)
    alike: dict[Stripes, list[int]] = {}
    for position, one in enumerate(regions):
        alike.setdefault(one.stripes, []).append(position)
    kind = np.zeros(len(regions), dtype=np.int64)
    for code, positions in enumerate(alike.values()):
        kind[positions] = code
    for code, stripes in enumerate(alike):
        chosen = kind[region] == code
        yield stripes, row[chosen], low[chosen], high[chosen]


def times_ns(targets: Sequence[TracedTarget], target: Numbers, size: Numbers, write: Numbers) -> Numbers:
    """Nanoseconds that each access takes its device, over its channels."""
    channels = np.array([each.channels for each in targets], dtype=float)[target]
    startup = np.array([[each.startup_read_s, each.startup_write_s] for each in targets])[target, write]
    per_byte = np.array([[each.per_byte_read_s, each.per_byte_write_s] for each in targets])[target, write]
    return np.asarray((startup + size * per_byte) / channels * 1e9)
