"""Counts and bytes per file, as meta.json has them: of the posix layer where it touched the file, else of the mpi
layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .records import MPI_FIRST, OP, UNKNOWN_OFFSET, Rows

_COUNTS = ("opens", "reads", "writes", "bytes_read", "bytes_written", "extent_bytes")
_OPERATIONS = {"posix": ("open", "read", "write"), "mpi": ("mpi_open", "mpi_read", "mpi_write")}


class Totals:
    """Sums over the rows that it is given; `names` are the paths by number."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._room = 0
        self._sums = {layer: {key: np.zeros(0, dtype=np.int64) for key in _COUNTS} for layer in _OPERATIONS}
        self._touched = {layer: np.zeros(0, dtype=bool) for layer in _OPERATIONS}
        #: Reads and writes of a file without a name.
        self.unnamed = 0

    def add(self, rows: Rows) -> None:
        """Counts these rows, too; there may be more names by now."""
        if len(self._names) > self._room:
            self._grow(2 * len(self._names) - self._room)
        op, file = rows["op"], rows["file"]
        data = np.isin(op, [OP[name] for names in _OPERATIONS.values() for name in names[1:]])
        self.unnamed += int((data & (file < 0)).sum())
        for layer, (opened, read, written) in _OPERATIONS.items():
            here = np.flatnonzero((file >= 0) & ((op >= MPI_FIRST) == (layer == "mpi")))
            if not len(here):
                continue
            where, done, kind = file[here], rows["done"][here], op[here]
            sums = self._sums[layer]
            self._touched[layer][np.unique(where)] = True
            fine = done >= 0
            self._count(sums["opens"], where[fine & (kind == OP[opened])])
            ends = rows["offset"][here] + done
            known = (done > 0) & ((rows["flags"][here] & UNKNOWN_OFFSET) == 0)
            for name, count, volume in ((read, "reads", "bytes_read"), (written, "writes", "bytes_written")):
                chosen = fine & (kind == OP[name])
                self._count(sums[count], where[chosen])
                np.add.at(sums[volume], where[chosen], done[chosen])
                reaching = chosen & known
                np.maximum.at(sums["extent_bytes"], where[reaching], ends[reaching])

    def _grow(self, by: int) -> None:
        self._room += by
        for layer, sums in self._sums.items():
            self._touched[layer] = np.pad(self._touched[layer], (0, by))
            for key, values in sums.items():
                sums[key] = np.pad(values, (0, by))

    def _count(self, into: np.ndarray[Any, np.dtype[np.int64]], files: np.ndarray[Any, Any]) -> None:
        into += np.bincount(files, minlength=len(into))

    def only_mpi(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The files, by number, that only the mpi layer read or wrote."""
        done = {layer: (sums["reads"] > 0) | (sums["writes"] > 0) for layer, sums in self._sums.items()}
        return np.flatnonzero(done["mpi"] & ~done["posix"])

    def files(self) -> list[dict[str, Any]]:
        """The files that were touched, by path."""
        found = []
        # What only the mpi layer read or wrote stands in the posix layer (`writer`).
        alone = set(self.only_mpi().tolist())
        for code, path in enumerate(self._names):
            if self._touched["posix"][code] or self._touched["mpi"][code]:
                layers = ["posix", "mpi"] if code in alone else ["posix" if self._touched["posix"][code] else "mpi"]
                counts = {key: sum(int(self._sums[layer][key][code]) for layer in layers) for key in _COUNTS}
                found.append({"path": path, "device": 0, "inode": 0, "managed": False, **counts})
        return sorted(found, key=lambda each: str(each["path"]))
