"""File open sessions (thesis, section 2.5.3): which open each request of a process belongs to.

A trace may lack opens (descriptors that came from elsewhere, formats that record none) and closes (a process that
ends with files open): both are made, so that each session begins with an open and ends with a close.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..operations import by_number
from .calls import Bool, Code, Int

#: What is added to a file's number to stand for a descriptor: these, and handles, have 32 bits.
_UNHELD = 1 << 32


class Ends(NamedTuple):
    """The operations that begin and end a session."""

    opens: list[int]
    close: int


@dataclass(frozen=True, eq=False)
class Sessions:
    """The session of each row, the rows to keep, and the opens and closes to make."""

    session: Int
    keep: Bool
    made_op: Code
    #: Where it comes: twice the row that it stands before (less 1) or after (plus 1).
    made_key: Int
    #: The row whose file and communicator it has.
    made_like: Int
    made_session: Int
    #: The mode of an open: 1 read, 2 write, 3 both.
    made_mode: Int
    is_open: Bool


def sessions_of(
    op: Code, file: Code, holder: Int, is_mpi: Bool, inside: Bool, data: Bool, ends: Mapping[bool, Ends]
) -> Sessions:
    """The sessions of rows in order of their starts.

    `holder` is the descriptor or handle (-1: unknown), of its layer; `inside` marks operations that need an open file,
    `data` those that move bytes. Rows that need a session and have none are dropped, but for data: all such of a file
    are one session, whose ends are made.
    """
    count = len(op)
    opens = np.zeros(count, np.bool_)
    closes = np.zeros(count, np.bool_)
    for layer, each in ends.items():
        opens |= (is_mpi == layer) & np.isin(op, each.opens)
        closes |= (is_mpi == layer) & (op == each.close)
    directory = ends[False].opens[-1]
    # A directory that is listed by itself begins no session.
    alone = (op == directory) & (holder < 0)
    opens &= ~alone
    session = np.full(count, -1, np.int64)
    # Where descriptors are not told, the file's name has to do.
    holder = np.where(holder < 0, _UNHELD + file.astype(np.int64), holder)
    held = np.flatnonzero(inside & ~alone)
    if len(held):
        key = holder[held] * 2 + is_mpi[held]
        order = held[np.argsort(key, kind="stable")]
        same = np.append(False, np.diff(holder[order] * 2 + is_mpi[order]) == 0)
        event = np.where(opens[order] | closes[order] | ~same, np.arange(len(order)), 0)
        # The last event before each row, the row itself if it opens.
        last = np.maximum.accumulate(event)
        previous = np.append(0, last[:-1])
        reach = np.where(closes[order] & same, previous, last)
        begin = order[reach]
        good = opens[begin] & (file[begin] == file[order])
        session[order[good]] = begin[good]
    lone = np.flatnonzero(data & (session < 0))
    if len(lone):
        session[lone] = _running(lone, np.flatnonzero(opens), session, closes, file, is_mpi)
        lone = lone[session[lone] < 0]
    made = _Made(ends)
    _without_open(made, session, lone, file, is_mpi, op)
    keep = (session >= 0) | ~inside | alone
    # Numbers by order of the opens, which stand for their sessions until here.
    found = np.unique(session[session >= 0])
    closed = session[closes & (session >= 0)]
    for begin in np.setdiff1d(found, np.append(closed, list(made.sessions))).tolist():
        made.add(ends[bool(is_mpi[begin])].close, 2 * count + 1, begin, begin, 0, False)
    renumber = np.zeros(count + 1, np.int64)
    renumber[found] = np.arange(len(found))
    session = np.where(session >= 0, renumber[session], -1)
    columns = [np.array(column, np.int64) for column in zip(*made.rows, strict=True)] or [np.empty(0, np.int64)] * 6
    ops, keys, like, of, mode, is_open = columns
    return Sessions(
        session=session,
        keep=keep,
        made_op=ops.astype(np.int32),
        made_key=keys,
        made_like=like,
        made_session=renumber[of] if len(of) else of,
        made_mode=mode,
        is_open=is_open.astype(np.bool_),
    )


class _Made:
    """Opens and closes that are made."""

    def __init__(self, ends: Mapping[bool, Ends]) -> None:
        self.ends = ends
        self.rows: list[tuple[int, int, int, int, int, bool]] = []
        #: Sessions that have both ends.
        self.sessions: set[int] = set()

    def add(self, op: int, key: int, like: int, session: int, mode: int, is_open: bool) -> None:
        """One of them."""
        self.rows.append((op, key, like, session, mode, is_open))


def _running(lone: Int, begins: Int, session: Int, closes: Bool, file: Code, is_mpi: Bool) -> Int:
    """The session that is open on the file of each row, the latest one: descriptors may have been copied; -1: none."""
    if not len(begins):
        return np.full(len(lone), -1, np.int64)
    end = np.full(len(session), len(session), np.int64)
    closing = np.flatnonzero(closes & (session >= 0))
    end[session[closing]] = closing
    key = file.astype(np.int64) * 2 + is_mpi
    span = len(session) + 1
    order = begins[np.argsort(key[begins], kind="stable")]
    at = np.searchsorted(key[order] * span + order, key[lone] * span + lone) - 1
    begin = order[np.maximum(at, 0)]
    return np.where((at >= 0) & (key[begin] == key[lone]) & (end[begin] > lone), begin, -1)


def _without_open(made: _Made, session: Int, rows: Int, file: Code, is_mpi: Bool, op: Code) -> None:
    """One session for all rows of a file and layer that have none."""
    if not len(rows):
        return
    key = file[rows].astype(np.int64) * 2 + is_mpi[rows]
    order = rows[np.argsort(key, kind="stable")]
    begins = np.flatnonzero(np.diff(file[order].astype(np.int64) * 2 + is_mpi[order], prepend=-1))
    ends = np.append(begins[1:], len(order))
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        mine = order[begin:end]
        first, last = int(mine[0]), int(mine[-1])
        layer = bool(is_mpi[first])
        session[mine] = first
        kinds = np.unique(op[mine]).tolist()
        mode = 0
        for kind in kinds:
            mode |= made_mode(kind)
        made.sessions.add(first)
        made.add(made.ends[layer].opens[0], 2 * first - 1, first, first, mode, True)
        made.add(made.ends[layer].close, 2 * last + 1, last, first, 0, False)


def made_mode(op: int) -> int:
    """The mode that an operation needs: 1 reads, 2 writes and makes the file where it is not there."""
    return 6 if "write" in by_number()[op].name else 1
