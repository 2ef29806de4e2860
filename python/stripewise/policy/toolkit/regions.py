"""Requests cut at region borders and counted: the table that every policy prices, of a whole trace or of each window.

A row is a distinct (region, offset in the region, size, read or write) with its number of occurrences, so that pricing
costs O(distinct keys) however long the trace is. Time windows split a trace by the start times of its requests
(placement.md, Common steps): window i spans [t0 + i*w, t0 + (i + 1)*w), t0 being the first request's start; the last
ends with the last request. A window without requests keeps the placement before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ... import native
from ...errors import NoRequestsError, PlanError, WorkloadError
from ...memoize import Memoized
from ...model.general import Bool, Int
from ...model.keyed import Keys, group_requests
from ...plan import Window
from ...units import OFFSET_BYTES_MAX, STRIPE_FALLBACK_BYTES
from ...workload.requests import FileRequests, Requests, Workload

#: A window is a pass over all regions, and a migration each.
WINDOWS_MAX = 10_000
#: Further apart lie only times that are damaged.
SPAN_NS_MAX = 1 << 62


@dataclass(frozen=True)
class RegionTable(Memoized):
    """All regions of all files, numbered through.

    Per region: `file` (index in the workload), `number` in its file, `valid_bytes` of the file in it and
    `request_bytes`, the largest request there (0: not touched). Rows are sorted by region; those of region g are
    [first[g], first[g + 1]).
    """

    region_bytes: int
    file: Int
    number: Int
    valid_bytes: Int
    request_bytes: Int
    first: Int
    offset: Int
    size: Int
    write: Bool
    count: Int

    @property
    def regions(self) -> int:
        """How many regions there are."""
        return len(self.file)

    @property
    def keys(self) -> Keys:
        """The rows as the model takes them."""
        return Keys(self.offset, self.size, self.write, self.count, self.first)


def build_regions(workload: Workload, region_bytes: int) -> RegionTable:
    """Cuts the workload into regions of `region_bytes`; done once however many policies ask.

    Raises WorkloadError for requests that no file can have, PlanError for too many regions.
    """
    return workload.memoized(("regions", region_bytes), lambda: _build(workload, region_bytes))


def _build(workload: Workload, region_bytes: int) -> RegionTable:
    if not any((file.requests["size"] > 0).any() for file in workload.files):
        raise NoRequestsError(
            f"{workload.source}: holds no read or write that moved a byte; trace a run that does I/O on files"
        )
    file_of, number_of, valid_of = [], [], []
    cuts = []
    base = 0
    most = native.limit("MAX_REGIONS")
    for index, file in enumerate(workload.files):
        size = checked_size(file, workload.source)
        count = -(-size // region_bytes)
        if base + count > most:
            need = -(-size * 2 // most)
            raise PlanError(
                f"{file.path}: {size} bytes make {count} regions of {region_bytes}, more than {most} in all; "
                f"use --region-size {max(-(-need // 4096) * 4096, 2 * region_bytes)}"
            )
        numbers = np.arange(count, dtype=np.int64)
        file_of.append(np.full(count, index, dtype=np.int64))
        number_of.append(numbers)
        valid_of.append(np.minimum(region_bytes, size - numbers * region_bytes))
        cuts.append(_cut(file, region_bytes, base))
        base += count
    region, offset, cut_size, write, counts = (np.concatenate(column) for column in zip(*cuts, strict=True))
    first = np.searchsorted(region, np.arange(base + 1)).astype(np.int64)
    request_bytes = np.zeros(base, dtype=np.int64)
    touched = np.flatnonzero(np.diff(first))
    request_bytes[touched] = np.maximum.reduceat(cut_size, first[touched])
    return RegionTable(
        region_bytes=region_bytes,
        file=np.concatenate(file_of),
        number=np.concatenate(number_of),
        valid_bytes=np.concatenate(valid_of),
        request_bytes=request_bytes,
        first=first,
        offset=offset,
        size=cut_size,
        write=write,
        count=counts * workload.weight,
    )


def checked_size(file: FileRequests, source: str) -> int:
    """The file's size, at least the end of its furthest request."""
    requests = file.requests
    if not len(requests):
        return file.size_bytes
    offset, size = requests["offset"], requests["size"]
    bad = np.flatnonzero((offset < 0) | (size < 0) | (offset > OFFSET_BYTES_MAX) | (size > OFFSET_BYTES_MAX - offset))
    if len(bad):
        row = int(bad[0])
        raise WorkloadError(
            f"{source}: request {row} of {file.path} (offset {offset[row]}, size {size[row]}) ends outside a file of "
            f"at most 2^62 bytes; leave this file out with --file"
        )
    moved = size > 0
    end = int((offset[moved] + size[moved]).max()) if moved.any() else 0
    return max(end, file.size_bytes)


