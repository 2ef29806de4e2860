"""The load of a store's targets over a run: their accesses (`workload/served.py`), spread over their requests' time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import native
from ..workload.layouts import TracedStore, TracedTarget, read_layouts
from ..workload.served import Served
from .requests import Numbers, ViewRequests

#: Targets with a row of their own; of more, those with most bytes.
TARGETS_MAX = 64


@dataclass(frozen=True)
class TargetLoad:
    """Who served the requests: per target [read, written] `bytes` and `accesses`, and `work_s` of its device.

    `cells` are work (ns), bytes read and bytes written by target and bin of `width` ns. `without` requests lie in files
    whose layout is not known, or at places that are not; `copied` reads were served by copies of the files; `more`
    targets have fewer bytes than these.
    """

    store: str
    as_read: str
    targets: tuple[TracedTarget, ...]
    bytes: Numbers
    accesses: Numbers
    work_s: Numbers
    cells: Numbers
    width: int
    without: int
    copied: int
    more: int


def loads_of(requests: ViewRequests, trace: Path, end_ns: int, limit: int) -> list[TargetLoad]:
    """What each store's targets did, in at most `limit` bins. Raises what `read_layouts` does."""
    return [load for store in read_layouts(trace) if (load := _load(requests, store, end_ns, limit)) is not None]


def _load(requests: ViewRequests, store: TracedStore, end_ns: int, limit: int) -> TargetLoad | None:
    kept = np.arange(len(store.targets))
    if len(kept) > TARGETS_MAX:
        # Cells of all of them would be many times what is shown: those with most bytes first.
        served = Served(store)
        for _ in _pieces(requests, served):
            pass
        kept = np.sort(np.argsort(-served.bytes.sum(axis=1), kind="stable")[:TARGETS_MAX])
    row_of = np.full(len(store.targets), -1)
    row_of[kept] = np.arange(len(kept))
    cells, width = None, 1
    served = Served(store)
    for row, target, size, time_ns in _pieces(requests, served):
        shown = row_of[target] >= 0
        row, target, size, time_ns = row[shown], row_of[target[shown]], size[shown], time_ns[shown]
        made, width = _timeline(requests, row, target, size, time_ns, end_ns, limit, len(kept))
        cells = made if cells is None else cells + made
    if cells is None:
        return None
    copied = int(requests.copied.sum())
    return TargetLoad(
        store.root, store.as_read, tuple(store.targets[place] for place in kept.tolist()),
        served.bytes[kept], served.accesses[kept], served.work_s[kept], cells, width,
        len(requests) - served.requests - copied, copied, len(store.targets) - len(kept),
    )  # fmt: skip


def _pieces(requests: ViewRequests, served: Served) -> Iterator[tuple[Numbers, Numbers, Numbers, Numbers]]:
    """The pieces of all requests whose files' layouts are known: the request's row, target, bytes and ns."""
    for number, path in enumerate(requests.files):
        if path in served.store.layouts:
            rows = np.frombuffer(requests.trace.file_rows(number), dtype=np.uint32)
            rows = rows[(requests.offset[rows] >= 0) & ~requests.copied[rows]]
            columns = (column[rows] for column in (requests.offset, requests.size, requests.write))
            for row, target, size, time_ns in served.add(path, *columns):
                yield rows[row], target, size, time_ns


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
