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
from stripewise.run.repeats import Repeated
from stripewise.workload.requests import REQUEST_DTYPE, FileRequests, Workload

NO_PLAN: Any = Plan


def repeated(*seconds: float, name: str = "def") -> Repeated:
    return Repeated(NO_PLAN, tuple(Measured(name, 2.0, None, each, each, {"a": each}, 5) for each in seconds))


def test_the_interval_is_students() -> None:
    found = repeated(1.0, 1.2, 1.1)
    assert found.mean.io_seconds == pytest.approx(1.1) and found.mean.busy_s == {"a": pytest.approx(1.1)}
    # t = 4.303 with two degrees of freedom, s = 0.1.
    assert found.half_width == pytest.approx(4.303 * 0.1 / math.sqrt(3) / 1.1)
    assert repeated(1.0).half_width is None and repeated(1.0, 1.0).half_width == 0
    assert found.mean.read_mb_s == 2.0 and found.mean.write_mb_s is None and found.mean.verified_bytes == 5


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