def _cut(file: FileRequests, region_bytes: int, base: int) -> tuple[Int, Int, Int, Bool, Int]:
    """The file's pieces, its regions numbered from `base` on."""
    requests = file.requests
    pieces = group_requests(requests["offset"], requests["size"], requests["write"], region_bytes)
    return (pieces[0] + base, *pieces[1:])


def region_requests(table: RegionTable, whole: RegionTable) -> Int:
    """r of every region in a window: the largest request there; a region that was not touched takes its file's.

    `whole` is the table of the whole trace.
    """
    largest = np.zeros(int(whole.file.max()) + 1, dtype=np.int64)
    np.maximum.at(largest, whole.file, whole.request_bytes)
    of_file = np.where(largest > 0, largest, STRIPE_FALLBACK_BYTES)[table.file]
    return np.where(table.request_bytes > 0, table.request_bytes, of_file)


def whole_span(workload: Workload) -> Window:
    """From the first request's start to the last one's end."""
    used = [file.requests for file in workload.files if len(file.requests)]
    first = min(int(each["start_ns"].min()) for each in used)
    return Window(first, max(first, *(int(each["end_ns"].max()) for each in used)))


@dataclass(frozen=True)
class WindowTable:
    """One window and its requests, as they were and as the policies price them; neither where it has none."""

    window: Window
    table: RegionTable | None
    workload: Workload | None


def window_tables(
    workload: Workload, region_bytes: int, window_ns: int | None
) -> tuple[RegionTable, list[WindowTable]]:
    """The table of the whole trace, and one per window; the work is that of sorting the requests.

    All tables number the regions alike. Without `window_ns`, and where the trace is shorter, there is one window with
    the whole trace's table. Raises PlanError for more than `WINDOWS_MAX` windows, WorkloadError
    for times that no run can have.
    """
    whole = build_regions(workload, region_bytes)
    span = whole_span(workload)
    if window_ns is None:
        return whole, [WindowTable(span, whole, workload)]
    moving = [file.requests[file.requests["size"] > 0] for file in workload.files]
    first = min(int(each["start_ns"].min()) for each in moving if len(each))
    last = max(int(each["start_ns"].max()) for each in moving if len(each))
    if last - first > SPAN_NS_MAX:
        raise WorkloadError(
            f"{workload.source}: its requests start {last - first} ns apart, more than a century; trace the run anew"
        )
    count = (last - first) // window_ns + 1
    if count == 1:
        return whole, [WindowTable(span, whole, workload)]
    if count > WINDOWS_MAX:
        need_s = -(-(last - first + 1) // (WINDOWS_MAX * 10**9))
        raise PlanError(
            f"{workload.source}: {window_ns / 1e9:g} s make {count} windows, more than {WINDOWS_MAX}; "
            f"use --window {need_s}s or longer"
        )
    sizes = [checked_size(file, workload.source) for file in workload.files]
    parts = [_split(requests, first, window_ns, count) for requests in moving]
    tables = []
    for number in range(count):
        files = [
            replace(file, requests=part[number], size_bytes=size)
            for file, part, size in zip(workload.files, parts, sizes, strict=True)
        ]
        begin = first + number * window_ns
        end = begin + window_ns if number + 1 < count else max(begin, span.end_ns)
        here = replace(workload, files=tuple(files)) if any(len(file.requests) for file in files) else None
        table = None if here is None else build_regions(here, region_bytes)
        tables.append(WindowTable(Window(begin, end), table, here))
    return whole, tables


def _split(requests: Requests, first: int, window_ns: int, count: int) -> list[Requests]:
    """The requests of every window, in time order."""
    if not len(requests):
        return [requests] * count
    start = requests["start_ns"]
    if (np.diff(start) < 0).any():
        requests = requests[np.argsort(start, kind="stable")]
        start = requests["start_ns"]
    edges = np.searchsorted((start - first) // window_ns, np.arange(count + 1))
    return [requests[low:high] for low, high in pairwise(edges.tolist())]
