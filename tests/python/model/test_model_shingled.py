"""Shingled disks in closed form: the numbers that the thesis states in chapters 4 and 5."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.model.shingled import (
    fragmentation_ratio,
    space_gain,
    update_amplification,
    update_operations,
    victim_threshold,
)


def test_bands_of_four_tracks_under_a_head_of_two_gain_1_6():
    # Seed 002, section 4.4.1: efficiency 0.8 = 4m/(4m+m), times 2.
    assert space_gain(4, 2) == 1.6


@given(st.integers(1, 1000), st.integers(1, 20))
def test_space_gain_grows_with_the_band_towards_the_width_of_the_head(N, W):
    assert 1 <= space_gain(N, W) <= space_gain(N + 1, W) <= W


@given(st.integers(1, 300))
def test_the_amplification_of_a_full_band_is_its_tracks(N):
    assert update_amplification(N) == N


def test_an_update_rewrites_every_track_after_it():
    # Eq. 4.2: the last track costs its write, each one before it two operations more.
    assert update_operations(4).tolist() == [1, 3, 5, 7]


def test_fragmentation_ratios_of_figure_5_1():
    assert fragmentation_ratio(10, 5) == 0.5
    assert fragmentation_ratio(10, 4) == 0.6  # after one victim was moved
    assert fragmentation_ratio(7, 7) == 0


@pytest.mark.parametrize(("used", "free", "threshold"), [(80, 20, 4), (60, 40, 2), (8, 2, 4), (0, 10, 0), (99, 1, 99)])
def test_the_victim_threshold_is_four_at_80_percent_and_two_at_60(used, free, threshold):
    assert victim_threshold(used, free) == threshold


@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_the_victim_threshold_is_the_least_integer_not_below_used_over_free(used, free):
    threshold = victim_threshold(used, free)
    assert (threshold - 1) * free < used <= threshold * free


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: space_gain(0, 2),
        lambda: space_gain(4, 0),
        lambda: update_amplification(0),
        lambda: fragmentation_ratio(0, 0),
        lambda: fragmentation_ratio(3, 4),
        lambda: victim_threshold(5, 0),
        lambda: victim_threshold(-1, 4),
    ],
)
def test_disks_that_cannot_be_have_no_figures(wrong):
    with pytest.raises(ValueError, match=r"at least|needs"):
        wrong()
