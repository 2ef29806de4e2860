"""The operations of a collected trace, as they are compared: those of all processes in columns of one length.

Sanitised as a profile's are (sanitise.py), so that both sides of a comparison and the profile mean the same by a
request. What the player reads, a path, is no part of what it plays.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import NoRequestsError, WorkloadError
from ...workload.counted import Choice, Rule
from ...workload.requests import reasons_of
from ...workload.trace import UNKNOWN_END, RunEnd, read_meta, run_end
from ..extraction.sanitise import Records, sanitise
from ..operations import Operation, by_number

Numbers = NDArray[np.int64]
_PATHS = Rule("*.swp", False)
#: All requests' bytes together: sums of them fit into 64 bits.
BYTES_MAX = 1 << 62


@dataclass(frozen=True)
class RunOperations:
    """Operations by start, in ns from the first one on; `name` are places in `names`, `rank` as in sanitised records.

    `bytes` are those that were moved, 0 of operations that are no `data`; `partial` says why it is not the whole run.
    """

    source: str
    processes: int
    names: tuple[str, ...]
    name: Numbers
    rank: Numbers
    start_ns: Numbers
    end_ns: Numbers
    bytes: Numbers
    data: NDArray[np.bool_]
    write: NDArray[np.bool_]
    partial: tuple[str, ...] = ()
    end: RunEnd = UNKNOWN_END

    @property
    def duration_ns(self) -> int:
        """From the begin of the first operation to the end of the last one; at least 1."""
        return max(1, int(self.end_ns.max()))


def read_operations(trace: Path, choice: Choice | None = None) -> RunOperations:
    """The operations of a trace on files that count, by `choice` or by the usual rules.

    Raises WorkloadError naming the file that cannot be read or is no run's, NoRequestsError where no operation is left.
    """
    given = choice or Choice()
    rules = Choice(given.only, (*given.rules, _PATHS), given.own, given.all_files, given.least_bytes)
    found = sanitise(trace, rules)
    each = list(found.records.values())
    op = _joined(each, "op")
    if not len(op):
        raise NoRequestsError(f"{trace}: has no operation on a file that counts; give another --file, or --all-files")
    known = by_number()
    numbers, name = np.unique(op, return_inverse=True)
    kinds = [known[number] for number in numbers.tolist()]
    data = np.array([kind.is_data for kind in kinds])[name]
    start, end = _joined(each, "start_ns"), _joined(each, "end_ns")
    order = np.argsort(start, kind="stable")
    start, end = start[order] - start[order[0]], end[order] - start[order[0]]
    moved = np.where(data, np.maximum(_joined(each, "size"), 0), 0)[order]
    if moved.sum(dtype=np.float64) > BYTES_MAX:
        raise WorkloadError(f"{trace}: its requests move more than 2^62 bytes, as no run does; is the file damaged?")
    meta = read_meta(trace)
    return RunOperations(
        source=str(trace),
        processes=found.processes,
        names=tuple(kind.name for kind in kinds),
        name=name.astype(np.int64)[order],
        rank=np.concatenate([np.full(len(records), records.rank, dtype=np.int64) for records in each])[order],
        start_ns=start,
        end_ns=np.maximum(end, start),
        bytes=moved,
        data=data[order],
        write=np.array([_is_write(kind) for kind in kinds])[name][order],
        partial=reasons_of(meta),
        end=run_end(trace),
    )


def _is_write(kind: Operation) -> bool:
    return kind.is_data and "write" in kind.name


def _joined(each: list[Records], column: str) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(records, column) for records in each)])
