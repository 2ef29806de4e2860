"""Ranges of MPI-IO calls: what rows of extents stand for."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.errors import WorkloadError
from stripewise.workload.ranges import counts_of_ranges, ranges_of

LEVEL = st.tuples(st.integers(1, 50), st.integers(1, 4))
PART = st.tuples(st.integers(0, 1000), st.integers(1, 8), st.lists(LEVEL, min_size=1, max_size=3))
#: A call: of no extents, one range; the bytes that it lacks at its end.
CALL = st.tuples(st.lists(PART, max_size=3), st.integers(0, 100), st.integers(1, 50), st.integers(0, 20))


def written_out(offset, size, levels):
    starts = [offset]
    for stride, count in levels:
        # An outer level repeats all that the inner ones have made.
        starts = [start + k * stride for k in range(count) for start in starts]
    return [(start, size) for start in starts]


def cut(ranges, count):
    kept = []
    for at, size in ranges:
        if count > 0:
            kept.append((at, min(size, count)))
        count -= size
    return kept


@given(st.lists(st.tuples(CALL, st.booleans()), max_size=6))
def test_ranges_are_written_out_call_by_call(calls):
    rows, wanted, places = [], [], []
    for (parts, offset, size, lacking), is_call in calls:
        if not is_call:
            # A row of another kind, and one whose extents are not asked for.
            rows.append(("read", 5, 9, 9, 0, 0))
        ranges = [r for part in parts for r in written_out(*part)] or [(offset, size)]
        total = sum(n for _, n in ranges)
        done = max(total - lacking, 0)
        if is_call:
            places.append(len(rows))
            wanted.append(cut(ranges, done))
        rows.append(("mpi_write" if is_call else "mpi_read", ranges[0][0], total, done, 0, 0))
        for at, length, levels in parts:
            for depth, (stride, count) in enumerate(levels):
                rows.append(("extent", at, length, stride, 1024 if depth else 0, count))
    names = ("op", "offset", "requested", "done", "flags", "aux")
    columns = list(zip(*rows, strict=True)) or [[] for _ in names]
    kinds = [pa.string(), *[pa.int64()] * 5]
    table = pa.table({name: pa.array(c, kind) for name, c, kind in zip(names, columns, kinds, strict=True)})
    found = ranges_of(table, np.array(places, dtype=np.int64))
    if all(not lacking for (_, _, _, lacking), _ in calls):
        assert counts_of_ranges(table, np.array(places, dtype=np.int64)).tolist() == [len(each) for each in wanted]
    got = [[] for _ in places]
    for call, at, size in zip(found.call.tolist(), found.offset.tolist(), found.size.tolist(), strict=True):
        got[call].append((at, size))
    assert got == wanted


def test_more_ranges_than_memory_holds_are_counted_and_refused():
    columns = {"op": ["mpi_write", "extent", "extent"], "offset": [0, 0, 0], "requested": [1 << 40, 1, 1]}
    columns |= {"done": [1 << 40, 2, 1 << 21], "flags": [0, 0, 1024], "aux": [0, 1 << 20, 1 << 20]}
    table, calls = pa.table(columns), np.array([0])
    assert counts_of_ranges(table, calls).tolist() == [1 << 40]
    with pytest.raises(WorkloadError, match=r"1,099,511,627,776 ranges.*--file"):
        ranges_of(table, calls)
