"""Calls that wait until written bytes are on the device: fsync and the like, and closes, in which network file systems
write back.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .columns import checked_columns, codes_of_text, numbers
from .trace import opened, trace_file

#: Columns that are looked at: those without which there is nothing, and others.
_NEEDED, _OPTIONAL = ("op", "file", "start_ns", "end_ns"), ("process", "rank")
#: fsync, fdatasync, sync_file_range, syncfs; below MPI_File_sync, too.
SYNC = "sync"
CLOSE = "close"

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Syncs:
    """Such calls on one file: arrays of one length, in the order of the trace; `rank` is -1 where it is unknown."""

    process: Numbers
    rank: Numbers
    start_ns: Numbers
    end_ns: Numbers

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def seconds(self) -> npt.NDArray[np.float64]:
        """Of each."""
        return (self.end_ns - self.start_ns) / 1e9


def syncs_of(table: Any, ops: Collection[str] = (SYNC,)) -> dict[str, Syncs]:
    """The calls of these operations in a trace's table, by the file's name."""
    op, known = codes_of_text(table, "op")
    file, names = codes_of_text(table, "file")
    rows = np.flatnonzero(np.isin(op, [code for code, name in enumerate(known) if name in ops]) & (file >= 0))
    columns = [
        numbers(table, name, default)[rows]
        for name, default in (("process", 0), ("rank", -1), ("start_ns", 0), ("end_ns", 0))
    ]
    return {
        names[code]: Syncs(*(column[file[rows] == code] for column in columns))
        for code in np.unique(file[rows]).tolist()
    }


def written_back(collected: Path, names: Collection[str]) -> Numbers:
    """When the bytes of these files were waited for in a collected trace: a row (start, end) in ns for each sync and
    each close. Raises WorkloadError naming the trace where it cannot be read.
    """
    source = trace_file(collected)
    found = [np.zeros((0, 2), dtype=np.int64)]
    with opened(source) as parquet:
        columns = checked_columns(parquet.schema_arrow, source, _NEEDED, _OPTIONAL)
        for group in range(parquet.num_row_groups):
            each = syncs_of(parquet.read_row_group(group, columns=columns), (SYNC, CLOSE))
            found += [np.column_stack([each[name].start_ns, each[name].end_ns]) for name in each.keys() & set(names)]
    return np.concatenate(found)
