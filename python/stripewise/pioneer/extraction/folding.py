"""Seeks and waits folded into their calls (thesis, section 2.5.2), and each data call by its name in a path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..operations import operations
from .calls import Int
from .records import COLLECTIVE, IMPLICIT, NONBLOCKING, SHARED_POINTER, Records


def folded(records: Records, flags: Int, number: dict[str, int]) -> Records:
    """Seeks and waits folded into their calls, and all data operations by their full names."""
    op = records.op
    reads = (op == number["pread"]) | (op == number["mpi_read_at"])
    writes = (op == number["pwrite"]) | (op == number["mpi_write_at"])
    mpi = (op == number["mpi_read_at"]) | (op == number["mpi_write_at"])
    data = reads | writes
    individual = data & ((flags & (IMPLICIT | SHARED_POINTER)) == IMPLICIT)
    seeks = (op == number["seek"]) | (op == number["mpi_seek"])
    waits = op == number["mpi_wait"]
    pending = mpi & ((flags & NONBLOCKING) != 0)
    by_session = np.argsort(records.session, kind="stable") if (seeks | waits).any() else np.empty(0, np.int64)
    before, after = by_session[:-1], by_session[1:]
    same = (records.session[before] == records.session[after]) & (records.session[before] >= 0)
    start, end, held = records.start_ns.copy(), records.end_ns.copy(), records.held_ns.copy()
    dropped = np.zeros(len(op), np.bool_)
    sought = np.zeros(len(op), np.bool_)
    folds = same & seeks[before] & individual[after]
    sought[after[folds]] = True
    start[after[folds]] = start[before[folds]]
    # Of several seeks one after the other the last one tells where.
    dropped[before[folds | (same & seeks[before] & seeks[after])]] = True
    awaited = np.zeros(len(op), np.bool_)
    if waits.any():
        waiting = np.cumsum(pending[by_session].astype(np.int64) - waits[by_session])
        first = np.flatnonzero(np.append(True, ~same)) if len(by_session) else by_session
        base = np.repeat(np.append(0, waiting[first[1:] - 1]), np.diff(np.append(first, len(by_session))))
        alone = (waiting - base)[:-1] == 1
        kept = np.flatnonzero(~dropped)
        place = np.zeros(len(op), np.int64)
        place[kept] = np.arange(len(kept))
        folds = same & pending[before] & waits[after] & alone & (place[after] == place[before] + 1)
        awaited[before[folds]] = True
        held[before[folds]] = np.maximum(start[after[folds]] - end[before[folds]], 0)
        end[before[folds]] = np.maximum(end[after[folds]], end[before[folds]])
        dropped[after[folds]] = True
    shape = np.where((flags & SHARED_POINTER) != 0, 2, np.where((flags & IMPLICIT) != 0, 1, 0))
    collective = (flags & COLLECTIVE) != 0
    index = (
        mpi * 256
        + writes * 128
        + shape * 32
        + (collective & mpi) * 16
        + pending * 8
        + sought * 2
        + awaited.astype(np.int64)
    )
    names = np.where(data, _DATA.table()[np.where(data, index, 0)], op).astype(np.int32)
    out = replace(records, op=names, start_ns=start, end_ns=end, held_ns=held)
    return out.take(np.flatnonzero(~dropped)) if dropped.any() else out


class _DataNames:
    """The operation of a data call by interface, direction, pointer, and what is folded in."""

    def __init__(self) -> None:
        self._table: Int | None = None

    def table(self) -> Int:
        """By the number that `folded` makes."""
        if self._table is None:
            number = {name: each.number for name, each in operations().items()}
            self._table = np.array([number[self.name(index)] for index in range(512)], np.int64)
        return self._table

    @staticmethod
    def name(index: int) -> str:
        """Of such a number."""
        mpi, write, shape = index >> 8, index >> 7 & 1, index >> 5 & 3
        collective, pending, sought, awaited = index >> 4 & 1, index >> 3 & 1, index >> 1 & 1, index & 1
        what = "write" if write else "read"
        if not mpi:
            return f"{what}{sought}" if shape == 1 else f"p{what}"
        if shape == 2:
            return f"mpi_{what}_{'ordered' if collective else 'shared'}"
        if pending and collective:
            return f"mpi_i{what}_at_all{awaited}"
        if pending:
            return f"mpi_i{what}{sought}{awaited}" if shape == 1 else f"mpi_i{what}_at{awaited}"
        if shape == 1:
            return f"mpi_{what}_all{sought}" if collective else f"mpi_{what}{sought}"
        return f"mpi_{what}_at_all" if collective else f"mpi_{what}_at"


_DATA = _DataNames()
