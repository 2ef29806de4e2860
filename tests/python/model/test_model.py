"""The request cost: the paper's tables, the general case against them and against a walk, stripe by stripe."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.cluster import Network
from stripewise.model import (
    CostParameters,
    Cycle,
    DeviceFigures,
    OpFigures,
    bytes_on_servers,
    hservers_cost,
    hybrid_cost,
    parameters,
    request_cost,
    service_bound,
)
from support import KIB, cluster, walk

figures = st.builds(OpFigures, st.floats(0, 0.1), st.floats(0, 1e-6))
devices = st.builds(DeviceFigures, figures, figures)
params_any = st.builds(
    CostParameters, st.integers(1, 64), st.integers(1, 16), st.floats(0, 1e-3), st.floats(0, 1e-7), devices, devices
)
PARAMS = parameters(cluster(4, 2), 8)


def one(params, cycle, offset, size, write=False) -> float:
    return float(request_cost(params, cycle, np.array([offset]), np.array([size]), np.array([write]))[0])


def test_table_2_read_on_hybrid_servers_by_hand():
    # Seed 000, Table 2, p <= c(M+N): c(m+n)e + max(crt, pst) + p*max(alpha_h + h*beta_h, alpha_sr + s*beta_sr).
    params = CostParameters(
        4, 2, 1e-3, 1e-8, DeviceFigures(OpFigures(0.003, 1e-8), OpFigures(0.004, 2e-8)),
        DeviceFigures(OpFigures(0.0001, 2.5e-9), OpFigures(0.0002, 5e-9)),
    )  # fmt: skip
    r = 2 * 65536 + 2 * 131072
    read = 2 * 4 * 1e-3 + max(2 * r * 1e-8, 4 * 131072 * 1e-8) + 4 * (0.003 + 65536e-8)
    write = 2 * 4 * 1e-3 + max(2 * r * 1e-8, 4 * 131072 * 1e-8) + 4 * (0.004 + 2 * 65536e-8)
    assert hybrid_cost(params, 2, 2, 65536, 131072, False) == pytest.approx(read, rel=1e-14)
    assert hybrid_cost(params, 2, 2, 65536, 131072, True) == pytest.approx(write, rel=1e-14)


def test_table_3_on_hservers_by_hand():
    # Seed 000, Table 3, p > cm: pe + max(crt, prt/m) + p*alpha_h + p*h*beta_h.
    params = CostParameters(
        16, 1, 1e-4, 1e-8, DeviceFigures(OpFigures(0.003, 1e-8), OpFigures(0.003, 1e-8)), PARAMS.ssd
    )
    r = 262144
    assert hservers_cost(params, 4, r, False) == pytest.approx(
        16 * 1e-4 + max(r * 1e-8, 16 * r * 1e-8 / 4) + 16 * 0.003 + 16 * 65536e-8, rel=1e-14
    )


def test_the_demo_request_costs_what_the_devices_say():
    # 256 KiB over 4 HDDs: 8 * (3 ms + 64 KiB at 100 MB/s); over 2 SSDs: 8 * (0.1 ms + 128 KiB at 400 MB/s).
    assert one(PARAMS, Cycle.pair(4, 0, 64 * KIB, 0), 0, 256 * KIB) == pytest.approx(8 * (0.003 + 65536e-8))
    assert one(PARAMS, Cycle.pair(4, 2, 0, 128 * KIB), 0, 256 * KIB) == pytest.approx(8 * (0.0001 + 131072 * 2.5e-9))


@given(params_any, st.integers(1, 12), st.integers(1, 6), st.integers(1, 64), st.integers(1, 64), st.booleans())
def test_an_aligned_request_costs_table_2_to_the_letter(params, M, N, h, s, write):
    h, s = h * 4096, s * 4096
    r = M * h + N * s
    for repetition in (0, 1, 7):
        general = one(params, Cycle.pair(M, N, h, s), repetition * r, r, write)
        assert general == hybrid_cost(params, M, N, h, s, write)


@given(params_any, st.integers(1, 12), st.integers(1, 64), st.booleans())
def test_an_aligned_request_on_hservers_costs_table_3(params, M, h, write):
    r = M * h * 4096
    general = one(params, Cycle.pair(M, 0, h * 4096, 0), 3 * r, r, write)
    assert general == pytest.approx(hservers_cost(params, M, r, write), rel=1e-12)


def test_an_idle_class_drops_out_of_the_connections_too():
    # Decision in cost-models section 1: at h = 0 only the N SServers are contacted.
    params = parameters(cluster(4, 2, network=Network(1e-3, 0.0, 8)), 8)
    only_ssd = one(params, Cycle.pair(4, 2, 0, 128 * KIB), 0, 256 * KIB)
    assert only_ssd == pytest.approx(8 * 2 * 1e-3 + 8 * (0.0001 + 131072 * 2.5e-9))


cycles = st.lists(st.tuples(st.booleans(), st.integers(1, 16).map(lambda n: n * 512)), min_size=1, max_size=6)


@given(cycles, st.integers(0, 200_000), st.integers(1, 100_000))
def test_bytes_per_server_are_those_of_a_walk(pairs, offset, size):
    served = bytes_on_servers(Cycle.of(pairs), np.array([offset]), np.array([size]))
    slow = walk([(str(i), width) for i, (_, width) in enumerate(pairs)], offset, size)
    assert [int(share[0]) for share in served] == [slow.get(str(i), 0) for i in range(len(pairs))]


@given(params_any, cycles, st.integers(0, 200_000), st.integers(1, 100_000), st.booleans())
def test_the_general_case_prices_what_the_walk_finds(params, pairs, offset, size, write):
    slow = walk([(str(i), width) for i, (_, width) in enumerate(pairs)], offset, size)
    h_eff = max((slow.get(str(i), 0) for i, (ssd, _) in enumerate(pairs) if not ssd), default=0)
    s_eff = max((slow.get(str(i), 0) for i, (ssd, _) in enumerate(pairs) if ssd), default=0)
    hdd = params.hdd.write if write else params.hdd.read
    ssd = params.ssd.write if write else params.ssd.read
    p, c = params.p, params.c
    expected = (
        max(c * len(slow), p) * params.e
        + max(c * size * params.t, p * max(h_eff, s_eff) * params.t)
        + p * max(
            hdd.startup_s + h_eff * hdd.per_byte_s if h_eff else 0.0,
            ssd.startup_s + s_eff * ssd.per_byte_s if s_eff else 0.0,
        )
    )  # fmt: skip
    assert one(params, Cycle.of(pairs), offset, size, write) == pytest.approx(expected, rel=1e-12, abs=1e-300)


rows = st.lists(
    st.tuples(st.integers(0, 64).map(lambda n: n * 4096), st.integers(1, 40) | st.just(65536), st.booleans()),
    min_size=1,
    max_size=80,
)


@given(params_any, cycles, rows)
def test_pricing_distinct_keys_modulo_the_cycle_is_exact(params, pairs, requests):
    offset, size, write = (np.array(column) for column in zip(*requests, strict=True))
    cycle = Cycle.of(pairs)
    brute = np.array([one(params, cycle, o, n, w) for o, n, w in requests])
    rows = np.stack([offset % int(cycle.length), size, write], axis=1)
    keys, key = np.unique(rows, axis=0, return_inverse=True)
    assert (request_cost(params, cycle, keys[:, 0], keys[:, 1], keys[:, 2] > 0)[key.reshape(-1)] == brute).all()


@settings(max_examples=30)
@given(params_any, st.integers(1, 4), st.integers(1, 3), rows)
def test_many_candidates_at_once_cost_what_each_costs_alone(params, M, N, requests):
    offset, size, write = (np.array(column) for column in zip(*requests, strict=True))
    pairs = [(0, 4096), (4096, 8192), (8192, 4096)]
    widths = np.array([[h] * M + [s] * N for h, s in pairs])
    together = request_cost(params, Cycle(widths, (False,) * M + (True,) * N), offset, size, write)
    for number, (h, s) in enumerate(pairs):
        assert (together[number] == request_cost(params, Cycle.pair(M, N, h, s), offset, size, write)).all()


def test_the_bound_is_the_busiest_server_or_the_concurrency():
    # Cost-models section 7: L_i = K_i*a_i + S_i*b_i; makespan >= max(max L_i, sum T_j / p).
    slow, fast = OpFigures(0.01, 1e-6), OpFigures(0.001, 1e-6)
    bound = service_bound(
        [("a", slow, slow), ("b", fast, fast)], Cycle.of([(False, 1000), (False, 1000)]),
        np.array([0, 500]), np.array([1000, 1000]), np.array([False, True]), np.array([3, 2]),
    )  # fmt: skip
    assert bound.demand_s["a"] == pytest.approx(3 * (0.01 + 1e-3) + 2 * (0.01 + 5e-4))
    assert bound.demand_s["b"] == pytest.approx(2 * (0.001 + 5e-4))
    assert bound.makespan_s(8) == pytest.approx(bound.demand_s["a"])
    assert bound.makespan_s(1) == pytest.approx(3 * 0.011 + 2 * 0.0105)
