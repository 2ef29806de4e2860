"""The segment-level model: its branches, its stripes, and loads against a walk from stripe to stripe."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.model.segment import (
    even_stripe,
    imbalance,
    mean_startup,
    optimal_stripe,
    segment_cost,
    server_demand,
    server_loads,
    span,
    startup,
    stationary_stripe,
)
from support import KIB, MIB, walk

#: The golden calibration of cost-models section 3.
T_MIN, T_MAX, PER_BYTE = 1e-3, 61e-3, 1e-8
GOLDEN = (8, T_MIN, T_MAX, PER_BYTE)

seconds = st.floats(0, 0.1)
request_sizes = st.floats(1, 1e8)
servers = st.integers(1, 64)


def test_startup_of_one_server_is_the_mean_and_of_many_tends_to_the_maximum():
    assert float(startup(1, T_MIN, T_MAX)) == pytest.approx(mean_startup(T_MIN, T_MAX))
    assert float(startup(3, T_MIN, T_MAX)) == pytest.approx(T_MIN + 0.75 * 0.06)  # eq. 2 by hand
    assert float(startup(10**9, T_MIN, T_MAX)) == pytest.approx(T_MAX)


def test_the_three_branches_by_hand():
    # Eq. 3 with r = 64 KiB on 8 servers: stripes of 128 KiB, 24 KiB (3 servers), 4 KiB (all 8).
    cost = segment_cost(64 * KIB, np.array([128, 24, 4]) * KIB, *GOLDEN)
    assert cost == pytest.approx(
        [0.031 + 65536e-8, 0.001 + 3 / 4 * 0.06 + 24576e-8, 0.001 + 8 / 9 * 0.06 + 8192e-8], rel=1e-14
    )


@pytest.mark.parametrize(("request_kib", "stripe_kib"), [(1, 4), (4, 16), (64, 64), (1024, 1024)])
def test_sequential_requests_of_the_paper_get_its_stripes(request_kib, stripe_kib):
    # Seed 001, section VI.B, figure 6, with the calibration of cost-models section 3.
    assert optimal_stripe(request_kib * KIB, *GOLDEN) == stripe_kib * KIB


@given(request_sizes, servers, seconds, seconds, st.floats(0, 1e-6))
def test_the_branches_meet_at_their_ends(r, n, t_min, spread, b):
    # At s = r one server's startup is the mean; at s = r/n the middle branch has n servers.
    cost = segment_cost(r, np.array([r, r * (1 + 1e-12)]), n, t_min, t_min + spread, b)
    assert cost[0] == pytest.approx(cost[1], rel=1e-9, abs=1e-300)
    middle = float(startup(n, t_min, t_min + spread)) + r / n * b
    assert segment_cost(r, r / n * (1 - 1e-9), n, t_min, t_min + spread, b) == pytest.approx(middle, abs=1e-300)


def test_between_the_ends_the_ceiling_makes_steps():
    below, at = segment_cost(MIB, np.array([MIB / 2 - 1, MIB / 2]), *GOLDEN)
    assert below - at == pytest.approx((3 / 4 - 2 / 3) * 0.06 - 1e-8)


@given(st.floats(1e3, 1e8), st.floats(1e-4, 0.1), st.floats(1e-10, 1e-6))
def test_at_the_stationary_stripe_the_derivative_is_zero(r, spread, b):
    s = stationary_stripe(r, 0.0, spread, b)
    if not 0 < s < 100 * r:
        return

    def smooth(stripe: float) -> float:
        return r / (r + stripe) * spread + stripe * b  # ceil(r/s)/(ceil(r/s)+1) without its ceiling

    step = s * 1e-3
    slope = (smooth(s + step) - smooth(s - step)) / (2 * step)
    assert abs(slope) < 1e-3 * b
    assert smooth(s) <= min(smooth(s * 0.9), smooth(s * 1.1))


def test_the_stationary_stripe_is_used_only_between_the_ends():
    # r*b = 1 ms on 8 servers; s* is in (r/8, r) for a spread between 81/64 and 4 times r*b.
    r, b = 100_000.0, 1e-8
    for times, inside in ((1.2, False), (1.3, True), (2.0, True), (3.9, True), (4.1, False)):
        spread = times * r * b
        s = stationary_stripe(r, 0.0, spread, b)
        assert (r / 8 < s < r) == inside
        stripe = optimal_stripe(r, 8, 0.0, spread, b, 1)
        assert stripe == math.ceil(s if inside else r / 8 if times < 2 else r)


@given(request_sizes, servers, seconds, seconds, st.floats(0, 1e-6))
def test_outside_the_ends_the_side_of_the_stationary_stripe_is_the_better_end(r, n, t_min, spread, b):
    # The smooth middle branch is convex: below r/n it rises all the way, above r it falls. 4*r*b is that border for r.
    spread_end, whole = segment_cost(r, np.array([r / n, r]), n, t_min, t_min + spread, b)
    s = stationary_stripe(r, t_min, t_min + spread, b)
    tolerance = 1e-9 * max(spread_end, whole)
    if spread >= 4 * r * b:
        assert whole <= spread_end + tolerance
    if s <= r / n and n > 1:
        assert spread_end <= whole + tolerance


@given(request_sizes, servers, seconds, seconds, st.floats(0, 1e-6), st.sampled_from([1, 512, 4096]))
def test_a_stripe_is_a_multiple_of_the_granule_and_cuts_into_at_most_n_pieces(r, n, t_min, spread, b, granule):
    stripe = optimal_stripe(r, n, t_min, t_min + spread, b, granule)
    assert stripe % granule == 0
    assert stripe >= r / n * (1 - 1e-12)
    assert stripe < max(r, min(4 * r, 16 * KIB)) + granule


@settings(max_examples=60)
@given(st.floats(1, 1e7), st.integers(1, 16), seconds, seconds, st.floats(0, 1e-6))
def test_no_stripe_is_cheaper_than_the_best_even_one(r, n, t_min, spread, b):
    best = even_stripe(r, n, t_min, t_min + spread, b)
    k = round(r / best)
    cost = float(startup(k, t_min, t_min + spread)) + best * b
    others = segment_cost(r, np.linspace(r / n / 2, 2 * r, 500), n, t_min, t_min + spread, b)
    assert cost <= others.min() * (1 + 1e-9)


def test_equation_4_gives_away_two_ninths_at_worst_where_it_is_just_below_the_request():
    # Spread just below 4*r*b, no minimum startup: s* just below r costs (2/3)*4 + 1 = 11/3 r*b, s = r costs 3 r*b.
    r, b = MIB, 1e-8
    spread = 3.9999 * r * b
    s = stationary_stripe(r, 0.0, spread, b)
    assert r / 2 < s < r
    ratio = float(segment_cost(r, s, 8, 0.0, spread, b)) / float(segment_cost(r, r, 8, 0.0, spread, b))
    assert ratio == pytest.approx(11 / 9, rel=1e-3)


@pytest.mark.parametrize("bad", [(0, 8, 0, 1, 1e-8), (1, 0, 0, 1, 1e-8), (1, 8, 1, 0, 1e-8), (math.nan, 8, 0, 1, 1e-8)])
def test_there_is_no_stripe_for_no_request(bad):
    with pytest.raises(ValueError, match="no stripe"):
        optimal_stripe(*bad)


rows = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5), st.integers(1, 9)), min_size=1, max_size=12)
shapes = st.tuples(st.integers(1, 9), st.sampled_from([1, 7, 512, 4096, 65536]).filter(bool))


def columns(requests):
    return (np.array(column, dtype=np.int64) for column in zip(*requests, strict=True))


@settings(max_examples=60)
@given(st.integers(0, 50_000), st.integers(1, 20_000), st.integers(1, 9), st.sampled_from([7, 512, 4096]))
def test_first_and_last_server_are_those_of_a_walk(offset, size, n, stripe):
    found = span(np.array([offset]), np.array([size]), stripe, n)
    stripes, at, pieces = [], offset, []
    while at < offset + size:
        end = min((at // stripe + 1) * stripe, offset + size)
        stripes.append(at // stripe % n)
        pieces.append(end - at)
        at = end
    assert int(found.stripes[0]) == len(stripes)
    assert (int(found.first_server[0]), int(found.last_server[0])) == (stripes[0], stripes[-1])
    assert (int(found.first_bytes[0]), int(found.last_bytes[0])) == (pieces[0], pieces[-1])


def test_a_request_that_ends_with_its_stripe_does_not_touch_the_next_server():
    # The seed's end formula floor((f-F+r)/s) % n says server 1.
    found = span(np.array([0]), np.array([4096]), 4096, 4)
    assert int(found.last_server[0]) == 0
    assert int(found.last_bytes[0]) == 4096


@settings(max_examples=60)
@given(rows, st.integers(1, 9), st.sampled_from([512, 4096, 65536]))
def test_demand_and_load_of_every_server_are_those_of_a_walk(requests, n, stripe):
    accesses, served = server_demand(*columns(requests), stripe, n)
    slow_accesses, slow_bytes = [0] * n, [0] * n
    for offset, size, count in requests:
        for name, taken in walk([(str(i), stripe) for i in range(n)], offset, size).items():
            slow_accesses[int(name)] += count
            slow_bytes[int(name)] += taken * count
    assert accesses.tolist() == slow_accesses
    assert served.tolist() == slow_bytes
    loads = server_loads(*columns(requests), stripe, n, 0.003, 1e-8)
    assert loads == pytest.approx([k * 0.003 + b * 1e-8 for k, b in zip(slow_accesses, slow_bytes, strict=True)])


def test_strides_of_figure_1_load_one_two_or_all_servers():
    # Seed 001, figure 1: 4 servers, requests of 4 KB every 16 KB (a gap of 12 KB).
    offset = np.arange(64) * 16 * KIB
    size, count = np.full(64, 4 * KIB), np.ones(64, dtype=np.int64)
    busy, sigma = {}, {}
    for stripe in (1, 4, 8, 16):
        loads = server_loads(offset, size, count, stripe * KIB, 4, 0.003, 1e-8)
        busy[stripe], sigma[stripe] = int((loads > 0).sum()), imbalance(loads)
    assert busy == {1: 4, 4: 1, 8: 2, 16: 4}
    assert sigma == pytest.approx({1: 0, 4: 3, 8: 1, 16: 0})


def test_imbalance_without_a_load_is_zero():
    assert imbalance(np.zeros(4)) == 0
    assert imbalance(np.zeros(0)) == 0
    assert imbalance(np.array([3.0, 1.0])) == 0.5
