"""Assignments of regions to choices, held against brute force and against what the tables say."""

import itertools
import math
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.errors import StripewiseError
from stripewise.policy.toolkit.assignment import FEATURES, Choice, Problem, Solution

ONE = (1.0, *[0.0] * 7)


def seconds_of(problem: Problem, assignment: np.ndarray) -> float:
    """The objective by its definition; infinite where a server overflows."""
    busy = np.zeros((problem.windows, problem.resources))
    used = np.zeros((problem.windows, len(problem.capacity)))
    penalty_s = 0.0
    for window, region in np.ndindex(assignment.shape):
        choice, valid = problem.choices[assignment[window, region]], problem.valid_bytes[region]
        for resource, q in choice.entries:
            busy[window, resource] += problem.features[window, region, choice.shape] @ np.array(q)
        for server, share in choice.shares:
            used[window, server] += share * valid
        penalty_s += choice.penalty_s
        if window and assignment[window - 1, region] != assignment[window, region]:
            left = problem.choices[assignment[window - 1, region]]
            for resource, per_byte in (*left.leave, *choice.enter):
                busy[window, resource] += per_byte * valid
    if (used > problem.capacity * (1 + 1e-8)).any():
        return math.inf
    return float(busy.max(axis=1, initial=0.0).sum()) + penalty_s


def brute_force(problem: Problem) -> float:
    cells = problem.windows * problem.regions
    shape = (problem.windows, problem.regions)
    every = itertools.product(range(len(problem.choices)), repeat=cells)
    return min(seconds_of(problem, np.array(one).reshape(shape)) for one in every)


def made(seed: int, windows: int, regions: int, servers: int, room: float = 3.0, teams: bool = True) -> Problem:
    """Uneven servers with a shared network, and a team of the first two; room in parts of the data, spread unevenly."""
    random = np.random.default_rng(seed)
    network = servers

    def choice(members: tuple[int, ...]) -> Choice:
        part = 1.0 / len(members)
        own = tuple((server, tuple(speed[server] * part)) for server in members)
        copies = tuple((server, float(speed[server, 0]) * part) for server in members)
        shares = tuple((server, part) for server in members)
        return Choice(
            len(members) - 1, (*own, (network, (0.05,) * FEATURES)), shares, copies, copies, 1e-6 * len(members)
        )

    speed = random.uniform(0.2, 2.0, (servers, FEATURES))
    choices = [choice((server,)) for server in range(servers)]
    if teams and servers > 1:
        choices.append(choice((0, 1)))
    features = random.exponential(1.0, (windows, regions, 1, 1)) * random.uniform(
        0.0, 1.0, (windows, regions, 2, FEATURES)
    )
    valid = random.uniform(0.5, 2.0, regions)
    parts = random.dirichlet(np.full(servers, 4.0))
    return Problem(features, valid, room * valid.sum() * parts, tuple(choices), servers + 1)


def solved(problem: Problem, **options: object) -> Solution:
    found = problem.solve(**{"seconds": 20.0, **options})  # type: ignore[arg-type]
    assert found is not None
    return found


SIZES = st.sampled_from([(1, 4, 3), (1, 5, 3), (2, 3, 2), (3, 2, 2), (2, 2, 3)])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), size=SIZES, room=st.sampled_from([0.9, 1.2, 3.0, math.inf]))
def test_bound_brute_force_and_result_stand_in_this_order(seed: int, size: tuple[int, int, int], room: float) -> None:
    problem = made(seed, *size, room=room)
    best = brute_force(problem)
    found = problem.solve(seconds=20.0, gap=0.0)
    if found is None:
        assert best == math.inf
        return
    assert found.seconds == pytest.approx(seconds_of(problem, found.assignment))
    assert found.bound_s <= best * (1 + 1e-9)
    assert best <= found.seconds * (1 + 1e-9)
    assert found.seconds <= best * 1.02


