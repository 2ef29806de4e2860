"""Counts and bytes per file, as meta.json has them: of the posix layer where it touched the file, else of the mpi
layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .records import MPI_FIRST, OP, OPS, UNKNOWN_OFFSET, Rows

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
        order = None if (rows["file"] == rows["file"][0]).all() else np.argsort(rows["file"], kind="stable")
        op, file, done, offset, flags = (
            rows[name] if order is None else rows[name][order] for name in ("op", "file", "done", "offset", "flags")
        )
        begins = np.flatnonzero(np.diff(file, prepend=file[0] - 1))
        codes = file[begins]
        named = codes >= 0
        present = np.bincount(op, minlength=len(OPS)) > 0
        fine = done >= 0
        ends = np.where((done > 0) & ((flags & UNKNOWN_OFFSET) == 0), offset + done, 0)
        for layer, (opened, *moving) in _OPERATIONS.items():
            sums, is_here = self._sums[layer], (op >= MPI_FIRST) == (layer == "mpi")
            touched = np.logical_or.reduceat(is_here, begins)
            self._touched[layer][codes[touched & named]] = True
            if present[OP[opened]]:
                counts = np.add.reduceat((fine & (op == OP[opened])).astype(np.int64), begins)
                sums["opens"][codes[named]] += counts[named]
            for name, count, volume in zip(moving, ("reads", "writes"), ("bytes_read", "bytes_written"), strict=True):
                if not present[OP[name]]:
                    continue
                chosen = fine & (op == OP[name])
                counts = np.add.reduceat(chosen.astype(np.int64), begins)
                sums[count][codes[named]] += counts[named]
                self.unnamed += int(counts[~named].sum())
                sums[volume][codes[named]] += np.add.reduceat(np.where(chosen, done, 0), begins)[named]
                reach = np.maximum.reduceat(np.where(chosen, ends, 0), begins)[named]
                sums["extent_bytes"][codes[named]] = np.maximum(sums["extent_bytes"][codes[named]], reach)

    def _grow(self, by: int) -> None:
        self._room += by
        for layer, sums in self._sums.items():
            self._touched[layer] = np.pad(self._touched[layer], (0, by))
            for key, values in sums.items():
                sums[key] = np.pad(values, (0, by))

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
