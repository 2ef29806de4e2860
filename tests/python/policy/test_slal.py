"""SLAL against its paper: the stripes there, its balance, its first figure, and what the five steps promise."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from stripewise.cluster import read_cluster
from stripewise.errors import ClusterError, PlanError, UsageError
from stripewise.model.segment import imbalance, server_loads
from stripewise.policy import PlanOptions, policy_named
from stripewise.policy.toolkit.regions import build_regions
from stripewise.policy.toolkit.segments import chunk_means
from stripewise.workload import Workload
from support import KIB, MIB, cluster, file_of

CHUNK = 64 * MIB
#: The golden set of cost-models section 3: startup uniform on 1..61 ms, 100 MB/s.
T_MIN_S, T_MAX_S, PER_BYTE_S = 0.001, 0.061, 1e-8
A_S = (T_MIN_S + T_MAX_S) / 2
SEQUENTIAL = [(1 * KIB, 0), (4 * KIB, 0), (64 * KIB, 0), (MIB, 0)]
STRIDED = [(1 * KIB, 3 * KIB), (4 * KIB, 12 * KIB), (64 * KIB, 64 * KIB), (MIB, MIB)]


def spread_cluster(n: int = 8):
    """n hard disks with the golden figures."""
    targets = tuple(
        dataclasses.replace(
            target,
            startup_read_s=A_S,
            startup_write_s=A_S,
            startup_read_spread_s=T_MAX_S - T_MIN_S,
            startup_write_spread_s=T_MAX_S - T_MIN_S,
        )
        for target in cluster(n, 0).targets
    )
    return dataclasses.replace(cluster(n, 0), targets=targets)


def pattern(segments, chunks: int = 1) -> Workload:
    """One file; segment i holds `chunks` chunks of requests <request, gap>."""
    offsets, sizes = [], []
    for number, (request, gap) in enumerate(segments):
        at = np.arange(0, chunks * CHUNK, request + gap) + number * chunks * CHUNK
        offsets.append(at)
        sizes.append(np.full(len(at), request))
    return Workload((file_of(np.concatenate(offsets), np.concatenate(sizes), size_bytes=4 * chunks * CHUNK),), 16)


def layout(plan) -> list[tuple[int, int]]:
    """The paper's list <offset, stripe> of a plan's first file."""
    return [(r.start, r.stripes[0][1]) for r in plan.files[0].regions if r.start < plan.files[0].size]


def test_sequential_requests_get_the_papers_stripes():
    plan = policy_named("slal").plan(pattern(SEQUENTIAL), spread_cluster(), PlanOptions())
    assert layout(plan) == [(0, 4 * KIB), (CHUNK, 16 * KIB), (2 * CHUNK, 64 * KIB), (3 * CHUNK, MIB)]


def test_strided_requests_get_the_papers_balanced_stripes():
    plan = policy_named("slal").plan(pattern(STRIDED), spread_cluster(), PlanOptions())
    assert layout(plan) == [(0, 4 * KIB), (CHUNK, 16 * KIB), (2 * CHUNK, 128 * KIB), (3 * CHUNK, 2 * MIB)]
    table = build_regions(pattern(STRIDED), CHUNK)
    assert all(sigma(table, chunk, stripe) <= 0.20 for chunk, (_, stripe) in enumerate(layout(plan)))


@pytest.mark.parametrize("stripe_kib", [4, 16, 64, 256, 1024])
def test_every_fixed_stripe_leaves_a_strided_segment_out_of_balance(stripe_kib):
    table = build_regions(pattern(STRIDED), CHUNK)
    assert max(sigma(table, chunk, stripe_kib * KIB) for chunk in range(4)) >= 1


def sigma(table, chunk: int, stripe_bytes: int, n: int = 8) -> float:
    rows = slice(int(table.first[chunk]), int(table.first[chunk + 1]))
    return imbalance(
        server_loads(table.offset[rows], table.size[rows], table.count[rows], stripe_bytes, n, A_S, PER_BYTE_S)
    )


@pytest.mark.parametrize(("stripe_kib", "servers"), [(4, 1), (8, 2), (1, 4), (16, 4)])
def test_figure_1_of_the_paper_4_servers_requests_of_4_kib_with_gaps_of_12(stripe_kib, servers):
    # "if the stripe size is 4 KB or 8 KB, the data accesses fall only into 1 or 2 I/O servers"; 1 or 16 KB hit all.
    offset = np.arange(0, MIB, 16 * KIB)
    size, count = np.full(len(offset), 4 * KIB), np.ones(len(offset), dtype=np.int64)
    loads = server_loads(offset, size, count, stripe_kib * KIB, 4, A_S, PER_BYTE_S)
    assert (loads > 0).sum() == servers
    assert imbalance(loads[loads > 0]) == pytest.approx(0)


def test_figure_1_is_balanced_by_a_plan_on_4_servers():
    offsets = np.arange(0, CHUNK, 16 * KIB)
    workload = Workload((file_of(offsets, np.full(len(offsets), 4 * KIB), size_bytes=CHUNK),), 16)
    plan = policy_named("slal").plan(workload, spread_cluster(4), PlanOptions())
    assert layout(plan) == [(0, 16 * KIB)]


def test_neighbours_with_equal_stripes_are_merged_and_begin_on_the_first_server():
    plan = policy_named("slal").plan(pattern(STRIDED, chunks=2), spread_cluster(3), PlanOptions())
    regions = [r for r in plan.files[0].regions if r.start < plan.files[0].size]
    assert len(regions) == 4 and all(r.len == 2 * CHUNK for r in regions)
    assert all([name for name, _ in r.stripes] == ["hdd0", "hdd1", "hdd2"] for r in regions)
    assert all("sigma" in r.reason and "on average" in r.reason for r in regions)


def test_a_request_counts_where_it_starts_for_the_mean_and_is_cut_for_the_loads():
    workload = Workload((file_of([CHUNK - 4 * KIB, CHUNK], [MIB, 4 * KIB]),), 1)
    table = build_regions(workload, CHUNK)
    assert chunk_means(table, workload).size_bytes.tolist() == [MIB, 4 * KIB]
    assert table.size.tolist() == [4 * KIB, 4 * KIB, MIB - 4 * KIB]


def test_chunks_without_requests_do_not_break_a_segment():
    workload = Workload((file_of([3 * MIB, 6 * MIB], [MIB, MIB], size_bytes=9 * MIB),), 1)
    plan = policy_named("slal").plan(workload, spread_cluster(2), PlanOptions(region_bytes=MIB))
    assert len(layout(plan)) == 1


def test_without_a_spread_a_request_is_cut_over_all_servers():
    # T_max = T_min makes the slowest server as fast as any: eq. 3 then only shrinks with r/n (docs/formats.md).
    on = cluster(8, 0)
    plan = policy_named("slal").plan(pattern([(MIB, 0)] * 4), on, PlanOptions())
    assert layout(plan) == [(0, 128 * KIB)]


def test_the_threshold_decides_what_is_balanced():
    options = PlanOptions(sigma=1.0)
    plan = policy_named("slal").plan(pattern(STRIDED), spread_cluster(), options)
    assert layout(plan)[2:] == [(2 * CHUNK, 64 * KIB), (3 * CHUNK, MIB)]


def test_where_nothing_balances_the_optimal_stripe_stays_and_the_reason_says_so():
    workload = Workload((file_of([0] * 9, [4 * KIB] * 9, size_bytes=CHUNK),), 1)
    plan = policy_named("slal").plan(workload, spread_cluster(8), PlanOptions())
    assert layout(plan) == [(0, 16 * KIB)]
    assert "no stripe near it" in plan.files[0].regions[0].reason


@pytest.mark.parametrize(("servers", "names"), [("hdd", "hhh"), ("ssd", "ss"), ("all", "hhhss"), (None, "hhh")])
def test_the_servers_are_one_class_or_all_as_equals(servers, names):
    plan = policy_named("slal").plan(pattern(SEQUENTIAL), cluster(3, 2), PlanOptions(servers=servers))
    assert {"".join(name[0] for name, _ in r.stripes) for r in plan.files[0].regions[:-1]} == {names}


def test_a_class_without_targets_is_refused():
    with pytest.raises(PlanError, match="no active target for --servers ssd; use --servers hdd or all"):
        policy_named("slal").plan(pattern(SEQUENTIAL), cluster(3, 0), PlanOptions(servers="ssd"))


@pytest.mark.parametrize(("given", "said"), [({"sigma": -1.0}, "--sigma"), ({"servers": "fast"}, "--servers")])
def test_bad_options_name_their_flag(given, said):
    with pytest.raises(UsageError, match=said):
        PlanOptions(**given)


def test_a_merged_segment_never_overfills_what_its_chunks_would_fit():
    # 3 servers, chunks of 256 KiB: merged, the first server's share grows beyond the sum of rounded parts.
    targets = tuple(dataclasses.replace(t, capacity_bytes=MIB) for t in spread_cluster(3).targets)
    on = dataclasses.replace(spread_cluster(3), targets=targets)
    offsets = np.arange(0, 2 * MIB, 64 * KIB)
    workload = Workload((file_of(offsets, np.full(len(offsets), 64 * KIB)),), 4)
    plan = policy_named("slal").plan(workload, on, PlanOptions(region_bytes=256 * KIB))
    assert max(plan.target_bytes.values()) <= MIB


def test_a_spread_above_twice_the_mean_is_refused(tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text(
        '[[target]]\nname = "a"\nclass = "hdd"\npath = "a"\nstartup_read_s = 0.001\nstartup_write_s = 0.001\n'
        "per_byte_read_s = 1e-8\nper_byte_write_s = 1e-8\nstartup_read_spread_s = 0.003\n"
    )
    with pytest.raises(ClusterError, match="startup_read_spread_s"):
        read_cluster(path)
