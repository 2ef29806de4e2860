"""The requests of a described workload, from the one generator that makes them.

A policy gets all of them up to some two millions; beyond, an evenly drawn sample of each process's run, whose counts
are scaled back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import native
from ..errors import WorkloadError, naming
from .describe import Description
from .requests import REQUEST_DTYPE, FileRequests, Requests, Workload

#: Requests that policies are given at most, all processes together.
PLANNED_MAX = 2_000_000
#: More than any process makes.
ALL = (1 << 64) - 1


@dataclass(frozen=True)
class Made:
    """What a description makes: requests in all and per process, each of so many pieces."""

    processes: int
    requests: int
    per_process: int
    pieces: int


def made_by(description: Description) -> Made:
    """The figures of a description; WorkloadError when its keys do not fit together."""
    figures = _asked(description, "workload_info", description.as_json())
    return Made(figures["processes"], figures["requests"], figures["requests_per_process"], figures["pieces"])


def requests_of(description: Description, first: int = 0, processes: int = 1, per_process: int = ALL) -> Requests:
    """The requests of `processes` processes from `first` on, process by process in their order.

    With `per_process` below their number, that many of each, one from every equal part of its run. The times are those
    of windows or arrivals where the description sets them, else nominal.
    """
    rows = _asked(description, "workload_requests", description.as_json(), first, processes, per_process)
    return np.frombuffer(rows, dtype=REQUEST_DTYPE)


def generated_workload(description: Description, most: int = PLANNED_MAX) -> Workload:
    """The workload for policies: all requests, or a sample of about `most` of them that `weight` scales back."""
    made = made_by(description)
    if not made.requests:
        raise WorkloadError(f"{description.source}: reads and writes are 0; give at least one request")
    per_process = min(made.per_process, max(1, most // (made.processes * made.pieces)))
    requests = requests_of(description, 0, made.processes, per_process)
    paths = description.paths
    parts = [requests] if len(paths) == 1 else np.split(requests, made.processes)
    files = tuple(
        FileRequests(path, part[np.argsort(part["start_ns"], kind="stable")], description.file_bytes)
        for path, part in zip(paths, parts, strict=True)
    )
    weight = max(1, round(made.per_process / per_process))
    return Workload(files, made.processes, description.source, weight=weight)


def _asked(description: Description, name: str, *arguments: object) -> Any:
    with naming(description.source):
        return native.call(name, *arguments)
