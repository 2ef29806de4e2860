"""The ranges of the file that calls of the mpi layer ask for, written out one by one.

A call that asks for one range is a row; of any other, rows of the operation `extent` follow it (docs/formats.md, Trace
Parquet): so many bytes at an offset, again and again at a stride, which the next row may repeat as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import WorkloadError
from .columns import codes_of_text, numbers

Numbers = npt.NDArray[np.int64]

#: Ranges that are written out at most: some 3 GB.
RANGES_MAX = 1 << 27
#: The flag of an extent that repeats the one before.
_REPEATS = 1024


@dataclass(frozen=True)
class Ranges:
    """Ranges in the order of their calls: of which of the calls each is, where, how long (bytes)."""

    call: Numbers
    offset: Numbers
    size: Numbers


@dataclass(frozen=True)
class _Extents:
    """The rows of extents of some calls: of which call and which part of it, on which level of repetition."""

    rows: Numbers
    #: Of each row.
    part: Numbers
    level: Numbers
    count: Numbers
    #: Of each part: its first row's place in `rows`, and its call.
    begins: Numbers
    call: Numbers


def _extents(table: Any, calls: Numbers) -> _Extents:
    op, ops = codes_of_text(table, "op")
    extents = np.flatnonzero(np.isin(op, [code for code, name in enumerate(ops) if name == "extent"]))
    # The call of an extent is the last row before it that is none.
    of = np.searchsorted(calls, extents, side="right") - 1
    own = np.arange(table.num_rows)
    own[extents] = -1
    before = np.maximum.accumulate(own)
    mine = before[extents] == calls[np.maximum(of, 0)] if len(calls) else np.zeros(len(extents), dtype=bool)
    extents, of = extents[mine & (of >= 0)], of[mine & (of >= 0)]
    first = (numbers(table, "flags", 0)[extents] & _REPEATS) == 0
    part, begins = np.cumsum(first) - 1, np.flatnonzero(first)
    level = np.arange(len(extents)) - begins[part] if len(begins) else np.zeros(len(extents), dtype=np.int64)
    return _Extents(extents, part, level, numbers(table, "aux", 1)[extents], begins, of[first])


def counts_of_ranges(table: Any, calls: Numbers) -> npt.NDArray[np.float64]:
    """How many ranges each of these calls asks for, without writing them out."""
    found = _extents(table, calls)
    each = np.ones(len(found.begins))
    np.multiply.at(each, found.part, found.count.astype(np.float64))
    counts = np.bincount(found.call, each, len(calls))
    return np.where(np.bincount(found.call, minlength=len(calls)) > 0, counts, 1.0)


def ranges_of(table: Any, calls: Numbers) -> Ranges:
    """What the calls in these rows of a table have done, the bytes that they asked for and did not do left out.

    `calls` ascends; the table has the columns op, offset, done, and where there are extents requested, flags, aux.
    Raises WorkloadError where there are more ranges than fit into memory.
    """
    total = float(counts_of_ranges(table, calls).sum())
    if total > RANGES_MAX:
        raise WorkloadError(
            f"its MPI-IO calls ask for {total:,.0f} ranges, more than {RANGES_MAX:,}; choose files with --file, or "
            "look at the layer posix"
        )
    offset, done = numbers(table, "offset", 0), numbers(table, "done", 0)
    found = _extents(table, calls)
    firsts = found.rows[found.begins]
    single = np.setdiff1d(np.arange(len(calls)), found.call)
    call, at, size = found.call, offset[firsts], numbers(table, "requested", 0)[firsts]
    which = np.arange(len(call))
    # From the outermost level in, so that the innermost runs fastest.
    for depth in range(int(found.level.max(initial=-1)), -1, -1):
        here = found.level == depth
        times, by = np.ones(len(call), dtype=np.int64), np.zeros(len(call), dtype=np.int64)
        times[found.part[here]], by[found.part[here]] = found.count[here], done[found.rows[here]]
        each = times[which]
        origin = np.repeat(np.arange(len(which)), each)
        nth = np.arange(len(origin)) - np.repeat(np.cumsum(each) - each, each)
        which, at = which[origin], at[origin] + nth * by[which[origin]]
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