def dual_value(problem: Problem, found: Solution) -> float:
    """The Lagrangean dual at the prices, one cheapest path after the other over all pairs of choices."""
    count = len(problem.choices)
    total = 0.0
    for region, valid in enumerate(problem.valid_bytes):
        value = np.zeros(count)
        for window in range(problem.windows):
            prices, rooms = found.prices[window], found.room_prices[window]
            cost = np.zeros(count)
            move = np.zeros((count, count))
            for number, choice in enumerate(problem.choices):
                features = problem.features[window, region, choice.shape]
                cost[number] = choice.penalty_s + sum(prices[at] * (features @ np.array(q)) for at, q in choice.entries)
                cost[number] += sum(rooms[at] * share * valid for at, share in choice.shares)
                if any(share * valid > problem.capacity[at] * (1 + 1e-9) for at, share in choice.shares):
                    cost[number] = math.inf
                move[number, :] += sum(prices[at] * s * valid for at, s in choice.leave)
                move[:, number] += sum(prices[at] * s * valid for at, s in choice.enter)
            np.fill_diagonal(move, 0.0)
            value = cost + (value[:, None] + move).min(axis=0) if window else cost
        total += value.min()
    finite = np.isfinite(problem.capacity)
    return total - float((found.room_prices[:, finite] * problem.capacity[finite]).sum())


@pytest.mark.parametrize("room", [1.3, math.inf])
def test_the_bound_is_the_dual_at_the_prices_that_are_told(room: float) -> None:
    problem = made(5, 3, 40, 6, room=room)
    found = solved(problem, seconds=5.0)
    assert found.prices.sum(axis=1) == pytest.approx(np.ones(3))
    assert found.prices.min() >= 0.0
    assert found.room_prices.min() >= 0.0
    assert dual_value(problem, found) == pytest.approx(found.bound_s, rel=1e-9)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32), room=st.sampled_from([1.2, 2.0]))
def test_no_server_overflows_and_the_bound_holds_at_fifty_regions(seed: int, room: float) -> None:
    problem = made(seed, 3, 50, 8, room=room)
    found = solved(problem, seconds=3.0)
    assert found.seconds == pytest.approx(seconds_of(problem, found.assignment))
    assert 0.0 <= found.gap < 0.25


def test_hundreds_of_small_regions_on_few_servers_come_within_two_percent_of_the_bound() -> None:
    found = solved(made(11, 2, 600, 6))
    assert found.gap < 0.02


def test_an_exact_fit_is_found() -> None:
    sizes = np.array([7.0, 5.0, 4.0, 4.0, 3.0, 3.0, 2.0, 2.0])
    choices = tuple(Choice(0, ((server, ONE),), ((server, 1.0),)) for server in range(3))
    problem = Problem(np.ones((2, 8, 1, FEATURES)), sizes, np.full(3, 10.0), choices, 3)
    assert np.isfinite(seconds_of(problem, solved(problem).assignment))


def test_a_start_is_never_worsened() -> None:
    problem = made(3, 3, 30, 5, room=2.0)
    best = solved(problem, seconds=5.0)
    hurried = solved(problem, seconds=0.0, starts=[best.assignment])
    assert hurried.seconds <= best.seconds * (1 + 1e-12)
    assert solved(problem, seconds=1.0, gap=0.5, starts=[best.assignment]).seconds <= best.seconds * (1 + 1e-12)


def test_a_start_that_is_partly_unknown_or_does_not_fit_is_completed() -> None:
    problem = made(4, 2, 20, 4, room=1.3)
    start = np.full((2, 20), -1)
    start[0, :10] = 0
    found = solved(problem, starts=[start, np.zeros((2, 20), dtype=np.int64)], seconds=2.0)
    assert np.isfinite(seconds_of(problem, found.assignment))


def test_the_same_arguments_give_the_same_result() -> None:
    problem = made(8, 2, 80, 6, room=1.5)
    first, second = solved(problem, seed=3, seconds=60.0), solved(problem, seed=3, seconds=60.0)
    assert np.array_equal(first.assignment, second.assignment)
    assert first.window_s == second.window_s
    assert first.bound_s == second.bound_s


def test_a_time_limit_is_kept() -> None:
    begin = time.monotonic()
    solved(made(9, 4, 400, 40), seconds=0.5, gap=0.0)
    assert time.monotonic() - begin < 30.0


