"""Formulas of P: exact, of the terms that the patterns know, and nothing else."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.pattern.scaling import formulas
from stripewise.pioneer.synthesis.formula import value_at


@pytest.mark.parametrize(
    ("text", "processes", "value"),
    [
        (7, 3, 7),
        ("65536 x P", 8, 524288),
        ("1/2 x P", 8, 4),
        ("2 x P + -3", 5, 7),
        ("3 x (100 div P)", 8, 36),
        ("side(P) x P/side(P)", 12, 12),
        ("1024 / P", 4, 256),
        ("-(P - 9)", 4, 5),
    ],
)
def test_a_formula_has_its_value(text, processes, value):
    assert value_at(text, processes) == value


@pytest.mark.parametrize(
    "text", ["", "P P", "2 x", "x P", "__import__('os')", "P ** 9", "1/3 x P", "1 / (P - 4)", "(" * 50]
)
def test_what_is_none_is_refused(text):
    with pytest.raises(ValueError, match="'"):
        value_at(text, 4)


@given(st.text(alphabet="P0123456789x*/+-() divside", max_size=60))
def test_any_text_is_a_whole_number_or_refused(text):
    with contextlib.suppress(ValueError):
        assert isinstance(value_at(text, 6), int)


@given(st.integers(1, 10**9), st.integers(1, 10**6))
def test_what_scaling_finds_can_be_read(one, two):
    for formula in formulas({4: one * 4, 9: one * 9 + two}):
        assert value_at(formula.text, 4) == one * 4
        assert value_at(formula.text, 9) == one * 9 + two
