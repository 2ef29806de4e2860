"""Which moves of a finished plan a mover makes when it is told `min_gain`: swaps as a whole, or not at all."""

from __future__ import annotations

import pytest

from stripewise.moving.move_gain import gainful_moves
from stripewise.moving.schedule import Schedule
from test_migration import GOLDEN, A, B, C, moves_of, planned, touching

LIMITED = frozenset({"ssd0"})


def chosen(plan, min_gain):
    made = gainful_moves(plan, LIMITED, min_gain)
    return [[(move.direction, move.start >> 20) for move in made[window]] for window in sorted(made)]


def test_a_region_stays_when_the_one_that_its_place_is_for_does_not_come():
    # As the planner decides with the same factor: C's swap for A pays, D's for B does not, and B keeps its place.
    assert chosen(planned(touching(GOLDEN)), 1.0) == [[("out", A), ("in", C)], [], [], []]
    assert chosen(planned(touching(GOLDEN)), 1.0) == moves_of(planned(touching(GOLDEN), min_gain=1.0))


def test_a_region_that_stayed_leaves_when_a_later_window_needs_its_place():
    # The plan has D leave for A, but with half the factor D never came, and B is still there.
    later = planned(touching([*GOLDEN[:4], {A: 9}]))
    assert moves_of(later)[3] == [("out", 3), ("in", A)]
    assert chosen(later, 0.5) == [[("out", A), ("in", C)], [], [], [("out", B), ("in", A)]]


def test_with_factor_nought_all_moves_are_made_and_with_a_huge_one_none():
    plan = planned(touching(GOLDEN))
    assert [set(window) for window in chosen(plan, 0.0)] == [set(window) for window in moves_of(plan)]
    assert chosen(plan, 1e6) == [[], [], [], []]


@pytest.mark.parametrize("min_gain", [None, 0.0, 0.5, 1.0, 2.0])
def test_targets_never_hold_more_than_in_the_plan(min_gain):
    plan = planned(touching([*GOLDEN[:4], {A: 9}]))
    schedule = Schedule(plan, LIMITED, min_gain=min_gain)
    file = plan.files[0]
    for window in range(5):
        steps = schedule.steps(file, window, file.layout)
        places = {region.start: region.stripes for region in file.layout}
        for step in steps:
            places |= {r.start: r.stripes for r in step.layout if r.start == step.start}
        assert sum(any(name in LIMITED for name, _ in stripes) for stripes in places.values()) <= 2
