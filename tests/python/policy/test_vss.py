"""Regions and varied-size striping: the cut, the grid of Algorithm 1, the grouped search against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.errors import PlanError, WorkloadError
from stripewise.model import Cycle, parameters, request_cost
from stripewise.policy.toolkit.regions import build_regions
from stripewise.policy.toolkit.vss import STEPS_MAX, grid, search_pairs
from stripewise.workload import Workload
from support import KIB, MIB, cluster, file_of, workloads, zipf_workload


@given(workloads())
def test_cutting_at_region_borders_keeps_every_byte_in_its_region(workload):
    if not any((file.requests["size"] > 0).any() for file in workload.files):
        return
    table = build_regions(workload, 256 * KIB)
    total = sum(int(file.requests["size"].sum()) for file in workload.files)
    assert int((table.size * table.count).sum()) == total
    assert (table.offset >= 0).all() and (table.offset + table.size <= 256 * KIB).all()
    sizes = {i: int(table.valid_bytes[table.file == i].sum()) for i in range(len(workload.files))}
    for index, file in enumerate(workload.files):
        end = max([file.size_bytes, *(int(r["offset"] + r["size"]) for r in file.requests if r["size"])])
        assert sizes[index] == end


def test_a_request_over_three_regions_is_split_at_both_borders():
    table = build_regions(Workload((file_of([MIB - 4096], [2 * MIB]),), 1), MIB)
    rows = list(zip(table.offset.tolist(), table.size.tolist(), strict=True))
    assert rows == [(MIB - 4096, 4096), (0, MIB), (0, MIB - 4096)]


def test_a_request_past_the_largest_file_is_named():
    with pytest.raises(WorkloadError, match=r"request 1 of /data/f .*2\^62"):
        build_regions(Workload((file_of([0, 2**62], [1, 4096]),), 1), MIB)


def test_a_sparse_file_of_too_many_regions_asks_for_larger_ones():
    with pytest.raises(PlanError, match="--region-size"):
        build_regions(Workload((file_of([2**50], [4096]),), 1), MIB)


def test_the_grid_of_algorithm_1():
    # Seed 000, Algorithm 1: h = 0, step, .. <= r/(m+n); s = h + step, .. <= r/n. Here r = 32 KiB, m = n = 2.
    pairs = [(h // KIB, s // KIB) for h, s in grid(32 * KIB, 2, 2, 4096)]
    assert pairs == [(0, 4), (0, 8), (0, 12), (0, 16), (4, 8), (4, 12), (4, 16), (8, 12), (8, 16)]


def test_an_empty_grid_leaves_ssds_only_with_one_rounded_stripe():
    assert grid(4 * KIB, 4, 2, 4096) == [(0, 4096)]
    assert grid(100, 0, 3, 4096) == [(0, 4096)]
    assert grid(64 * KIB, 4, 0, 4096) == []


def test_the_grid_stays_bounded_for_huge_requests():
    assert len(grid(1 << 30, 1, 1, 4096)) <= 2 * STEPS_MAX * STEPS_MAX


def _brute(table, params, M, N, region):
    part = slice(int(table.first[region]), int(table.first[region + 1]))
    best = (np.inf, 0, 0)
    for h, s in grid(int(table.request_bytes[region]), M, N, 4096):
        cost = 0.0
        for o, n, w, k in zip(table.offset[part], table.size[part], table.write[part], table.count[part], strict=True):
            each = request_cost(params, Cycle.pair(M, N, h, s), np.array([o]), np.array([n]), np.array([w]))[0]
            for _ in range(int(k)):
                cost += each
        if cost < best[0] * (1 - 1e-12):
            best = (cost, h, s)
    return best


@settings(max_examples=20)
@given(
    st.integers(0, 3), st.integers(1, 3), st.integers(1, 9),
    st.lists(
        st.tuples(st.integers(0, 60).map(lambda n: n * 1024), st.sampled_from([512, 4096, 16384]), st.booleans()),
        min_size=1, max_size=15,
    ),
)  # fmt: skip
def test_the_grouped_search_finds_what_brute_force_finds(M, N, p, requests):
    offsets, sizes, writes = zip(*(r for r in requests for _ in range(2)), strict=True)
    table = build_regions(Workload((file_of(offsets, sizes, writes),), p), 16 * KIB)
    params = parameters(cluster(M, N), p)
    pairs = search_pairs(table, params, M, N, 4096)
    for region in np.flatnonzero(table.request_bytes).tolist():
        cost, _, _ = _brute(table, params, M, N, region)
        assert pairs.cost_s[region] == pytest.approx(cost, rel=1e-9)


def test_regions_with_the_same_requests_get_the_same_pair():
    offsets = [region * MIB + piece * 256 * KIB for region in range(6) for piece in range(4)]
    table = build_regions(Workload((file_of(offsets, 256 * KIB),), 8), MIB)
    pairs = search_pairs(table, parameters(cluster(4, 2), 8), 4, 2, 4096)
    assert len({(int(h), int(s), float(c)) for h, s, c in zip(pairs.h, pairs.s, pairs.cost_s, strict=True)}) == 1


def test_fast_ssds_take_small_requests_alone():
    # 3 ms of an HDD's startup is more than 256 KiB on two SSDs take: h = 0, s = r/N.
    table = build_regions(zipf_workload(16, 200), MIB)
    pairs = search_pairs(table, parameters(cluster(4, 2), 8), 4, 2, 4096)
    touched = table.request_bytes > 0
    assert set(pairs.h[touched].tolist()) == {0} and set(pairs.s[touched].tolist()) == {128 * KIB}


def test_large_requests_use_both_classes_so_that_they_end_together():
    # 64 MiB on 4 HDDs (100 MB/s), 2 SSDs (400 MB/s): startups hardly count, an SSD takes some four HDDs' share.
    table = build_regions(Workload((file_of([0], 64 * MIB),), 1), 64 * MIB)
    pairs = search_pairs(table, parameters(cluster(4, 2), 1), 4, 2, 4096)
    assert 3.5 < pairs.s[0] / pairs.h[0] < 5
