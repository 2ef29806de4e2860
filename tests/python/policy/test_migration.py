"""H2DP over time windows: Algorithm 2 by hand, what holds for any workload, and odd traces."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.errors import PlanError, UsageError, WorkloadError
from stripewise.model import parameters
from stripewise.plan import dump_plan
from stripewise.plan.check import check_plan
from stripewise.plan.region_table import RegionKey, RegionMappingTable
from stripewise.plan.summary import summary_of, windows_text
from stripewise.policy import PlanOptions, policy_named
from stripewise.policy.toolkit.copying import CopyPrices
from stripewise.policy.toolkit.pricing import region_costs
from stripewise.policy.toolkit.regions import window_tables
from stripewise.units import round_up
from stripewise.workload import Workload
from support import KIB, MIB, cluster, clusters, file_of, walk, workloads

A, B, C, D = range(4)
#: Two regions of 1 MiB fit on the SSD (16 KiB are for the file system).
ON = cluster(2, 1, 2 * MIB + 64 * KIB)
#: Seconds of a 64 KiB request on the SSD and on both HDDs with stripe r/M = 32 KiB.
ON_SSD_S, ON_HDD_S = 0.0001 + 65536 * 2.5e-9, 0.003 + 32768 * 1e-8
#: Copying a region from the HDDs to the SSD, or back: 512 KiB from each HDD, 1 MiB from the SSD.
COPY_S = (0.003 + 524288 * 1e-8) + (0.0001 + 1048576 * 2.5e-9)


def touching(windows: list[dict[int, int]]) -> Workload:
    """One process; window i of 1 s has so many aligned requests of 64 KiB on each of four regions."""
    offsets, start = [], []
    for number, counts in enumerate(windows):
        here = [region * MIB + i % 16 * 64 * KIB for region, count in counts.items() for i in range(count)]
        offsets += here
        start += [number * 10**9 + i for i in range(len(here))]
    file = file_of(offsets, [64 * KIB] * len(offsets), size_bytes=4 * MIB)
    file.requests["start_ns"] = start
    file.requests["end_ns"] = file.requests["start_ns"] + 1
    return Workload((file,), 1)


def planned(workload, on=ON, **options):
    options = {"region_bytes": MIB, "window_ns": 10**9, **options}
    return policy_named("h2dp").plan(workload, on, PlanOptions(**options))


def moves_of(plan) -> list[list[tuple[str, int]]]:
    return [[(move.direction, move.start // MIB) for move in migration.moves] for migration in plan.migrations]


GOLDEN = [{A: 10, B: 6, C: 2}, {B: 1, C: 8, D: 4}, {}, {D: 3}, {A: 1}]


class TestAlgorithm2ByHand:
    """Two places on the SSD, four regions, five windows: who moves follows from counts alone."""

    def test_moves_go_out_before_they_come_in_and_only_for_who_needs_the_place(self):
        assert moves_of(planned(touching(GOLDEN))) == [
            # C (8 requests) and D (4) are critical; A was not touched and goes first, then B with 1 request.
            [("out", A), ("out", B), ("in", C), ("in", D)],
            [],  # no request: everything stays
            [],  # D is touched, C is not but nobody needs its place
            # A needs a place: of C (last benefit 8 requests) and D (3) the lower leaves.
            [("out", D), ("in", A)],
        ]

    def test_gains_and_costs_are_the_models(self):
        first, last = (planned(touching(GOLDEN)).migrations[i].moves for i in (0, 3))
        b = ON_HDD_S - ON_SSD_S
        assert [move.gain_s for move in first] == pytest.approx([0, -b, 8 * b, 4 * b])
        assert [move.cost_s for move in (*first, *last)] == pytest.approx([COPY_S] * 6)
        assert last[1].gain_s == pytest.approx(b) and last[1].bytes == MIB

    def test_figures_per_window_count_requests_with_and_without_migration(self):
        figures = [window.figures for window in planned(touching(GOLDEN)).windows]
        assert [f.requests for f in figures] == [18, 13, 0, 3, 1]
        assert [f.hybrid_requests for f in figures] == [16, 12, 0, 3, 1]
        assert [f.hybrid_requests_static for f in figures] == [16, 1, 0, 0, 1]
        assert figures[1].cost_s == pytest.approx(12 * ON_SSD_S + ON_HDD_S)
        assert figures[1].cost_static_s == pytest.approx(ON_SSD_S + 12 * ON_HDD_S)

    def test_min_gain_makes_every_swap_pay_for_both_its_copies(self):
        # Worth of the place with factor 1, in requests saved plus or minus a copy (3.58 requests): B 1 + 3.58,
        # C 8 - 3.58, A 0 + 3.58, D 4 - 3.58. B and C have it; in the last window A's 1 request pays for nothing.
        assert moves_of(planned(touching(GOLDEN), min_gain=1.0)) == [[("out", A), ("in", C)], [], [], []]

    def test_a_factor_that_no_gain_reaches_moves_nothing(self):
        plan = planned(touching(GOLDEN), min_gain=1e6)
        assert moves_of(plan) == [[], [], [], []]
        assert all(window.figures.cost_s == window.figures.cost_static_s for window in plan.windows)

    def test_the_mapping_table_has_an_entry_per_region_and_per_move(self):
        plan = planned(touching(GOLDEN))
        rmt = RegionMappingTable(plan)
        assert len(rmt) == 5 + 6 and rmt.bytes == 128 * 11
        said = summary_of(plan)
        assert (said.table_entries, said.table_bytes) == (len(rmt), rmt.bytes)
        assert "windows: 5 of " in windows_text(
            said
        ) and "; 6 move(s) of a region between them, 6.0 MiB" in windows_text(said)
        on_ssd = [
            [g for g in range(4) if rmt.lookup(RegionKey("", 1, "/data/f", g, w))[0][0] == "ssd0"] for w in range(6)
        ]
        assert on_ssd == [[A, B], [C, D], [C, D], [C, D], [A, C], [A, C]]
        assert rmt.lookup(RegionKey("", 1, "/data/f", 99, 0)) == plan.files[0].regions[-1].stripes
        for key in (
            RegionKey("x", 1, "/data/f", 0, 0),
            RegionKey("", 1, "/g", 0, 0),
            RegionKey("", 1, "/data/f", 0, -1),
        ):
            with pytest.raises(PlanError):
                rmt.lookup(key)

    def test_layouts_of_windows_are_whole(self):
        plan = planned(touching(GOLDEN))
        assert plan.layout_in_window("/data/f", 0) == plan.files[0].layout
        later = plan.layout_in_window(plan.files[0], 1)
        assert [region.stripes[0][0] for region in later[:2]] == ["hdd0", "hdd1"]
        assert later[-1] == plan.files[0].layout[-1]
        assert plan.layout_in_window("/data/f", 99) == plan.layout_in_window("/data/f", 4)
        with pytest.raises(PlanError, match="'/data/g' is not in the plan"):
            plan.layout_in_window("/data/g", 0)


def narrowing(small: int) -> Workload:
    """One region: large requests in the first window, which want wide stripes, `small` requests in the second."""
    sizes = [512 * KIB] * 4 + [16 * KIB] * small
    file = file_of([0] * len(sizes), sizes, size_bytes=MIB)
    file.requests["start_ns"] = [0] * 4 + [10**9] * small
    return Workload((file,), 1)


def test_a_region_with_another_request_size_is_restriped_only_when_that_pays():
    # 16 KiB of one SSD's 256 KiB stripe cost 0.0205 ms more than 8 KiB of both; the copy there and back costs 2.82 ms.
    on = cluster(4, 2)
    assert moves_of(planned(narrowing(130), on)) == [[]]
    assert moves_of(planned(narrowing(150), on)) == [[("restripe", 0)]]
    assert moves_of(planned(narrowing(150), on, min_gain=2.0)) == [[]]
    move = planned(narrowing(150), on).migrations[0].moves[0]
    assert move.gain_s == pytest.approx(150 * 8192 * 2.5e-9)
    assert move.cost_s == pytest.approx(2 * (0.0001 + 524288 * 2.5e-9))


def test_a_restripe_that_has_no_room_for_both_copies_is_left_out():
    plan = planned(narrowing(150), cluster(4, 2, 768 * KIB))
    assert {name for name, _ in plan.files[0].regions[0].stripes} == {"ssd0", "ssd1"}
    assert moves_of(plan) == [[]]


def test_copies_are_priced_chunk_by_chunk_on_the_old_and_the_new_home():
    on = cluster(2, 1)
    prices = CopyPrices(on, parameters(on, 4))
    old, new = (("hdd0", 64 * KIB), ("hdd1", 64 * KIB)), (("ssd0", 64 * KIB),)
    # 20 MiB are chunks of 8, 8 and 4 MiB, each with a startup; p = 4.
    read = 4 * sum(0.003 + half * MIB * 1e-8 for half in (4, 4, 2))
    write = 4 * sum(0.0001 + whole * MIB * 2.5e-9 for whole in (8, 8, 4))
    assert prices.cost_s(old, new, 20 * MIB) == pytest.approx(read + write)
    assert prices.cost_s(old, new, 0) == 0.0


@st.composite
def shifting(draw):
    """Slow HDDs with more room or less, fast SSDs with room for some of 8 regions, and windows that like others."""
    M, N = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    tight = draw(st.one_of(st.just(0), st.integers(2 * MIB // M, 4 * MIB // M)))
    on = cluster(M, N, draw(st.integers(300 * KIB, 2 * MIB)), tight)
    offsets, sizes, start = [], [], []
    for window in range(draw(st.integers(2, 4))):
        size = draw(st.sampled_from([4 * KIB, 60 * KIB, 128 * KIB]))
        for region, count in draw(st.dictionaries(st.integers(0, 7), st.integers(1, 9), max_size=6)).items():
            offsets += [region * 256 * KIB + i * 32 * KIB % (128 * KIB) for i in range(count)]
            sizes += [size] * count
            start += [window * 10**9] * count
    if not offsets:
        offsets, sizes, start = [0], [4096], [0]
    file = file_of(offsets, sizes, size_bytes=2 * MIB)
    file.requests["start_ns"] = start
    return on, Workload((file,), draw(st.integers(1, 8)))


def assert_never_overfilled(plan, on) -> None:
    """Replays the moves with the slow map: both copies are held until the old one goes, and each list has its turn."""
    capacity = {target.name: target.capacity_bytes for target in on.targets}
    size = {file.path: file.size for file in plan.files}

    def shares(path, start, length, stripes):
        valid = min(length, size[path] - start)
        return {n: round_up(s) for n, s in walk(list(stripes), 0, valid).items()} if valid > 0 else {}

    held = dict.fromkeys(capacity, 0)
    home = {}
    for file in plan.files:
        for region in file.regions:
            home[file.path, region.start] = region.stripes
            for name, share in shares(file.path, region.start, region.len, region.stripes).items():
                held[name] += share
    for migration in plan.migrations:
        for move in migration.moves:
            for name, share in shares(move.file, move.start, move.len, move.stripes).items():
                held[name] += share
            assert all(not capacity[n] or held[n] <= capacity[n] for n in held)
            old = home[move.file, move.start]
            assert old != move.stripes
            for name, share in shares(move.file, move.start, move.len, old).items():
                held[name] -= share
            home[move.file, move.start] = move.stripes
        order = [("out", "restripe", "in").index(move.direction) for move in migration.moves]
        assert order == sorted(order)


class TestAnyWorkload:
    """Facts that hold for every plan, checked with the slow map."""

    def plan(self, on, workload, window_ns, min_gain=None):
        options = PlanOptions(region_bytes=256 * KIB, window_ns=window_ns, min_gain=min_gain)
        return policy_named("h2dp").plan(workload, on, options)

    @settings(max_examples=60)
    @given(clusters(), workloads(), st.integers(1000, 6000), st.sampled_from([None, 0.0, 1.0]))
    def test_no_target_is_overfilled_at_any_instant_with_both_copies_counted(self, on, workload, window_ns, min_gain):
        try:
            plan = self.plan(on, workload, window_ns, min_gain)
        except (PlanError, WorkloadError):
            return
        assert_never_overfilled(plan, on)
        assert check_plan(plan, on, "plan.json") == []

    @settings(max_examples=60)
    @given(shifting(), st.sampled_from([None, 0.0, 1.0]))
    def test_a_hot_set_that_moves_overfills_nothing_either(self, given, min_gain):
        on, workload = given
        try:
            plan = self.plan(on, workload, 10**9, min_gain)
        except PlanError:
            return
        assert_never_overfilled(plan, on)

    @settings(max_examples=40)
    @given(clusters(), workloads(), st.integers(1000, 6000))
    def test_windows_cost_what_their_layouts_cost(self, on, workload, window_ns):
        try:
            plan = self.plan(on, workload, window_ns)
        except (PlanError, WorkloadError):
            return
        if len(plan.windows) == 1:
            return
        whole, tables = window_tables(workload, 256 * KIB, window_ns)
        params = parameters(on, workload.processes)
        for number, each in enumerate(tables):
            layouts = {file.path: plan.layout_in_window(file, number) for file in plan.files}
            placed = [layouts[workload.files[f].path][n].stripes for f, n in zip(whole.file, whole.number, strict=True)]
            cost = 0.0 if each.table is None else region_costs(each.table, params, on, placed).sum()
            assert plan.windows[number].figures.cost_s == pytest.approx(cost)
        assert plan.expected.cost_s == pytest.approx(sum(window.figures.cost_s for window in plan.windows))

    @settings(max_examples=40)
    @given(workloads(), st.integers(1000, 6000))
    def test_windows_hold_every_request_once(self, workload, window_ns):
        try:
            whole, tables = window_tables(workload, 256 * KIB, window_ns)
        except WorkloadError:
            return
        counts = [each.table.count.sum() for each in tables if each.table is not None]
        assert sum(counts) == whole.count.sum()

    @settings(max_examples=20)
    @given(clusters(), workloads())
    def test_a_window_longer_than_the_trace_is_one_window(self, on, workload):
        try:
            plain = self.plan(on, workload, None)
        except (PlanError, WorkloadError):
            return
        longer = self.plan(on, workload, 10**12)
        assert dump_plan(dataclasses.replace(longer, options=plain.options)) == dump_plan(plain)


class TestOddTraces:
    def test_an_empty_trace_is_one_clear_error(self):
        with pytest.raises(WorkloadError, match="holds no read or write"):
            planned(Workload((), 1, "trace.parquet"))

    def test_requests_need_not_come_in_order_of_time(self):
        workload = touching(GOLDEN)
        shuffled = workload.files[0].requests[np.random.default_rng(1).permutation(35)]
        again = Workload((dataclasses.replace(workload.files[0], requests=shuffled),), 1)
        assert moves_of(planned(again)) == moves_of(planned(workload))

    def test_requests_of_no_bytes_open_no_window(self):
        workload = touching([{A: 1}, {A: 1}])
        requests = np.concatenate([workload.files[0].requests, workload.files[0].requests[:1]])
        requests["size"][-1], requests["start_ns"][-1] = 0, -(10**12)
        again = Workload((dataclasses.replace(workload.files[0], requests=requests),), 1)
        assert len(planned(again).windows) == 2

    def test_without_sservers_or_hservers_nothing_changes_its_class(self):
        for on in (cluster(2, 0), cluster(0, 2)):
            assert moves_of(planned(touching(GOLDEN), on)) == [[], [], [], []]

    def test_sservers_with_no_room_stay_empty(self):
        plan = planned(touching(GOLDEN), cluster(2, 1, 4096))
        assert moves_of(plan) == [[], [], [], []]
        assert all(window.figures.hybrid_regions == 0 for window in plan.windows)

    def test_a_region_that_nobody_ever_touches_never_moves(self):
        plan = planned(touching([{A: 3, B: 2}, {C: 3}, {A: 3}, {C: 1}]))
        assert all(move.start != D * MIB for migration in plan.migrations for move in migration.moves)
        assert plan.files[0].regions[D].reason == "HServers: not touched in the first window"

    def test_a_file_that_appears_later_moves_in_later(self):
        first, second = touching([{A: 5}]).files[0], touching([{}, {A: 9, B: 9}]).files[0]
        workload = Workload((first, dataclasses.replace(second, path="/data/g")), 1)
        assert {move.file for move in planned(workload).migrations[0].moves if move.direction == "in"} == {"/data/g"}

    def test_space_that_other_files_hold_stays_free_after_every_move(self):
        plan = planned(touching(GOLDEN), reserved_bytes={"ssd0": MIB})
        assert [window.figures.hybrid_regions for window in plan.windows] == [1] * 5

    def test_full_hservers_keep_everything_where_it_is(self):
        # The HDDs have room for what they hold and no more: nothing can go out, so nothing can come in.
        plan = planned(touching(GOLDEN), cluster(2, 1, 2 * MIB + 64 * KIB, MIB + 16 * KIB))
        assert moves_of(plan) == [[], [], [], []]

    def test_too_many_windows_name_a_length_that_does(self):
        with pytest.raises(PlanError, match=r"make 4000000001 windows, more than 10000; use --window 1s or longer"):
            planned(touching(GOLDEN), window_ns=1)

    def test_times_that_no_run_can_have_are_refused(self):
        workload = touching([{A: 2}])
        workload.files[0].requests["start_ns"] = [-(2**62), 2**62]
        with pytest.raises(WorkloadError, match="more than a century"):
            planned(workload)

    @pytest.mark.parametrize("bad", [{"window_ns": 0}, {"min_gain": -1.0}, {"min_gain": float("nan")}])
    def test_bad_options_are_refused(self, bad):
        with pytest.raises(UsageError):
            PlanOptions(**bad)

    def test_a_million_requests_are_priced_by_their_few_keys(self):
        count, regions = 1_000_000, 64
        rng = np.random.default_rng(7)
        file = file_of(rng.integers(0, regions * 16, count) * 64 * KIB, 64 * KIB, size_bytes=regions * MIB)
        workload = Workload((file,), 8)
        _, tables = window_tables(workload, MIB, 100_000_000)
        assert len(tables) == 10
        assert all(len(each.table.offset) <= regions * 16 for each in tables)
        assert sum(int(each.table.count.sum()) for each in tables) == count
