"""Requests in flight: against a walk over every nanosecond."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.model.concurrency import mean_in_flight

rows = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), min_size=1, max_size=12)


@given(rows)
def test_the_mean_is_that_of_a_walk_over_time(requests):
    start = np.array([at for at, _ in requests])
    end = start + np.array([length for _, length in requests])
    flying = [int(((start <= now) & (now < end)).sum()) for now in range(100)]
    busy = [count for count in flying if count]
    expected = sum(busy) / len(busy) if busy else 1.0
    assert mean_in_flight(start, end) == pytest.approx(max(1.0, expected))


def test_one_after_the_other_is_one_in_flight_whatever_the_pauses():
    assert mean_in_flight(np.array([0, 100, 50]), np.array([10, 110, 60])) == 1.0
    assert mean_in_flight(np.array([5]), np.array([1])) == 1.0
    assert mean_in_flight(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)) == 1.0
