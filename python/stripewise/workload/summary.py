"""What a trace holds of one file, in figures: requests, bytes, sizes and how long it was used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .requests import FileRequests


@dataclass(frozen=True)
class FileSummary:
    """The requests of one file; `span_s` is from the first one's begin to the last one's end."""

    path: str
    size_bytes: int
    reads: int
    writes: int
    read_bytes: int
    written_bytes: int
    request_bytes_median: int
    request_bytes_max: int
    span_s: float


def summary_of(file: FileRequests) -> FileSummary:
    """The figures of a file that has at least one request."""
    requests = file.requests
    write = requests["write"]
    size = requests["size"]
    return FileSummary(
        path=file.path,
        size_bytes=file.size_bytes,
        reads=int((~write).sum()),
        writes=int(write.sum()),
        read_bytes=int(size[~write].sum()),
        written_bytes=int(size[write].sum()),
        request_bytes_median=int(np.median(size)),
        request_bytes_max=int(size.max()),
        span_s=float(requests["end_ns"].max() - requests["start_ns"].min()) / 1e9,
    )
