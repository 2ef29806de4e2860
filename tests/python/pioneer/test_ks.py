"""The two-sample Kolmogorov-Smirnov distance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.pioneer.comparison.ks import ks_distance

SAMPLES = st.lists(st.one_of(st.integers(-5, 5), st.floats(-1e9, 1e9)), min_size=1, max_size=30)


def by_definition(a, b):
    """The supremum over all values at which either function steps."""
    return max(abs(sum(x <= value for x in a) / len(a) - sum(x <= value for x in b) / len(b)) for value in {*a, *b})


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        ([1, 2, 3], [3, 1, 2], 0.0),
        ([1, 2], [3, 4], 1.0),
        ([0, 0, 1], [0, 1, 1], 1 / 3),
        ([0] * 99 + [5], [0] * 99 + [7], 0.01),
        # Samples need not be equally long.
        ([1, 2], [1, 2, 2, 2], 0.25),
    ],
)
def test_distances_that_can_be_counted_by_hand(a, b, distance):
    assert ks_distance(a, b) == pytest.approx(distance)


@given(SAMPLES, SAMPLES)
def test_it_is_the_largest_gap_of_both_distribution_functions(a, b):
    assert ks_distance(a, b) == pytest.approx(by_definition(a, b), abs=1e-12)


@given(SAMPLES, SAMPLES, st.randoms())
def test_it_is_symmetric_and_order_does_not_matter(a, b, chance):
    shuffled = list(a)
    chance.shuffle(shuffled)
    assert ks_distance(b, a) == ks_distance(a, b) == ks_distance(shuffled, b)
    assert 0 <= ks_distance(a, b) <= 1
    assert ks_distance(a, shuffled) == 0


@given(SAMPLES, st.integers(2, 4))
def test_a_sample_and_the_same_repeated_are_the_same_distribution(a, times):
    assert ks_distance(a, a * times) == pytest.approx(0, abs=1e-12)


def test_empty_samples_are_alike_and_unlike_any_other():
    assert ks_distance([], []) == 0
    assert ks_distance([], [1]) == ks_distance(np.array([1.5]), []) == 1


def test_what_is_no_number_has_no_place():
    with pytest.raises(ValueError, match="not a number"):
        ks_distance([1.0, float("nan")], [1.0])