def test_one_region_on_one_server() -> None:
    problem = Problem(
        np.full((1, 1, 1, FEATURES), 2.0), np.array([5.0]), np.array([5.0]), (Choice(0, ((0, ONE),), ((0, 1.0),)),), 1
    )
    found = solved(problem)
    assert found.assignment.tolist() == [[0]]
    assert found.seconds == found.bound_s == 2.0
    assert found.gap == 0.0


def test_regions_that_nobody_touches_still_need_room() -> None:
    choices = tuple(Choice(0, ((server, ONE),), ((server, 1.0),)) for server in range(2))
    problem = Problem(np.zeros((2, 4, 1, FEATURES)), np.ones(4), np.array([2.0, 2.0]), choices, 2)
    found = solved(problem)
    assert found.seconds == 0.0
    assert np.bincount(found.assignment[0]).tolist() == [2, 2]


@pytest.mark.parametrize("capacity", [[0.0, 0.0], [1.5, 1.5], [0.5, 9.0]])
def test_what_does_not_fit_is_told(capacity: list[float]) -> None:
    choices = tuple(Choice(0, ((server, ONE),), ((server, 1.0),)) for server in range(2))
    problem = Problem(np.ones((1, 3, 1, FEATURES)), np.ones(3), np.array(capacity), choices, 2)
    found = problem.solve(seconds=5.0)
    assert (found is None) == (capacity != [0.5, 9.0])


def test_a_server_without_room_and_one_without_end_share_nothing() -> None:
    choices = tuple(Choice(0, ((server, ONE),), ((server, 1.0),)) for server in range(2))
    problem = Problem(np.ones((1, 6, 1, FEATURES)), np.ones(6), np.array([0.0, math.inf]), choices, 2)
    found = solved(problem)
    assert (found.assignment == 1).all()
    assert found.seconds == 6.0
    assert found.bound_s == pytest.approx(6.0)


def test_no_regions_take_no_time() -> None:
    problem = Problem(np.zeros((2, 0, 1, FEATURES)), np.zeros(0), np.ones(1), (Choice(0, ((0, ONE),), ((0, 1.0),)),), 1)
    assert solved(problem).seconds == 0.0


def test_ties_go_to_the_simpler_choice_and_to_staying() -> None:
    problem = made(1, 3, 1, 2)
    even = tuple(replace(choice, entries=((0, ONE),), shape=0) for choice in problem.choices)
    still = replace(problem, features=np.ones((3, 1, 2, FEATURES)), choices=even)
    found = solved(still, gap=0.0)
    assert len(np.unique(found.assignment)) == 1
    assert found.assignment[0, 0] != 2


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"valid_bytes": np.ones(3)}, "valid_bytes"),
        ({"valid_bytes": np.array([-1.0, 1.0])}, "valid_bytes"),
        ({"capacity": np.array([math.nan])}, "capacity"),
        ({"resources": 0}, "entries"),
        ({"choices": (Choice(4, ((0, ONE),), ((0, 1.0),)),)}, "shape"),
        ({"choices": (Choice(0, ((0, ONE),), ((0, 1.5),)),)}, "stores"),
        ({"choices": (Choice(0, ((0, (1.0, 2.0)),), ((0, 1.0),)),)}, "entry"),
        ({"choices": ()}, "sizes"),
        ({"features": np.ones((1, 2, 8))}, "features"),
        ({"features": np.full((1, 2, 1, FEATURES), np.inf)}, "features"),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(change: dict[str, object], word: str) -> None:
    sound = Problem(
        np.ones((1, 2, 1, FEATURES)), np.ones(2), np.full(1, 9.0), (Choice(0, ((0, ONE),), ((0, 1.0),)),), 1
    )
    assert solved(sound).seconds == 2.0
    with pytest.raises((ValueError, StripewiseError), match=word):
        replace(sound, **change).solve()  # type: ignore[arg-type]


def test_a_start_of_another_size_is_refused() -> None:
    with pytest.raises((ValueError, StripewiseError), match="starts"):
        made(1, 2, 3, 2).solve(starts=[np.zeros((1, 3), dtype=np.int64)])
