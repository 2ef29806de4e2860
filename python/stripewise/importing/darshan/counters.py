"""Requests that a Darshan log only counts, as rows: numbers and bytes are exact, sizes, offsets and times estimates.

Sizes are the most common ones that Darshan kept where they explain the bytes, else equal. Offsets follow one another,
or with the most common stride, up to the highest byte that was touched; starts are even between the first and the last,
or where the log has a heat map as the bytes of the rank came in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..comma import SIZE_MAX
from ..records import COLLECTIVE, NUMBER_MAX, OP, STDIO, UNKNOWN_OFFSET, Rows, blank

#: Requests and opens of one import at most that are made from counters.
EXPANDED_MAX = 1 << 24
_SECONDS_MAX = 1e9
_COMMON = range(1, 5)
#: By module: the prefix of its counters; the operations of opens, reads and writes; the flags.
_MODULES = {"POSIX": ("", 0), "MPI-IO": ("mpi_", 0), "STDIO": ("", STDIO)}
_PREFIX = {"POSIX": "POSIX", "MPI-IO": "MPIIO", "STDIO": "STDIO"}
_MPI_KINDS = ("COLL", "INDEP", "SPLIT", "NB")


@dataclass(frozen=True)
class Counted:
    """One record with counters: of a file, and of one rank (or of all: -1)."""

    module: str
    file: int
    rank: int
    whole: dict[str, int]
    floating: dict[str, float]

    def get(self, name: str) -> int:
        return max(0, self.whole.get(f"{_PREFIX[self.module]}_{name}", 0))

    def seconds(self, name: str) -> float:
        value = self.floating.get(f"{_PREFIX[self.module]}_F_{name}", 0.0)
        return value if 0 <= value < _SECONDS_MAX else 0.0

    def requests(self, verb: str) -> int:
        """How many `reads` or `writes`; of MPI-IO all kinds, split and nonblocking ones too."""
        if self.module == "MPI-IO":
            return sum(self.get(f"{kind}_{verb.upper()}") for kind in _MPI_KINDS)
        return self.get(verb.upper())

    @property
    def opens(self) -> int:
        if self.module == "MPI-IO":
            return self.get("INDEP_OPENS") + self.get("COLL_OPENS")
        return self.get("OPENS")

    @property
    def count(self) -> int:
        """Rows that it would become."""
        return self.requests("reads") + self.requests("writes") + self.opens


@dataclass(frozen=True)
class Heat:
    """Bytes that a rank moved by the calls of one module, in bins of equal time from the job's start on."""

    bin_s: float
    written: np.ndarray[Any, np.dtype[np.int64]]
    read: np.ndarray[Any, np.dtype[np.int64]]

    def starts(self, verb: str, begin_s: float, end_s: float, sizes: Any) -> Any:
        """Seconds at which requests of these sizes begin, one after the other, so that bytes rise as they did.

        Within a bin evenly; None where the map has no byte between `begin_s` and `end_s`.
        """
        bins = self.written if verb == "WRITE" else self.read
        first, last = int(begin_s / self.bin_s), min(len(bins), int(end_s / self.bin_s) + 1)
        if not sizes.sum() or first >= last or not bins[first:last].sum():
            return None
        edges = np.clip(np.arange(first, last + 1) * self.bin_s, begin_s, end_s)
        moved = np.concatenate([[0.0], np.cumsum(bins[first:last], dtype=np.float64)])
        before = (np.cumsum(sizes) - sizes) * (moved[-1] / sizes.sum())
        # A bin without a byte is stepped over: what begins at its end does not begin at its start.
        at = np.minimum(np.searchsorted(moved, before, side="right"), len(moved) - 1)
        share = (before - moved[at - 1]) / np.maximum(moved[at] - moved[at - 1], 1)
        return edges[at - 1] + share * (edges[at] - edges[at - 1])


def expanded(counted: Counted, start_ns: int, heat: Heat | None = None) -> Rows:
    """The rows of a record, `start_ns` being the start of its job; times by `heat` where there is a map."""
    prefix, flags = _MODULES[counted.module]
    parts = []
    opens = blank(counted.opens)
    opens["op"] = OP[f"{prefix}open"]
    opens["flags"] = flags
    _spread(opens, counted, "OPEN", "META", start_ns)
    parts.append(opens)
    for verb, done in (("READ", "READ"), ("WRITE", "WRITTEN")):
        rows = blank(counted.requests(f"{verb}S"))
        if not len(rows):
            continue
        rows["op"] = OP[f"{prefix}{verb.lower()}"]
        rows["flags"] = flags
        if counted.module == "MPI-IO":
            rows["flags"][: counted.get(f"COLL_{verb}S")] |= COLLECTIVE
        sizes = _sizes(counted, len(rows), counted.get(f"BYTES_{done}"))
        rows["requested"] = rows["done"] = sizes
        _place(rows, counted, done, sizes)
        _spread(rows, counted, verb, verb, start_ns)
        if heat is not None:
            _follow(rows, counted, verb, sizes, start_ns, heat)
        parts.append(rows)
    made = np.concatenate(parts)
    made["file"] = counted.file
    return made


