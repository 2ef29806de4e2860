"""`show --perfetto`: a slice for each request on the track of its thread, as protobuf packets.

Protobuf and not the JSON form: it is smaller, is read as a stream, and times keep their nanoseconds (JSON's are
microseconds in floating point).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .. import native
from ..files.parts import write_chunks_durably
from .requests import ViewRequests

#: Requests that are encoded at a time.
CHUNK_ROWS = 1 << 18


def write_perfetto(requests: ViewRequests, out: Path) -> None:
    """Writes the trace durably. Raises OSError that names `out`."""
    write_chunks_durably(out, _packets(requests))


def _packets(requests: ViewRequests) -> Iterator[bytes]:
    yield native.call("view_names", list(requests.files))
    for number, process in enumerate(requests.processes):
        pid = process.pid if process.pid >= 0 else process.number + 1
        yield native.call("view_process", number + 1, pid, process.name)
    track = np.zeros(len(requests), dtype=np.uint64)
    uuid = len(requests.processes)
    _, thread = np.unique(requests.thread, return_inverse=True)
    key = requests.process.astype(np.int64) * (int(thread.max()) + 1) + thread
    order = np.argsort(key, kind="stable").astype(np.uint32)
    begins = np.flatnonzero(np.diff(key[order], prepend=-1)).tolist()
    for begin, end in zip(begins, [*begins[1:], len(order)], strict=True):
        rows = np.ascontiguousarray(order[begin:end])
        lane = np.frombuffer(requests.trace.lanes(rows), dtype=np.uint32)
        name = f"thread {int(requests.thread[rows[0]])}"
        for number in range(int(lane.max()) + 1):
            beside = f" ({number + 1} at a time)" if number else ""
            parent = int(requests.process[rows[0]]) + 1
            yield native.call("view_lane", uuid + number + 1, parent, name + beside)
        track[rows] = lane.astype(np.uint64) + np.uint64(uuid + 1)
        uuid += int(lane.max()) + 1
    for begin in range(0, len(requests), CHUNK_ROWS):
        end = min(begin + CHUNK_ROWS, len(requests))
        columns = (np.ascontiguousarray(column[begin:end]) for column in (track, requests.replica))
        yield requests.trace.slices(begin, end, *columns)
