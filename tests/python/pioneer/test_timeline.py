"""Runs as bins of time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.pioneer.comparison.timeline import BINS_MAX, bins_of, timeline

ROWS = st.lists(
    st.tuples(st.integers(0, 400), st.integers(0, 300), st.integers(0, 1 << 40), st.booleans()), max_size=30
)


def made(rows, width, bins):
    start, duration, moved, data = zip(*rows, strict=True) if rows else ((), (), (), ())
    return timeline(start, np.add(start, duration), moved, data, width, bins)


def test_bytes_are_spread_over_a_requests_duration_and_operations_count_where_they_begin():
    # 300 bytes from 5 to 35: 5 ns, 10, 10 and 5 of them; 7 at once at 25; a metadata operation in the same bin.
    line = timeline([5, 25, 26], [35, 25, 27], [300, 7, 0], [True, True, False], 10, 5)
    assert line.bytes.tolist() == [50, 100, 107, 50, 0]
    assert line.operations.tolist() == [1, 0, 2, 0, 0]
    assert line.data.tolist() == [1, 0, 1, 0, 0]
    assert line.ratio.tolist() == [1, 0, 0.5, 0, 0]
    assert line.busy.tolist() == [True, True, True, True, False]
    assert line.cumulative.tolist() == [50, 150, 257, 307, 307]


def test_a_request_that_ends_with_its_bin_moves_nothing_in_the_next():
    assert timeline([0], [10], [100], [True], 10, 2).bytes.tolist() == [100, 0]


def test_what_lies_beyond_the_bins_is_left_out():
    line = timeline([-1, 0, 15, 20], [5, 40, 25, 30], [9, 400, 100, 50], [True] * 4, 10, 2)
    assert line.operations.tolist() == [1, 1]
    # 400 over 40 ns, of which 20 are within; 100 over 10 ns, of which 5 are.
    assert line.bytes.tolist() == [100, 150]


def test_a_request_that_ends_before_it_begins_takes_no_time():
    assert timeline([15], [3], [100], [True], 10, 3).bytes.tolist() == [0, 100, 0]


@given(ROWS, st.integers(1, 120))
def test_nothing_is_lost_where_the_bins_hold_the_run(rows, width):
    line = made(rows, width, bins_of(701, width))
    assert line.bytes.sum() == sum(moved for _, _, moved, _ in rows)
    assert line.operations.sum() == len(rows)
    assert line.data.sum() == sum(data for *_, data in rows)
    assert (line.bytes >= 0).all() and (line.data <= line.operations).all()


@given(ROWS, st.integers(1, 60), st.integers(1, 20))
def test_every_bin_has_its_share_of_each_request(rows, width, bins):
    line = made(rows, width, bins)
    for place, found in enumerate(line.bytes.tolist()):
        low, high = place * width, (place + 1) * width
        share = 0.0
        for start, duration, moved, _ in rows:
            if start >= width * bins:
                continue
            if duration == 0:
                share += moved * (low <= start < high)
            else:
                share += moved * max(0, min(high, start + duration) - max(low, start)) / duration
        assert abs(found - share) <= 1 + share * 1e-9


@pytest.mark.parametrize(("width", "bins"), [(0, 1), (-1, 1), (1, 0), (1, BINS_MAX + 1)])
def test_bins_that_cannot_be_are_refused(width, bins):
    with pytest.raises(ValueError, match="bins"):
        timeline([0], [1], [1], [True], width, bins)


def test_bins_are_as_many_as_a_duration_fills():
    assert [bins_of(duration, 10) for duration in (0, 1, 10, 11)] == [1, 1, 1, 2]
