"""The policy `best` where requests of very different sizes begin at the same places: heads, and the bound for them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.cluster import Network
from stripewise.plan import Plan
from stripewise.plan.check import check_plan
from stripewise.policy import PlanOptions, plan_by, policy_named
from stripewise.policy.best.best import _Search
from stripewise.policy.best.regions.cuts import Cuts, whole_regions
from stripewise.policy.best.regions.heads import (
    Head,
    cuts_between,
    heads_of,
    pairs,
    period_of_each,
    periods_of,
)
from stripewise.policy.best.regions.problem import pose
from stripewise.policy.best.tuning import HEADED_CHOICES_MAX
from stripewise.policy.toolkit.pricing import plan_bound
from stripewise.policy.toolkit.regions import RegionTable, build_regions
from stripewise.workload import Workload
from support import KIB, MIB, cluster, file_of, walk, workloads, zipf_workload

OPTIONS = PlanOptions(region_bytes=MIB, time_limit_s=15.0)


def nested(rng: np.random.Generator, regions: int, period: int, sizes: list[int], requests: int) -> Workload:
    """Requests of `sizes` drawn alike at multiples of `period`; the first regions are the hottest."""
    weight = 1 / np.arange(1, regions + 1) ** 0.8
    region = rng.choice(regions, requests, p=weight / weight.sum())
    offsets = region * MIB + rng.integers(0, MIB // period, requests) * period
    return Workload((file_of(offsets, rng.choice(sizes, requests), size_bytes=regions * MIB),), 64)


def alike(rng: np.random.Generator, regions: int, period: int, sizes: list[int]) -> Workload:
    """Every period of a region is asked for alike: so many requests of each size, read and written; and some more."""
    offsets, lengths, writes = [], [], []
    for region in range(regions):
        for size, write in product(sizes, (False, True)):
            for _ in range(int(rng.integers(0, 4))):
                starts = region * MIB + np.arange(0, MIB, period)
                offsets += starts.tolist()
                lengths += [size] * len(starts)
                writes += [write] * len(starts)
    # And a few that keep to nothing.
    for _ in range(int(rng.integers(1, 4))):
        lengths.append(int(rng.integers(1, 100)) * KIB)
        offsets.append(int(rng.integers(0, regions * MIB - lengths[-1])))
        writes.append(bool(rng.random() < 0.5))
    return Workload((file_of(offsets, lengths, writes, size_bytes=regions * MIB),), int(rng.integers(1, 40)))


# What is seen --------------------------------------------------------------------------------------------------------


def test_the_period_is_where_most_requests_of_unlike_sizes_begin():
    rng = np.random.default_rng(1)
    table = build_regions(nested(rng, 30, 256 * KIB, [4 * KIB, 64 * KIB, 256 * KIB], 2000), MIB)
    assert periods_of(table) == (256 * KIB,)
    assert (period_of_each(table, (256 * KIB,)) == 256 * KIB).all()
    assert heads_of(table, (256 * KIB,)) == [Head(256 * KIB, 4 * KIB), Head(256 * KIB, 64 * KIB)]
    # A header of each record: what is longer than a record's largest request is the period too.
    spaced = build_regions(nested(rng, 30, 256 * KIB, [4 * KIB, 64 * KIB], 2000), MIB)
    assert periods_of(spaced) == (256 * KIB,)


def test_odd_requests_do_not_hide_a_period_but_a_region_of_them_has_none():
    workload = nested(np.random.default_rng(2), 30, 128 * KIB, [4 * KIB, 128 * KIB], 2000)
    odd = file_of([28 * MIB + 5000, *(29 * MIB + 5000 * n for n in range(1, 9))], [3 * KIB] * 9)
    requests = np.concatenate([workload.files[0].requests, odd.requests])
    table = build_regions(replace(workload, files=(replace(workload.files[0], requests=requests),)), MIB)
    assert periods_of(table) == (128 * KIB,)
    assert period_of_each(table, (128 * KIB,))[27:].tolist() == [128 * KIB, 128 * KIB, 0]


def test_two_files_of_unlike_records_have_two_periods():
    rng = np.random.default_rng(3)
    first = nested(rng, 10, 64 * KIB, [4 * KIB, 64 * KIB], 2000).files[0]
    second = nested(rng, 10, 512 * KIB, [4 * KIB, 512 * KIB], 1000).files[0]
    table = build_regions(Workload((first, replace(second, path="/data/g")), 8), MIB)
    assert set(periods_of(table)) == {64 * KIB, 512 * KIB}


@settings(max_examples=40)
@given(workloads())
def test_cuts_between_periods_are_cuts_and_lose_nothing(workload):
    if not any(file.requests["size"].any() for file in workload.files):
        return
    table = build_regions(workload, MIB)
    rng = np.random.default_rng(len(workload.files[0].requests))
    inner = [0, *sorted(rng.choice(np.arange(1, 16), 3, replace=False) * 64 * KIB)]
    edges = np.array([*inner, MIB])
    cuts = Cuts(
        np.repeat(np.arange(table.regions), 4),
        np.tile(edges[:-1], table.regions),
        np.tile(np.diff(edges), table.regions),
    )
    kept = cuts_between(cuts, np.where(np.arange(table.regions) % 2, 256 * KIB, 0))
    assert int(kept.length.sum()) == int(cuts.length.sum())
    assert (kept.start[kept.region % 2 == 1] % (256 * KIB) == 0).all()
    assert (np.bincount(kept.region)[::2] == 4).all()


def test_requests_of_one_size_or_of_any_place_have_no_period():
    assert periods_of(build_regions(zipf_workload(40, 2000), MIB)) == ()
    rng = np.random.default_rng(4)
    offsets = rng.integers(0, 40 * MIB // 4096, 3000) * 4096
    anywhere = Workload((file_of(offsets, rng.choice([4 * KIB, 256 * KIB], 3000)),), 8)
    assert periods_of(build_regions(anywhere, MIB)) == ()
    # A sequence of large ones with small ones in between, back to back.
    sizes = np.tile([64 * KIB, 4 * KIB], 400)
    assert periods_of(build_regions(Workload((file_of(np.cumsum(sizes) - sizes, sizes),), 8), MIB)) == ()


def test_every_tail_keeps_a_head_however_many_servers_there_are():
    for hdds, ssds, widths in ((12, 4, 6), (48, 16, 6), (2, 30, 6), (60, 4, 1)):
        found = pairs(cluster(hdds, ssds), widths)
        assert {tail for _, (tail,) in found} == set(range(hdds)) and len(set(found)) == len(found)
        assert len(found) * widths <= max(HEADED_CHOICES_MAX, hdds * widths)
    assert pairs(cluster(61, 4), 2) == pairs(cluster(4, 0), 2) == pairs(cluster(0, 4), 2) == []


# What it costs -------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(workloads(), st.integers(1, 20), st.integers(1, 40), st.integers(1, 4))
def test_sums_of_heads_and_tails_are_those_of_the_bytes(workload, width, more, parts):
    if not any(file.requests["size"].any() for file in workload.files):
        return
    table = build_regions(workload, MIB)
    head = Head((width + more) * 4096, width * 4096)
    found = head.features(table, parts)
    stripes = list(head.stripes("head", [f"tail{number}" for number in range(parts)], MIB))
    assert sum(each for _, each in stripes) == head.period
    for region in range(table.regions):
        wanted = np.zeros(8)
        for row in range(int(table.first[region]), int(table.first[region + 1])):
            operation, count = int(table.write[row]), int(table.count[row])
            for name, served in walk(stripes, int(table.offset[row]), int(table.size[row])).items():
                column = 4 * (name != "head") + operation
                wanted[column] += count
                wanted[column + 2] += count * served
        assert found[region].tolist() == wanted.tolist()


@pytest.mark.parametrize("network", [Network(), Network(1e-4, 8e-9, 8)])
def test_the_solver_s_loads_of_heads_are_those_of_their_stripes(network):
    workload = nested(np.random.default_rng(5), 12, 256 * KIB, [4 * KIB, 64 * KIB, 256 * KIB], 600)
    search = _Search(workload, replace(cluster(3, 2), network=network), OPTIONS)
    ground = search._ground(whole_regions(search.whole), search.periods)
    posed = pose(ground, float(search.processes))
    table = ground.windows[0]
    assert table is not None
    headed = [number for number, team in enumerate(posed.teams) if team.head]
    assert len(headed) == 12
    for choice in headed:
        loads = np.zeros(posed.problem.resources)
        made = posed.problem.choices[choice]
        for resource, seconds in made.entries:
            loads[resource] += float(posed.problem.features[0, :, made.shape].sum(axis=0) @ seconds)
        placed = [posed.stripes(piece, choice) for piece in range(ground.cuts.pieces)]
        bound = plan_bound(table, ground.cluster, placed)
        busy = [bound.demand_s.get(target.name, 0.0) for target in ground.cluster.active]
        assert loads[:5] == pytest.approx(busy)
        limits = bound.limits_s(search.processes)
        # The requests' own time is taken a little long: tail and head overlap, and so do network and service.
        assert 1 - 1e-9 <= loads[5] / limits["concurrency"] < (1.15 if network.establish_s else 1.05)
        assert max(loads[6:], default=0.0) == pytest.approx(
            max(seconds for name, seconds in limits.items() if name not in ("servers", "concurrency"))
        )


# The policy ----------------------------------------------------------------------------------------------------------


def _server_at(plan: Plan, byte: int) -> str:
    """The server of a byte of the plan's only file."""
    region = next(each for each in plan.files[0].regions if each.start <= byte < each.start + each.len)
    at = (byte - region.start) % sum(width for _, width in region.stripes)
    for name, width in region.stripes:
        if at < width:
            return name
        at -= width
    raise AssertionError("a cycle is as long as its stripes")