def _sizes(counted: Counted, count: int, total: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """`count` sizes that are `total` bytes together."""
    sizes = np.zeros(count, dtype=np.int64)
    filled = spent = 0
    is_alone = min(counted.requests("reads"), counted.requests("writes")) == 0
    for number in _COMMON if is_alone else ():
        size, times = counted.get(f"ACCESS{number}_ACCESS"), counted.get(f"ACCESS{number}_COUNT")
        times = min(times, count - filled)
        if size and spent + size * times <= total:
            sizes[filled : filled + times] = size
            filled += times
            spent += size * times
    rest = count - filled
    if rest == 0 and spent != total:  # the common sizes do not explain the bytes
        filled, spent, rest = 0, 0, count
    if rest:
        each, more = divmod(total - spent, rest)
        sizes[filled:] = each
        sizes[filled : filled + more] += 1
    return sizes


def _place(rows: Rows, counted: Counted, done: str, sizes: np.ndarray[Any, np.dtype[np.int64]]) -> None:
    top = counted.get(f"MAX_BYTE_{done}")
    is_told = counted.whole.get(f"{_PREFIX[counted.module]}_MAX_BYTE_{done}", 0) >= 0
    if counted.module == "MPI-IO" or not is_told or int(sizes.max()) > top + 1:
        # MPI-IO's counters tell no offset at all; -1 is no byte.
        rows["flags"] |= UNKNOWN_OFFSET
        return
    total = int(sizes.sum())
    before = np.cumsum(sizes) - sizes
    gap = counted.get("STRIDE1_STRIDE") if counted.rank >= 0 else 0
    strided = total + gap * (len(rows) - 1)
    if gap and counted.get("STRIDE1_COUNT") * 10 >= 9 * (len(rows) - 1) and strided <= top + 1:
        rows["offset"] = top + 1 - strided + before + gap * np.arange(len(rows))
    elif total <= top + 1:
        rows["offset"] = top + 1 - total + before
    else:  # parts were touched again
        rows["offset"] = before % (top + 2 - int(sizes.max()))


def _spread(rows: Rows, counted: Counted, what: str, spent: str, start_ns: int) -> None:
    """Even starts between the first and the last; as much time each as Darshan summed up, but none beyond the next."""
    begin, end = counted.seconds(f"{what}_START_TIMESTAMP"), counted.seconds(f"{what}_END_TIMESTAMP")
    span_ns = int(max(0.0, end - begin) * 1e9)
    count = max(1, len(rows))
    each_ns = min(int(counted.seconds(f"{spent}_TIME") * 1e9), span_ns) // count
    rows["start_ns"] = start_ns + int(begin * 1e9) + np.arange(len(rows)) * (span_ns // count)
    rows["end_ns"] = rows["start_ns"] + each_ns


def _follow(rows: Rows, counted: Counted, verb: str, sizes: Any, start_ns: int, heat: Heat) -> None:
    """Starts as the heat map has them; each takes as long as it would have."""
    begin, end = counted.seconds(f"{verb}_START_TIMESTAMP"), counted.seconds(f"{verb}_END_TIMESTAMP")
    starts = heat.starts(verb, begin, max(begin, end), sizes)
    if starts is not None:
        took = rows["end_ns"] - rows["start_ns"]
        rows["start_ns"] = start_ns + (starts * 1e9).astype(np.int64)
        rows["end_ns"] = rows["start_ns"] + took


def is_sane(counted: Counted) -> bool:
    """Whether its counts can be those of a run: none negative but Darshan's -1 for unknown, none beyond all limits."""
    # The id of the name that a file had before is no count; nor is a stride, which is followed where it is above 0.
    counts = (value for name, value in counted.whole.items() if not name.endswith(("RENAMED_FROM", "_STRIDE")))
    if any(not -1 <= value < NUMBER_MAX for value in counts):
        return False
    for verb, done in (("reads", "READ"), ("writes", "WRITTEN")):
        count, total = counted.requests(verb), counted.get(f"BYTES_{done}")
        if total > count * SIZE_MAX:
            return False
    return counted.count < NUMBER_MAX
