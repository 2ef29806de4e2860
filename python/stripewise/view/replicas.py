"""Which replica of a file served which of its requests, for the file's picture: few have a colour of their own.

A *slot* is what a request is drawn as: 0 is the file itself, 1 to `COLOURS` are replicas, the last one all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import native
from ..workload.copied import Copied, summed
from .blob import blob
from .requests import Numbers, ViewRequests

#: Replicas with a colour of their own, those that served the most bytes: as many as anybody can tell apart.
COLOURS = 4
OTHERS = COLOURS + 1


class FileReplicas:
    """The replicas that served reads of one file; `rows` are its requests."""

    def __init__(self, requests: ViewRequests, rows: Numbers) -> None:
        self._requests = requests
        self._copied = rows[requests.copied[rows]]
        self.served: Copied = summed(requests.replica[self._copied], requests.size[self._copied])
        named = [each.number for each in self.served.replicas if each.number is not None]
        #: The numbers of the coloured ones, by slot from 1 on.
        self.coloured = sorted(named[:COLOURS])

    def document(self) -> dict[str, Any]:
        """As the page takes it: the coloured ones, and [number or null, reads, bytes] of each, most bytes first."""
        rows = [[each.number, each.reads, each.bytes] for each in self.served.replicas]
        return {"coloured": self.coloured, "served": rows}

    def single(self, rows: Numbers) -> dict[str, Any]:
        """Of each of these requests 0: the file served it; 1: a replica without a number; else its number plus 2."""
        return blob(np.where(self._requests.copied[rows], self._requests.replica[rows] + 2, 0))

    def raster(self, cells: Numbers, ranges: tuple[int, int], limits: tuple[int, int]) -> dict[str, Any]:
        """The slot that served most of what was read, of each cell of a raster of these ranges and limits."""
        slot = self._slots()
        layers = np.zeros((OTHERS + 1, *cells.shape), dtype=np.uint64)
        for number in np.unique(slot).tolist():
            (data, _, count), _, times = self._traced(self._copied[slot == number]).raster(0, ranges, limits)
            layers[number] = np.frombuffer(data, dtype=np.uint64).reshape(2, times, count)[0]
        layers[0] = cells - layers.sum(axis=0, dtype=np.uint64)
        return blob(layers.argmax(axis=0))

    def _slots(self) -> Numbers:
        replica = self._requests.replica[self._copied]
        if not self.coloured:
            return np.full(len(replica), OTHERS)
        coloured = np.array(self.coloured)
        place = np.minimum(np.searchsorted(coloured, replica), len(coloured) - 1)
        return np.where(coloured[place] == replica, place + 1, OTHERS)

    def _traced(self, rows: Numbers) -> Any:
        requests = self._requests
        columns = (
            requests.start_ns, requests.end_ns, requests.process, np.zeros_like(requests.file), requests.write,
            requests.offset, requests.size,
        )  # fmt: skip
        return native.make("ViewTrace", *(np.ascontiguousarray(column[rows]) for column in columns), 1)