def test_heads_lie_on_ssds_where_these_have_room_for_little_more():
    # Room for a sixteenth of the data; two thirds of the requests want 4 KiB of every MiB.
    rng = np.random.default_rng(7)
    regions = 96
    offsets = rng.integers(0, regions, 6000) * MIB
    workload = Workload((file_of(offsets, rng.choice([4 * KIB, 4 * KIB, MIB], 6000), size_bytes=regions * MIB),), 64)
    on = cluster(4, 2, 3 * MIB)
    plan = policy_named("best").plan(workload, on, OPTIONS)
    # As cycles of two servers, or as regions of their own.
    heads = [_server_at(plan, number * MIB).startswith("ssd") for number in range(regions)]
    tails = [
        _server_at(plan, number * MIB + at).startswith("hdd") for number in range(regions) for at in (4 * KIB, MIB - 1)
    ]
    assert sum(heads) > 60 and sum(tails) > 0.9 * len(tails)
    assert check_plan(plan, on, "plan.json") == []
    assert plan.expected.gap <= 0.05
    ssds = {name: held for name, held in plan.bytes_per_target().items() if name.startswith("ssd")}
    assert max(ssds.values()) <= 3 * MIB
    # Whole regions alone would leave the small requests on the HDDs.
    others = [
        policy_named(name).plan(workload, on, OPTIONS).expected.bound_s for name in ("def", "psa", "h2dp", "padp")
    ]
    assert plan.expected.bound_s < 0.6 * min(others)


