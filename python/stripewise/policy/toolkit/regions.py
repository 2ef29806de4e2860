"""Requests cut at region borders and counted: the table that every policy prices.

A row is a distinct (region, offset in the region, size, read or write) with its number of occurrences, so that pricing
costs O(distinct keys) however long the trace is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import native
from ...errors import PlanError, WorkloadError
from ...memoize import Memoized
from ...model.general import Bool, Int
from ...model.keyed import Keys, group_requests
from ...units import OFFSET_BYTES_MAX
from ...workload.requests import FileRequests, Workload


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
        raise WorkloadError(
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
