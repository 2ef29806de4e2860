"""The ranges of the file that calls of the mpi layer ask for, written out one by one.

A call that asks for one range is a row; of any other, rows of the operation `extent` follow it (docs/formats.md, Trace
Parquet): so many bytes at an offset, again and again at a stride, which the next row may repeat as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .columns import codes_of_text, numbers

Numbers = npt.NDArray[np.int64]

#: The flag of an extent that repeats the one before.
_REPEATS = 1024


@dataclass(frozen=True)
class Ranges:
    """Ranges in the order of their calls: of which of the calls each is, where, how long (bytes)."""

    call: Numbers
    offset: Numbers
    size: Numbers


def ranges_of(table: Any, calls: Numbers) -> Ranges:
    """What the calls in these rows of a table have done, the bytes that they asked for and did not do left out.

    `calls` ascends; the table has the columns op, offset, done, and where there are extents requested, flags, aux.
    """
    offset, done = numbers(table, "offset", 0), numbers(table, "done", 0)
    op, ops = codes_of_text(table, "op")
    extents = np.flatnonzero(np.isin(op, [code for code, name in enumerate(ops) if name == "extent"]))
    # The call of an extent is the last row before it that is none.
    of = np.searchsorted(calls, extents, side="right") - 1
    is_row = np.ones(table.num_rows, dtype=np.int64)
    is_row[extents] = 0
    before = np.maximum.accumulate(np.where(is_row == 1, np.arange(table.num_rows), -1))
    mine = (
        (of >= 0) & (before[extents] == calls[np.maximum(of, 0)]) if len(calls) else np.zeros(len(extents), dtype=bool)
    )
    extents, of = extents[mine], of[mine]
    single = np.setdiff1d(np.arange(len(calls)), of)
    first = (numbers(table, "flags", 0)[extents] & _REPEATS) == 0
    part = np.cumsum(first) - 1
    call, at, size = of[first], offset[extents][first], numbers(table, "requested", 0)[extents][first]
    stride, count = done[extents], numbers(table, "aux", 1)[extents]
    # How many levels of repetition a part has, and which one each row is.
    begins = np.flatnonzero(first)
    level = np.arange(len(extents)) - begins[part] if len(extents) else np.zeros(0, dtype=np.int64)
    which = np.arange(len(call))
    # From the outermost level in, so that the innermost runs fastest.
    for depth in range(int(level.max(initial=-1)), -1, -1):
        times, by = np.ones(len(begins), dtype=np.int64), np.zeros(len(begins), dtype=np.int64)
        times[part[level == depth]], by[part[level == depth]] = count[level == depth], stride[level == depth]
        each = times[which]
        from_ = np.repeat(np.arange(len(which)), each)
        nth = np.arange(len(from_)) - np.repeat(np.cumsum(each) - each, each)
        which, at = which[from_], at[from_] + nth * by[which[from_]]
    if len(which):
        call, size = call[which], size[which]
    call = np.concatenate([call, single])
    at = np.concatenate([at, offset[calls[single]]])
    size = np.concatenate([size, done[calls[single]]])
    order = np.argsort(call, kind="stable")
    call, at, size = call[order], at[order], size[order]
    # A call that was cut short has done the first of its bytes.
    ends = np.cumsum(size)
    begin = ends - size
    of_call = begin - begin[np.searchsorted(call, call)] if len(call) else begin
    size = np.clip(done[calls[call]] - of_call, 0, size)
    some = size > 0
    return Ranges(call[some], at[some], size[some])
