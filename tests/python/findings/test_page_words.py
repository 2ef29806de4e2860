"""Words of the page: the pattern that moves most bytes comes first, and times have a unit that fits and no exponent."""

from __future__ import annotations

import pytest

from runs import write_rows
from stripewise.units import seconds_text, time_text
from support import KIB, MIB
from test_cli import stripewise


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ns"),
        (3.5e-8, "35 ns"),
        (3.4e-4, "340 us"),
        (0.0125, "12.5 ms"),
        (0.99999, "1 s"),
        (4.8, "4.8 s"),
        (4800, "4,800 s"),
        (999.6, "1,000 s"),
    ],
)
def test_a_time_has_the_unit_in_which_it_is_one_or_more(seconds, text):
    assert time_text(seconds) == text


def test_seconds_have_no_exponent():
    assert [seconds_text(each) for each in (0, 2e-5, 0.0905, 12.34, 1234.5, 999.6)] == [
        "0", "0.00002", "0.0905", "12.3", "1,234", "1,000",
    ]  # fmt: skip
    assert seconds_text(-2.5) == "-2.5"


def test_the_pattern_that_moves_most_is_told_first(tmp_path):
    rows = [(0, "read", "/d/f", 2 * KIB * k * k, KIB) for k in range(4)]
    rows += [(0, "write", "/d/f", MIB + k * MIB, MIB) for k in range(64)]
    page = stripewise("show", write_rows(tmp_path / "t", rows)).stdout
    told = page[page.index("/d/f:") :].splitlines()
    assert "writes 64 medium requests of 1 MiB" in told[1], told
