"""One class of servers under three layouts, PDLA's pair on two, a price in its parts (cost-models sections 1, 2)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stripewise.model import CostParameters, Cycle, DeviceFigures, OpFigures, hybrid_cost, request_cost
from stripewise.model.one_class import (
    ClassParameters,
    group_counts,
    one_dh,
    one_dv,
    pdla_by_corners,
    pdla_by_scan,
    pdla_hybrid,
    two_d,
)
from stripewise.model.radar import RadarFigures, coarse
from stripewise.model.terms import request_terms
from support import KIB, MIB

figures = st.builds(OpFigures, st.floats(0, 0.1), st.floats(0, 1e-6))
one_class = st.builds(
    ClassParameters, st.integers(1, 200), st.integers(1, 16), st.floats(0, 1e-3), st.floats(0, 1e-7),
    st.integers(1, 32), figures,
)  # fmt: skip
sizes = st.integers(1, 1 << 26)
HDD, SSD = OpFigures(0.003, 1e-8), OpFigures(1e-4, 2.5e-9)
PARAMS = CostParameters(32, 2, 1e-4, 1e-9, DeviceFigures(HDD, HDD), DeviceFigures(SSD, SSD))


def parts(terms):
    return [float(each) for each in (terms.establish_s, terms.transfer_s, terms.startup_s, terms.storage_s)]


def test_table_2_by_hand():
    # Seed 003, Table 2: p = 10, m = 2, n = 4, s = 64 KiB; 2-D with 2 groups has q = 5 processes and w = 2 servers each.
    params = ClassParameters(10, 2, 1e-4, 1e-9, 4, HDD)
    r = 64 * KIB
    assert parts(one_dv(params, r)) == pytest.approx([3 * 1e-4, 3 * r * 1e-9, 3 * 0.003, 3 * r * 1e-8])
    assert parts(one_dh(params, r)) == pytest.approx([10 * 1e-4, 2.5 * r * 1e-9, 10 * 0.003, 2.5 * r * 1e-8])
    assert parts(two_d(params, r, 2)) == pytest.approx([5 * 1e-4, 2.5 * r * 1e-9, 5 * 0.003, 2.5 * r * 1e-8])


@given(one_class, sizes)
def test_as_many_groups_as_servers_are_1_dv(params, r):
    assert parts(two_d(params, r, params.n)) == parts(one_dv(params, r))


@given(one_class, sizes)
def test_one_group_is_1_dh(params, r):
    # For every p, c and n: q = p and w = n, so both maxima are the same.
    assert parts(two_d(params, r, 1)) == pytest.approx(parts(one_dh(params, r)), rel=1e-14, abs=0)


@given(one_class, sizes, st.integers(1, 8))
def test_where_all_divides_fewer_servers_per_process_are_never_dearer(params, r, times):
    # n | p and g | n: T_1DV <= T_2D <= T_1DH, and T_2D falls with g.
    params = ClassParameters(times * params.n, params.c, params.e, params.t, params.n, params.storage)
    costs = [float(two_d(params, r, g).total_s) for g in group_counts(params.n)]
    for more_servers, fewer in itertools.pairwise(costs):
        assert fewer <= more_servers * (1 + 1e-12)
    assert float(one_dv(params, r).total_s) <= costs[-1] * (1 + 1e-12)
    assert costs[0] <= float(one_dh(params, r).total_s) * (1 + 1e-12)


@given(one_class, sizes, st.data())
def test_2_d_is_radars_coarse_model_with_as_many_servers_per_client_as_a_group_has(params, r, data):
    g = data.draw(st.sampled_from(group_counts(params.n)))
    w = params.n // g
    same = RadarFigures(params.n, params.e, params.t, params.storage.startup_s, params.storage.per_byte_s)
    radar = coarse(same, params.p, params.c, params.p * r, w)
    assert parts(two_d(params, r, g)) == pytest.approx(parts(radar), rel=1e-12, abs=0)


def test_groups_that_do_not_divide_the_servers_are_priced_with_servers_that_are_not_there():
    # 3 groups of ceil(8/3) = 3 servers are 9 servers: less transfer than 3 requests over 8 servers can take.
    params = ClassParameters(3, 1, 0.0, 0.0, 8, OpFigures(0.0, 1e-8))
    at_least = 3 * MIB / 8 * 1e-8
    assert float(two_d(params, MIB, 3).total_s) < at_least
    for g in group_counts(8):
        assert float(two_d(params, MIB, g).total_s) >= at_least


@given(one_class, sizes)
def test_equal_groups_never_undercut_the_mean_load_of_the_servers(params, r):
    for g in group_counts(params.n):
        terms = two_d(params, r, g)
        assert float(terms.storage_s) >= params.p * r * params.storage.per_byte_s / params.n * (1 - 1e-12)


@given(one_class, st.integers(1, 20))
def test_prices_of_many_sizes_at_once_are_those_of_each(params, count):
    r = np.arange(1, count + 1) * 4096
    for layout in (one_dv, one_dh, lambda q, x: two_d(q, x, group_counts(q.n)[len(group_counts(q.n)) // 2])):
        together = layout(params, r).total_s
        assert together.tolist() == [float(layout(params, each).total_s) for each in r]


devices = st.builds(DeviceFigures, figures, figures)
params_any = st.builds(
    CostParameters, st.integers(1, 64), st.integers(1, 16), st.floats(0, 1e-3), st.floats(0, 1e-7), devices, devices
)


@given(params_any, st.integers(0, 12), st.integers(1, 6), sizes, st.booleans(), st.sampled_from([64, 4096, 10_000]))
def test_the_solvers_of_pdla_agree_to_one_step(params, M, N, r, write, step):
    assume(r / step < 20_000)
    corner = pdla_by_corners(params, M, N, r, write)
    scanned = pdla_by_scan(params, M, N, r, write, step)
    assert 0 <= corner.h <= corner.s * (1 + 1e-9)
    assert scanned.h < scanned.s
    for pair in (corner, scanned):
        assert M * pair.h + N * pair.s == pytest.approx(r)
    assert corner.cost_s <= scanned.cost_s * (1 + 1e-9)
    # The price has no steeper piece than this, so the scan's nearest candidate is at most one step of it dearer.
    hdd, ssd = (params.hdd.write, params.ssd.write) if write else (params.hdd.read, params.ssd.read)
    steepest = params.p * (max(hdd.per_byte_s, M / N * ssd.per_byte_s) + M / N * params.t)
    assert scanned.cost_s <= corner.cost_s + steepest * step + 1e-9 * corner.cost_s


@pytest.mark.parametrize("request_bytes", [256 * KIB, MIB, 4 * MIB, 16 * MIB])
@pytest.mark.parametrize("p", [1, 8, 32])
def test_where_the_best_pair_is_one_the_solvers_agree_on_it_to_one_step(request_bytes, p):
    params = CostParameters(p, 1, 0.0, 0.0, PARAMS.hdd, PARAMS.ssd)
    corner = pdla_by_corners(params, 12, 4, request_bytes, False)
    scanned = pdla_by_scan(params, 12, 4, request_bytes, False, 512)
    assert (corner.h > 0) == (scanned.h > 0)
    assert abs(corner.h - scanned.h) <= 512


def test_hservers_take_part_where_the_sservers_would_outlast_their_startup():
    # h > 0 pays as soon as a_h < a_s + (r/N)*b_s: here 3 ms < 0.1 ms + r/4 * 2.5 ns from r = 4.64 MB.
    params = CostParameters(1, 1, 0.0, 0.0, PARAMS.hdd, PARAMS.ssd)
    assert pdla_by_corners(params, 12, 4, 4_630_000, False).h == 0
    balanced = pdla_by_corners(params, 12, 4, 5_000_000, False)
    assert balanced.h > 0
    assert 0.003 + balanced.h * 1e-8 == pytest.approx(1e-4 + balanced.s * 2.5e-9)


@given(params_any, st.integers(1, 12), st.integers(1, 6), st.integers(1, 64), st.integers(1, 64), st.booleans())
def test_pdla_on_hybrid_servers_is_table_2_of_h2dp(params, M, N, h, extra, write):
    h, s = h * 4096, (h + extra) * 4096
    terms = pdla_hybrid(params, M, N, h, M * h + N * s, write)
    assert float(terms.total_s) == pytest.approx(hybrid_cost(params, M, N, h, s, write), rel=1e-12)


@pytest.mark.parametrize("bad", [(12, 0, MIB), (12, 4, 0)])
def test_there_is_no_pair_without_sservers_or_bytes(bad):
    M, N, r = bad
    for solve in (pdla_by_corners, lambda *args: pdla_by_scan(*args, 4096)):
        with pytest.raises(ValueError, match="no pair"):
            solve(PARAMS, M, N, r, False)


cycles = st.lists(st.tuples(st.booleans(), st.integers(1, 16).map(lambda n: n * 512)), min_size=1, max_size=6)
requests = st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**5), st.booleans()), min_size=1, max_size=20)


@settings(max_examples=60)
@given(params_any, cycles, requests)
def test_the_parts_of_a_price_add_up_to_it(params, pairs, rows):
    offset, size, write = (np.array(column) for column in zip(*rows, strict=True))
    cycle = Cycle.of(pairs)
    terms, ssd_decides = request_terms(params, cycle, offset, size, write)
    expected = request_cost(params, cycle, offset, size, write)
    assert terms.total_s == pytest.approx(expected, rel=1e-12, abs=1e-300)
    if not any(cycle.ssd):
        assert not ssd_decides.any()
