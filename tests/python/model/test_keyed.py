"""Prices over many keys by the native module are the sums of the formulas' prices, request by request."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.cluster import Network
from stripewise.model import Cycle, parameters, request_cost, service_bound
from stripewise.model.figures import OpFigures
from stripewise.model.keyed import Keys, cheapest_pairs, group_requests, keyed_bound, keyed_costs
from stripewise.policy.toolkit.regions import build_regions
from support import KIB, MIB, clusters, workloads

networks = st.builds(Network, st.sampled_from([0, 2e-3]), st.sampled_from([0, 5e-8]), st.integers(1, 4))
widths = st.lists(st.integers(0, 5).map(lambda n: n * 4096), min_size=1, max_size=6).filter(any)


def keys_of(workload, region_bytes=256 * KIB) -> Keys | None:
    if not any((file.requests["size"] > 0).any() for file in workload.files):
        return None
    return build_regions(workload, region_bytes).keys


def per_region(keys: Keys, each) -> np.ndarray:
    owner = np.repeat(np.arange(keys.regions), np.diff(keys.first))
    return np.bincount(owner, weights=each * keys.count, minlength=keys.regions)


@settings(max_examples=60)
@given(clusters(), workloads(), widths, st.lists(st.booleans(), min_size=6, max_size=6))
def test_costs_of_regions_are_sums_of_request_costs(on, workload, width, ssd):
    keys = keys_of(workload)
    if keys is None:
        return
    params = parameters(on, workload.processes)
    pairs = list(zip(ssd, width, strict=False))
    each = request_cost(params, Cycle.of(pairs), keys.offset, keys.size, keys.write)
    assert keyed_costs(params, pairs, keys) == pytest.approx(per_region(keys, each), rel=1e-12, abs=1e-300)


@settings(max_examples=60)
@given(workloads(), widths, st.lists(st.sampled_from([0.001, 0.01]), min_size=6, max_size=6), st.none() | networks)
def test_demands_are_those_of_the_bound(workload, width, startup, network):
    keys = keys_of(workload)
    if keys is None:
        return
    servers = [(f"t{n}", OpFigures(startup[n], 1e-8), OpFigures(2 * startup[n], 3e-8)) for n in range(len(width))]
    cycle = Cycle.of([(False, w) for w in width])
    slow = service_bound(servers, cycle, keys.offset, keys.size, keys.write, keys.count, network)
    fast = keyed_bound(servers, width, keys, network)
    for name, value in vars(slow).items():
        asked = {server: seconds for server, seconds in value.items() if seconds} if isinstance(value, dict) else value
        found = getattr(fast, name)
        found = {server: seconds for server, seconds in found.items() if seconds} if isinstance(found, dict) else found
        assert found == pytest.approx(asked, rel=1e-12), name


@settings(max_examples=40)
@given(clusters(), workloads(), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_the_cheapest_pair_is_that_of_brute_force(on, workload, M, N, weighted):
    keys = keys_of(workload)
    if keys is None:
        return
    params = parameters(on, workload.processes)
    pairs = [(h * 4096, s * 4096) for h in range(4) for s in range(1, 5)]
    weight = [0.2 + 0.05 * n for n in range(len(pairs))] if weighted else []
    beside = np.arange(keys.regions) * 0.01 if weighted else np.zeros(0)
    chosen, cost = cheapest_pairs(params, M, N, pairs, keys, weight, beside)
    table = []
    for h, s in pairs:
        each = request_cost(params, Cycle.pair(M, N, h, s), keys.offset, keys.size, keys.write)
        table.append(per_region(keys, each))
    costs = np.array(table)
    here = costs[chosen, np.arange(keys.regions)]
    assert cost == pytest.approx(here, rel=1e-12, abs=1e-300)
    if weighted:
        share = np.array(weight)[:, None]
        costs = share * costs + (1 - share) * beside
        here = costs[chosen, np.arange(keys.regions)]
    assert here == pytest.approx(costs.min(axis=0), rel=1e-9, abs=1e-300)


def test_keys_of_some_regions_are_their_rows():
    keys = Keys(*(np.arange(6) for _ in range(2)), np.zeros(6, bool), np.ones(6, np.int64), np.array([0, 2, 2, 6]))
    some = keys.of(np.array([2, 0]))
    assert some.offset.tolist() == [2, 3, 4, 5, 0, 1] and some.first.tolist() == [0, 4, 6]


def test_requests_that_no_table_holds_are_one_clear_error():
    from stripewise.errors import StripewiseError

    with pytest.raises(StripewiseError, match="--region-size"):
        group_requests(np.array([0]), np.array([1 << 50]), np.array([True]), 4096)


def test_no_requests_are_no_pieces():
    nothing = np.zeros(0, dtype=np.int64)
    assert all(len(column) == 0 for column in group_requests(nothing, nothing, nothing.astype(bool), MIB))