def test_heads_follow_a_hot_set_from_window_to_window():
    rng = np.random.default_rng(8)
    halves = [rng.integers(0, 24, 4000), rng.integers(24, 48, 4000)]
    offsets = np.concatenate(halves) * MIB
    sizes = rng.choice([64 * KIB, 64 * KIB, MIB], 8000)
    workload = Workload((file_of(offsets, sizes, size_bytes=48 * MIB),), 64)
    options = replace(OPTIONS, window_ns=4_000_000)
    search = _Search(workload, cluster(3, 1, 2 * MIB), options)
    proven, found, _, _ = search._search()
    moves = found[0].plan.migrations[0].moves
    assert any("first 64.0 KiB of every 1.0 MiB" in move.reason for move in moves if move.direction == "in")
    static = replace(search.options, window_ns=None)
    still = _Search(workload, cluster(3, 1, 2 * MIB), static)
    assert proven.seconds < found[0].bound_s < still._search()[0].seconds


def test_a_handful_of_nested_regions_is_solved_with_heads_among_the_choices():
    # One SSD that holds a quarter of one region's bytes.
    sizes = [16 * KIB] * 60 + [MIB] * 12
    workload = Workload((file_of([0, MIB] * 36, sizes, size_bytes=2 * MIB),), 16)
    search = _Search(workload, cluster(1, 1, 256 * KIB), OPTIONS)
    proven, found, by_heat, _ = search._search()
    found = [*found, *search._exactly(by_heat)]
    assert proven.seconds <= min(candidate.bound_s for candidate in found)
    reasons = [region.reason for candidate in found for region in candidate.plan.files[0].regions]
    assert any("first 16.0 KiB of every" in reason for reason in reasons)


def test_with_few_processes_several_hdds_share_the_tails():
    # Alone, a request of 1 MiB takes half as long where two disks serve it.
    rng = np.random.default_rng(9)
    offsets = rng.integers(0, 64, 600) * MIB
    workload = Workload((file_of(offsets, rng.choice([4 * KIB, 4 * KIB, MIB], 600), size_bytes=64 * MIB),), 1)
    options = replace(OPTIONS, region_bytes=16 * MIB)
    plan = plan_by(policy_named("best"), workload, cluster(2, 1, 4 * MIB), options)
    assert any({"hdd0", "hdd1"} <= {name for name, _ in region.stripes} for region in plan.files[0].regions[:-1])
    assert plan.expected.simulated_s < 0.7 * plan.expected.simulated_def_s


def test_tables_without_nested_sizes_are_priced_as_they_were():
    table = build_regions(zipf_workload(20, 500), MIB)
    assert isinstance(table, RegionTable)
    search = _Search(zipf_workload(20, 500), cluster(4, 2), OPTIONS)
    ground = search._ground(whole_regions(search.whole), search.periods)
    assert ground.periods == () and ground.headed == []
    assert all(team.head is None for team in pose(ground, 8.0).teams)
