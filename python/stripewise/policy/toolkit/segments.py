"""Chunks of a file, what requests start in them, and segments of neighbouring chunks: the ground of SLAL.

Chunks are the regions of a `RegionTable`. For accounting a request is cut at chunk borders, in a merged segment too;
for the mean request size it belongs whole to the chunk where it starts (placement.md, Common steps).
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

import numpy as np

from ...cluster import Target
from ...layout import Stripes
from ...model import Cycle, bytes_on_servers
from ...model.general import Float, Int
from ...model.segment import imbalance, server_loads
from ...workload.requests import Workload
from .regions import RegionTable


@dataclass(frozen=True)
class ChunkMeans:
    """Per chunk, of the requests that start there: how many, their mean size in bytes, and the share that writes.

    Mean and share are 0 where none starts.
    """

    requests: Int
    size_bytes: Float
    write_share: Float


def chunk_means(table: RegionTable, workload: Workload) -> ChunkMeans:
    """Step 2 of SLAL, in one pass over the requests."""
    requests, moved_bytes, writes = (np.zeros(table.regions) for _ in range(3))
    first = np.searchsorted(table.file, np.arange(len(workload.files)))
    for index, file in enumerate(workload.files):
        moving = file.requests[file.requests["size"] > 0]
        if not len(moving):
            continue
        chunk = moving["offset"] // table.region_bytes + int(first[index])
        requests += np.bincount(chunk, minlength=table.regions)
        moved_bytes += np.bincount(chunk, weights=moving["size"].astype(np.float64), minlength=table.regions)
        writes += np.bincount(chunk, weights=moving["write"].astype(np.float64), minlength=table.regions)
    count = np.maximum(requests, 1)
    return ChunkMeans(requests.astype(np.int64), moved_bytes / count, writes / count)


@dataclass(frozen=True)
class Servers:
    """n servers taken as equals, with the mean of their figures for a mix of reads and writes."""

    targets: tuple[Target, ...]

    def startup_s(self, write_share: float) -> tuple[float, float]:
        """T_min and T_max: the startup less and plus half its spread."""
        mean = _mixed([t.startup_read_s for t in self.targets], [t.startup_write_s for t in self.targets], write_share)
        spread = _mixed(
            [t.startup_read_spread_s for t in self.targets],
            [t.startup_write_spread_s for t in self.targets],
            write_share,
        )
        return max(0.0, mean - spread / 2), mean + spread / 2

    def per_byte_s(self, write_share: float) -> float:
        """b: seconds per byte."""
        return _mixed(
            [t.per_byte_read_s for t in self.targets], [t.per_byte_write_s for t in self.targets], write_share
        )


def _mixed(read: list[float], write: list[float], write_share: float) -> float:
    return (1.0 - write_share) * fmean(read) + write_share * fmean(write)


def sigma_of(table: RegionTable, region: int, stripes: Stripes, startup_s: float, per_byte_s: float) -> float:
    """The imbalance of the servers of `stripes` under the requests of a region or segment (SLAL, eqs. 5, 6)."""
    rows = slice(int(table.first[region]), int(table.first[region + 1]))
    offset, size, count = table.offset[rows], table.size[rows], table.count[rows]
    widths = [width for _, width in stripes]
    if len(set(widths)) == 1:
        return imbalance(server_loads(offset, size, count, widths[0], len(widths), startup_s, per_byte_s))
    served = bytes_on_servers(Cycle.of([(False, width) for width in widths]), offset, size)
    each = [float((count * (startup_s * (share > 0) + share * per_byte_s)).sum()) for share in served]
    return imbalance(np.array(each))


@dataclass(frozen=True)
class Segment:
    """Chunks [first, end) of the table, all of one file, on the same stripes."""

    first: int
    end: int
    stripes: Stripes


def merged_table(table: RegionTable, segments: list[Segment]) -> RegionTable:
    """The table with segments for regions: their requests' offsets count from the segment's start.

    `segments` cover all chunks in order. The regions are no longer of one length: `number` counts them in their file.
    """
    firsts = np.array([segment.first for segment in segments], dtype=np.int64)
    ends = np.array([segment.end for segment in segments], dtype=np.int64)
    rows = np.diff(table.first)
    chunk = np.repeat(np.arange(table.regions, dtype=np.int64), rows)
    before = chunk - np.repeat(firsts, ends - firsts)[chunk]
    file = table.file[firsts]
    return RegionTable(
        region_bytes=table.region_bytes,
        file=file,
        number=np.arange(len(segments), dtype=np.int64) - np.searchsorted(file, file),
        valid_bytes=np.add.reduceat(table.valid_bytes, firsts),
        request_bytes=np.maximum.reduceat(table.request_bytes, firsts),
        first=np.concatenate([table.first[firsts], table.first[-1:]]),
        offset=table.offset + before * table.region_bytes,
        size=table.size,
        write=table.write,
        count=table.count,
    )
