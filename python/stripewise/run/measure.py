"""What a run achieved: bandwidth, busy time per target, imbalance, and how close it came to the bound.

Counters are those of the store's devices, taken before and after. A program may print one JSON line with its own
figures (workloads/mpiio does); what it does not say is taken from the trace or from the elapsed time.
"""

from __future__ import annotations

import json
import math
import resource
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..workload.requests import REQUEST_DTYPE, Workload
from .ways import Called

#: When nothing was waited for: no rows of (start, end).
NO_WAITS: npt.NDArray[np.int64] = np.zeros((0, 2), dtype=np.int64)

#: Phases whose device time the counters hold.
PHASES = ("read_seconds", "write_seconds", "fill_seconds", "check_seconds")

#: Of so many bytes read, whether they came from the devices is told; less than this part of them did not. Of fewer,
#: what programs and libraries read of themselves would be most.
CACHED_BYTES, FROM_DEVICES = 1 << 20, 0.5
#: Bytes of the blocks in which the kernel counts what processes read from devices (getrusage).
BLOCK_BYTES = 512


class LastObject:
    """Watches a program's output for its last line that is a JSON object."""

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}

    def see(self, line: bytes) -> None:
        text = line.strip()
        if text.startswith(b"{") and text.endswith(b"}"):
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                return
            if isinstance(value, dict):
                self.value = value


@dataclass(frozen=True)
class Measured:
    """One run. Bandwidth in MB/s (10^6 bytes), times in seconds; None where nothing tells."""

    policy: str
    read_mb_s: float | None
    write_mb_s: float | None
    io_seconds: float
    elapsed_seconds: float
    busy_s: Mapping[str, float]
    verified_bytes: int | None

    @property
    def imbalance(self) -> float | None:
        """max busy / mean busy - 1 (sigma of SLAL)."""
        mean = sum(self.busy_s.values()) / len(self.busy_s) if self.busy_s else 0.0
        return max(self.busy_s.values()) / mean - 1 if mean > 0 else None

    @property
    def bound_ratio(self) -> float | None:
        """The busiest target's service time over the measured I/O time: at 1 that target never rests."""
        busiest = max(self.busy_s.values(), default=0.0)
        return busiest / self.io_seconds if busiest > 0 and self.io_seconds > 0 else None

    def as_json(self) -> dict[str, Any]:
        """The run as `tune --json` prints it."""
        return {
            "policy": self.policy,
            "read_mb_s": self.read_mb_s,
            "write_mb_s": self.write_mb_s,
            "bound_ratio": self.bound_ratio,
            "imbalance": self.imbalance,
            "verified_bytes": self.verified_bytes,
            "io_seconds": self.io_seconds,
            "elapsed_seconds": self.elapsed_seconds,
            "busy_s": dict(self.busy_s),
        }


def ratio(before: float | None, after: float | None) -> float | None:
    """How many times `before` there is after; None where either is missing or nothing."""
    return after / before if before and after else None


def read_from_devices() -> int:
    """Bytes that children which have ended, and theirs, had read from devices."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock * BLOCK_BYTES


def came_from_memory(read_bytes: int, from_devices: int) -> bool:
    """Whether memory served most of the bytes that a run read, of which so many came from devices."""
    return read_bytes >= CACHED_BYTES and from_devices < read_bytes * FROM_DEVICES


def _figure(said: Mapping[str, Any], key: str) -> float | None:
    value = said.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return float(value)


def in_flight_seconds(workload: Workload, write: bool, waits: npt.NDArray[np.int64] = NO_WAITS) -> tuple[int, float]:
    """Bytes of all reads or writes, and the seconds with any of them, or of `waits` (rows of start and end in ns), in
    flight.
    """
    parts = [file.requests[file.requests["write"] == write] for file in workload.files]
    requests = np.concatenate([np.zeros(0, dtype=REQUEST_DTYPE), *parts])
    start = np.concatenate([requests["start_ns"], waits[:, 0]])
    if not len(start):
        return 0, 0.0
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.concatenate([requests["end_ns"], waits[:, 1]])[order]
    reached = np.maximum.accumulate(end)
    # The part of each request after everything before it had ended.
    fresh = np.concatenate([[start[0]], np.maximum(start[1:], reached[:-1])])
    return int(requests["size"].sum()), float(np.maximum(end - fresh, 0).sum()) / 1e9


def moved_bytes(workload: Workload, called: Called) -> int:
    """That a program asked for: by MPI-IO's calls where it used that, which sieving and joining do not change."""
    below = without(workload, called.paths).files
    return sum(called.bytes.values()) + sum(int(file.requests["size"].sum()) for file in below)


def without(workload: Workload, paths: Collection[str]) -> Workload:
    """The requests on all files but these."""
    return replace(workload, files=tuple(file for file in workload.files if file.path not in paths))


def measured(
    policy: str,
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    elapsed_seconds: float,
    said: Mapping[str, Any],
    workload: Workload | None,
    waits: npt.NDArray[np.int64] = NO_WAITS,
    called: Called | None = None,
) -> Measured:
    """The figures of one run from the counters, what the program said, and the trace where there is one.

    `waits` is when the run waited for what it had written (`workload/syncs.py`): I/O as the writes themselves. With
    `called` the I/O of files that MPI-IO used is its calls, exchange and waiting with them, not the requests below.
    """
    earlier = {str(row["name"]): row for row in before}
    busy = {}
    for row in after:
        old = earlier.get(str(row["name"]), {})
        busy[str(row["name"])] = (
            sum(int(row[key]) - int(old.get(key, 0)) for key in ("busy_read_ns", "busy_write_ns")) / 1e9
        )
    rates: dict[str, float | None] = {}
    seconds_in_trace = 0.0
    called = called or Called()
    below = None if workload is None else without(workload, called.paths)
    for key, write in (("read_mb_s", False), ("write_mb_s", True)):
        rates[key] = _figure(said, key)
        if below is not None:
            above = called.spans.get(write, NO_WAITS)
            count, seconds = in_flight_seconds(below, write, np.concatenate([above, waits]) if write else above)
            count += called.bytes.get(write, 0)
            seconds_in_trace += seconds
            if rates[key] is None and key not in said and count and seconds > 0:
                rates[key] = count / seconds / 1e6
    phases = [_figure(said, key) for key in PHASES]
    if phases[0] is not None or phases[1] is not None:
        io_seconds = sum(value for value in phases if value is not None)
    else:
        io_seconds = seconds_in_trace or elapsed_seconds
    verified = _figure(said, "verified_bytes")
    return Measured(
        policy=policy,
        read_mb_s=rates["read_mb_s"],
        write_mb_s=rates["write_mb_s"],
        io_seconds=io_seconds,
        elapsed_seconds=elapsed_seconds,
        busy_s=busy,
        verified_bytes=None if verified is None else int(verified),
    )
