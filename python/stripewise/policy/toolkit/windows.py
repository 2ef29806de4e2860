"""Time windows: a trace split by the start times of its requests (placement.md, Common steps).

Window i spans [t0 + i*w, t0 + (i + 1)*w), t0 being the first request's start; the last one ends with the last request.
A window without requests keeps the placement before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ...errors import PlanError, WorkloadError
from ...plan import Window
from ...workload.requests import Requests, Workload
from .regions import RegionTable, build_regions, checked_size

#: A window is a pass over all regions, and a migration each.
WINDOWS_MAX = 10_000
#: Further apart lie only times that are damaged.
SPAN_NS_MAX = 1 << 62


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
    starts = [int(file.requests["start_ns"].min()) for file in workload.files if len(file.requests)]
    ends = [int(file.requests["end_ns"].max()) for file in workload.files if len(file.requests)]
    span = Window(min(starts), max(min(starts), *ends))
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
