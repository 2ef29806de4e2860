"""The load of a store's targets over a run: each request dealt out to the targets of its file's layout.

A target's part of a request is one access of as many bytes as the layout gives it there. It takes startup + bytes x time
per byte on the target's device by the model, spread over the time in which the program waited for the request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import native
from ..layout import Layout, Region, Stripes
from ..workload.layouts import TracedStore, TracedTarget, read_layouts
from .requests import Numbers, ViewRequests

#: So many requests are dealt out at a time.
CHUNK = 1 << 20
#: Targets with a row of their own; of more, those with most bytes.
TARGETS_MAX = 64


@dataclass(frozen=True)
class TargetLoad:
    """Who served the requests: per target [read, written] `bytes` and `accesses`, and `work_s` of its device by the model.

    `cells` are work (ns), bytes read and bytes written by target and bin of `width` ns. `without` requests lie in files
    whose layout is not known.
    """

    store: str
    targets: tuple[TracedTarget, ...]
    bytes: Numbers
    accesses: Numbers
    work_s: Numbers
    cells: Numbers
    width: int
    without: int


def parts(layout: Layout, names: Sequence[str], offset: Numbers, size: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The accesses of requests: the request's row, the target's place in `names`, bytes. A request that touches a target
    in several regions is an access to each; within a region its bytes on a target are one.
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


def loads_of(requests: ViewRequests, trace: Path, end_ns: int, limit: int) -> list[TargetLoad]:
    """What each store's targets did, in at most `limit` bins. Raises what `read_layouts` does."""
    return [load for store in read_layouts(trace) if (load := _load(requests, store, end_ns, limit)) is not None]


def _load(requests: ViewRequests, store: TracedStore, end_ns: int, limit: int) -> TargetLoad | None:
    names = [target.name for target in store.targets]
    count = len(names)
    moved, accesses = np.zeros((count, 2), dtype=np.int64), np.zeros((count, 2), dtype=np.int64)
    work = np.zeros(count)
    cells, width = None, 1
    seen = 0
    for number, path in enumerate(requests.files):
        if path not in store.layouts:
            continue
        rows = np.frombuffer(requests.trace.file_rows(number), dtype=np.uint32)
        rows = rows[requests.offset[rows] >= 0]
        for begin in range(0, len(rows), CHUNK):
            chunk = rows[begin : begin + CHUNK]
            seen += len(chunk)
            row, target, size = parts(store.layouts[path], names, requests.offset[chunk], requests.size[chunk])
            row = chunk[row]
            write = requests.write[row].astype(np.int64)
            np.add.at(moved, (target, write), size)
            np.add.at(accesses, (target, write), 1)
            time_ns = _times(store.targets, target, size, write)
            work += np.bincount(target, weights=time_ns, minlength=count) / 1e9
            made, width = _timeline(requests, row, target, size, time_ns, end_ns, limit, count)
            cells = made if cells is None else cells + made
    if cells is None:
        return None
    kept = np.sort(np.argsort(-moved.sum(axis=1), kind="stable")[:TARGETS_MAX])
    return TargetLoad(
        store.root, tuple(store.targets[place] for place in kept.tolist()),
        moved[kept], accesses[kept], work[kept], cells[:, kept], width, len(requests) - seen,
    )  # fmt: skip


def _times(targets: Sequence[TracedTarget], target: Numbers, size: Numbers, write: Numbers) -> Numbers:
    """Nanoseconds that each access takes its device, over its channels."""
    channels = np.array([each.channels for each in targets], dtype=float)[target]
    startup = np.array([[each.startup_read_s, each.startup_write_s] for each in targets])[target, write]
    per_byte = np.array([[each.per_byte_read_s, each.per_byte_write_s] for each in targets])[target, write]
    return np.asarray((startup + size * per_byte) / channels * 1e9)


def _timeline(
    requests: ViewRequests,
    row: Numbers,
    target: Numbers,
    size: Numbers,
    time_ns: Numbers,
    end_ns: int,
    limit: int,
    count: int,
) -> tuple[Numbers, int]:
    """Work, bytes read and bytes written by target and bin; and the width of a bin."""
    start, end = np.ascontiguousarray(requests.start_ns[row]), np.ascontiguousarray(requests.end_ns[row])
    who, write = target.astype(np.uint32), np.ascontiguousarray(requests.write[row])
    zeros: Numbers = np.zeros(len(row), dtype=np.int64)
    layers: list[Any] = []
    width = 1
    for amount, operation in ((size, write), (np.rint(time_ns).astype(np.int64), np.zeros_like(write))):
        columns = (start, end, who, zeros.astype(np.uint32), operation, zeros, np.ascontiguousarray(amount))
        data, width, bins = native.make("ViewTrace", *columns, 1).timeline(end_ns, limit, count, 1)
        layers.append(np.frombuffer(data, dtype=np.uint64).reshape(3, count, bins))
    (_, read, written), (_, work, _) = layers
    return np.stack([work, read, written]), width
