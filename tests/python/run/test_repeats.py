"""Repeated runs: means, intervals, and when one layout beats another; what a run changed of its own inputs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.plan import Plan
from stripewise.run.inputs import changed_inputs
from stripewise.run.measure import Measured
from stripewise.run.repeats import Repeated, quantile, tail, together
from stripewise.workload.requests import REQUEST_DTYPE, FileRequests, Workload

NO_PLAN: Any = Plan


def repeated(*seconds: float, name: str = "def") -> Repeated:
    return Repeated(NO_PLAN, tuple(Measured(name, 2.0, None, each, each, {"a": each}, 5) for each in seconds))


def test_the_interval_is_students() -> None:
    found = repeated(1.0, 1.21, 1.1)
    assert found.mean.io_seconds == pytest.approx(1.1) and found.mean.busy_s == {"a": pytest.approx(3.31 / 3)}
    # t = 4.30265 with two degrees of freedom; the logarithms lie log(1.1) apart.
    off = 4.302653 * math.log(1.1) / math.sqrt(3)
    assert found.io_range is not None
    assert found.io_range == pytest.approx((1.1 / math.exp(off), 1.1 * math.exp(off)))
    assert found.half_width == pytest.approx((found.io_range[1] - found.io_range[0]) / 2 / 1.1)
    assert repeated(1.0).half_width is None and repeated(1.0, 1.0).half_width == 0
    assert found.mean.read_mb_s == 2.0 and found.mean.write_mb_s is None and found.mean.verified_bytes == 5


TIMES = st.lists(st.floats(0.01, 100), min_size=2, max_size=5).map(tuple)


@given(layouts=st.lists(TIMES, min_size=2, max_size=4))
def test_the_interval_of_a_gain_is_made_of_those_of_the_two_times(layouts: list[tuple[float, ...]]) -> None:
    first, *others = together(repeated(*seconds) for seconds in layouts)
    for each in others:
        assert each.io_range is not None and first.io_range is not None
        mine, its = (math.log(high / low) / 2 for low, high in (each.io_range, first.io_range))
        low, high = each.gain_range(first) or (0.0, 0.0)
        # Wider, where several are held against the first.
        free = sum(len(seconds) - 1 for seconds in layouts)
        wider = quantile(free, 0.05 / len(others)) / quantile(free, 0.05)
        assert math.log(high / low) / 2 == pytest.approx(wider * math.hypot(mine, its))
        assert math.sqrt(low * high) == pytest.approx(first.mean.io_seconds / each.mean.io_seconds)


@pytest.mark.parametrize(
    ("free", "chance", "t"),
    [
        (1, 0.05, 12.7062),
        (2, 0.05, 4.30265),
        (4, 0.05, 2.77645),
        (9, 0.05, 2.26216),
        (4, 0.01, 4.60409),
        (8, 0.005, 3.83252),
    ],
)
def test_quantiles_are_those_of_the_tables(free: int, chance: float, t: float) -> None:
    assert quantile(free, chance) == pytest.approx(t, rel=1e-4)
    assert tail(free, t) == pytest.approx(chance / 2, rel=1e-4)


def test_the_best_of_many_alike_is_seldom_taken_for_a_faster_one() -> None:
    """Of a dozen pairs without a difference the quickest was taken for surely faster in a tenth of all tunes."""
    chance, fooled = np.random.default_rng(3), 0
    for _ in range(400):
        first, *others = together(repeated(*np.exp(chance.normal(0, 0.1, 3)).tolist()) for _ in range(12))
        fooled += min(others, key=lambda each: each.mean.io_seconds).beats(first)
    # A twentieth both ways, so about half of that here; without a correction it is 40 of 400.
    assert fooled < 24, fooled


def test_the_spread_is_that_of_all_layouts_that_were_measured_together() -> None:
    # The times of the newcomer's tune: 1.56 +-0.07 and 0.31 +-0.26 did not fit 3.74 to 6.63 times.
    slow, fast = together([repeated(1.555, 1.566), repeated(0.29, 0.33)])
    assert slow.io_range is not None and fast.io_range is not None
    assert math.log(slow.io_range[1] / slow.io_range[0]) == pytest.approx(math.log(fast.io_range[1] / fast.io_range[0]))
    assert fast.gain_range(slow) == pytest.approx((3.82, 6.66), rel=0.01)
    assert fast.io_range == pytest.approx((0.254, 0.376), rel=0.01)


@pytest.mark.parametrize(
    ("mine", "others", "beats"),
    [
        ((1.0,), (2.0,), True),
        ((1.0,), (1.02,), False),
        ((2.0,), (1.0,), False),
        ((1.0, 1.0), (1.001, 1.001), True),
        ((1.0, 1.5), (1.6, 1.7), False),
        # The second pair is 5 times as slow, far beyond what runs of either differ.
        ((0.0058, 0.0069), (0.0328, 0.0379), True),
        ((1.0, 1.01, 1.02), (1.6, 1.7, 1.65), True),
    ],
)
def test_a_layout_beats_another_by_more_than_both_may_be_off(
    mine: tuple[float, ...], others: tuple[float, ...], beats: bool
) -> None:
    faster, slower = repeated(*mine), repeated(*others)
    assert faster.beats(slower) is beats
    found = faster.gain_range(slower)
    assert (found is None) == (len(mine) == 1) and (found is None or (found[0] > 1) is beats)


REQUEST = st.tuples(st.integers(0, 40), st.booleans(), st.integers(0, 12), st.integers(0, 6))


@settings(max_examples=500, deadline=None)
@given(rows=st.lists(REQUEST, max_size=12), scale=st.sampled_from([1, 7, 4096]))
def test_inputs_that_were_changed_are_bytes_that_were_read_first_and_written_later(
    rows: list[tuple[int, bool, int, int]], scale: int
) -> None:
    requests = np.array(
        [(at, at + 1, 0, write, offset * scale, size * scale) for at, write, offset, size in rows], dtype=REQUEST_DTYPE
    )
    # Byte by byte, in units of the scale.
    expected = False
    for place in range(20):
        here = sorted((at, write) for at, write, offset, size in rows if offset <= place < offset + size)
        expected |= bool(here) and not here[0][1] and any(write for _, write in here)
    workload = Workload((FileRequests("/f", requests, 1 << 20),), 1)
    assert changed_inputs(workload) == (["/f"] if expected else [])
