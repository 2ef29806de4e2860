"""The contract of a policy, one class run for each of them, and what is particular to DEF and H2DP."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.cluster import Network
from stripewise.errors import PlanError, UsageError, WorkloadError
from stripewise.layout import STRIPES_MAX
from stripewise.model import parameters
from stripewise.plan import dump_plan, plan_from_json
from stripewise.plan.check import check_plan
from stripewise.policy import POLICIES, PlanOptions, Policy, policy_named
from stripewise.policy.published.psa import psa_grid
from stripewise.policy.toolkit.hybrid import hserver_stripes, hybrid_stripes
from stripewise.policy.toolkit.pricing import region_costs
from stripewise.policy.toolkit.regions import build_regions
from stripewise.policy.toolkit.space import Space
from stripewise.units import round_up
from stripewise.workload import Workload
from support import KIB, MIB, cluster, clusters, file_of, page_example, walk, workloads, zipf_workload

OPTIONS = PlanOptions(region_bytes=MIB)
SOAK = bool(os.environ.get("STRIPEWISE_SOAK"))


def counted(plan) -> dict[str, int]:
    """Bytes per target, region by region with the slow map."""
    held: dict[str, int] = {}
    for file in plan.files:
        for region in file.regions:
            valid = min(region.len, file.size - region.start)
            if valid > 0:
                for name, share in walk(list(region.stripes), 0, valid).items():
                    held[name] = held.get(name, 0) + round_up(share)
    return held


def on_ssds(region) -> bool:
    return any(name.startswith("ssd") for name, _ in region.stripes)


@functools.cache
def chosen(name: str) -> Policy:
    """The policy `name`; `page` is the one that docs/writing-a-policy.md shows, named as a file."""
    if name != "page":
        return policy_named(name)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "whole.py"
        path.write_text(page_example())
        return policy_named(str(path))


def examples(name: str, few: int) -> int:
    """How many a property is tried with; a search for the best layout takes a second or two."""
    if SOAK:
        return 60
    return 6 if name == "best" else few


#: Every policy that comes with Stripewise, and the one that a user would write.
EVERY = [*sorted(POLICIES), "page"]


@pytest.mark.parametrize("name", EVERY)
class TestEveryPolicy:
    def plan(self, name, workload, on, options=None):
        # What is asked of every plan holds of those of a short search, too.
        given = options or OPTIONS
        return chosen(name).plan(workload, on, replace(given, time_limit_s=1.0) if name == "best" else given)

    def test_no_target_is_ever_overfilled(self, name):
        @settings(max_examples=examples(name, 20))
        @given(on=clusters(), workload=workloads())
        def is_true(on, workload):
            try:
                plan = self.plan(name, workload, on, PlanOptions(region_bytes=256 * KIB))
            except (PlanError, WorkloadError):
                return
            # A search that was cut ends where the clock has it.
            again = plan if name == "best" else self.plan(name, workload, on, PlanOptions(region_bytes=256 * KIB))
            assert dump_plan(plan) == dump_plan(again)
            held = counted(plan)
            # Every byte once: regions follow each other without gaps, and all that is placed is the files' bytes.
            for file in plan.files:
                ends = [0, *(region.start + region.len for region in file.regions)]
                assert [region.start for region in file.regions] == ends[:-1] and ends[-1] >= file.size
                parts = [walk(list(r.stripes), 0, max(0, min(r.len, file.size - r.start))) for r in file.regions]
                assert sum(sum(part.values()) for part in parts) == file.size
            for target in on.targets:
                assert not target.capacity_bytes or held.get(target.name, 0) <= target.capacity_bytes
            assert {k: v for k, v in plan.target_bytes.items() if v} == {k: v for k, v in held.items() if v}
            check_plan(plan, on, "plan.json")

        is_true()

    def test_data_that_fit_are_placed(self, name):
        @settings(max_examples=examples(name, 30))
        @given(on=clusters(), workload=workloads())
        def is_true(on, workload):
            # Room for every region's share with its rounding: then there is a plan.
            roomy = tuple(dataclasses.replace(t, capacity_bytes=t.capacity_bytes and 64 * MIB) for t in on.targets)
            if not any((file.requests["size"] > 0).any() for file in workload.files):
                return
            options = PlanOptions(region_bytes=256 * KIB)
            plan = self.plan(name, workload, dataclasses.replace(on, targets=roomy), options)
            assert {file.path for file in plan.files} == {f.path for f in workload.files if f.size_bytes}

        is_true()

    def test_regions_cover_the_file_without_gaps(self, name):
        plan = self.plan(name, zipf_workload(20, 100), cluster(4, 2, 2 * MIB))
        end = 0
        for region in plan.files[0].regions:
            assert region.start == end
            end += region.len
        assert end > plan.files[0].size == 20 * MIB

    def test_the_same_input_gives_the_same_plan(self, name, monkeypatch):
        workload, on = zipf_workload(40, 300), cluster(4, 2, 3 * MIB)
        if name == "best":
            # Small enough for a search that ends by itself, before its time.
            monkeypatch.setattr("stripewise.policy.best.finish.POLISH_REQUESTS", 20_000)
            workload, on = zipf_workload(4, 30), cluster(2, 1, MIB)
        plans = [chosen(name).plan(workload, on, OPTIONS) for _ in range(2)]
        assert dump_plan(plans[0]) == dump_plan(plans[1])

    def test_every_region_says_why(self, name):
        plan = self.plan(name, zipf_workload(20, 100), cluster(4, 2, 2 * MIB))
        assert all(region.reason for region in plan.files[0].regions)

    def test_costs_per_region_add_up_to_what_is_expected(self, name):
        plan = self.plan(name, zipf_workload(20, 100), cluster(4, 2, 2 * MIB))
        assert sum(r.cost_s for r in plan.files[0].regions) == pytest.approx(plan.expected.cost_s)
        assert sum(r.cost_def_s for r in plan.files[0].regions) == pytest.approx(plan.expected.cost_def_s)

    @pytest.mark.parametrize(("M", "N"), [(1, 0), (0, 1), (4, 0), (0, 3), (1, 1)])
    def test_any_mix_of_classes_gets_a_plan(self, name, M, N):
        plan = self.plan(name, zipf_workload(8, 50), cluster(M, N))
        assert sum(plan.bytes_per_target().values()) == 8 * MIB

    def test_one_process_and_one_request_is_enough(self, name):
        assert self.plan(name, Workload((file_of([0], [1]),), 1), cluster(2, 1)).files[0].size == 1

    def test_an_empty_trace_is_one_clear_error(self, name):
        with pytest.raises(WorkloadError, match="holds no read or write"):
            self.plan(name, Workload((), 1, "trace.parquet"), cluster(2, 1))

    def test_requests_of_no_bytes_are_no_work(self, name):
        workload = Workload((file_of([0, MIB, 5000], [4096, 0, 0]),), 1)
        assert self.plan(name, workload, cluster(2, 1)).files[0].size == 4096

    def test_a_file_that_was_only_read_is_planned(self, name):
        assert self.plan(name, Workload((file_of([0], [MIB], [False]),), 1), cluster(2, 1)).files

    def test_a_request_past_2_to_the_62_names_the_trace_and_the_request(self, name):
        workload = Workload((file_of([0, 2**62], [4096, 4096]),), 1, "trace.parquet")
        with pytest.raises(WorkloadError, match=r"trace.parquet: request 1 of /data/f .* leave this file out"):
            self.plan(name, workload, cluster(2, 1))

    def test_no_space_at_all_is_one_clear_error(self, name):
        options = dataclasses.replace(OPTIONS, reserved_bytes={f"{k}{i}": MIB for k in ("hdd", "ssd") for i in (0, 1)})
        with pytest.raises(PlanError, match=r"/data/f: region 0: needs .* raise capacity_bytes"):
            self.plan(name, Workload((file_of([0], [4096]),), 1), cluster(2, 2, MIB, MIB), options)

    def test_a_file_without_data_is_left_out(self, name):
        workload = Workload((file_of([], [], path="/data/empty"), file_of([0], [8192])), 1)
        assert [file.path for file in self.plan(name, workload, cluster(2, 1)).files] == ["/data/f"]

    def test_too_little_room_names_file_and_region(self, name):
        with pytest.raises(PlanError, match=r"/data/f: region \d+: needs .* raise capacity_bytes"):
            self.plan(name, zipf_workload(8, 50), cluster(2, 1, MIB, MIB))

    def test_a_region_larger_than_any_server_is_cut_over_them(self, name):
        plan = self.plan(name, Workload((file_of([0], [4 * MIB]),), 1), cluster(3, 2, MIB, MIB), PlanOptions())
        assert max(counted(plan).values()) <= MIB

    def test_space_that_other_files_hold_is_left_alone(self, name):
        options = dataclasses.replace(OPTIONS, reserved_bytes={"ssd0": 2 * MIB, "ssd1": 2 * MIB})
        plan = self.plan(name, zipf_workload(20, 100), cluster(4, 2, 2 * MIB), options)
        assert not plan.bytes_per_target().get("ssd0") and not plan.bytes_per_target().get("ssd1")


#: Those whose plans say which server a region begins on; the others go by what servers have to do.
BY_NUMBER = [name for name in EVERY if chosen(name).rotates is not None]


@pytest.mark.parametrize("name", BY_NUMBER)
def test_equal_servers_with_room_hold_about_the_same(name):
    # Small regions must not pile up on the first server, whether the policy rotates or merges.
    held = counted(chosen(name).plan(zipf_workload(8, 400), cluster(4, 0), OPTIONS))
    assert max(held.values()) <= 1.25 * sum(held.values()) / 4


@pytest.mark.parametrize("name", BY_NUMBER)
def test_the_first_server_rotates_from_region_to_region_or_is_always_the_first(name):
    plan = chosen(name).plan(zipf_workload(8, 400), cluster(4, 0), OPTIONS)
    firsts = [r.stripes[0][0] for r in plan.files[0].regions if r.start < plan.files[0].size]
    rotates = chosen(name).rotates
    assert firsts == [f"hdd{n % 4 if rotates else 0}" for n in range(len(firsts))]
    assert len(firsts) == 8 or not rotates


@pytest.mark.parametrize("name", sorted(set(EVERY) - set(BY_NUMBER)))
def test_where_no_server_is_the_first_by_number_equal_servers_serve_about_the_same(name):
    workload = zipf_workload(8, 400)
    plan = chosen(name).plan(workload, cluster(4, 0), OPTIONS)
    served = dict.fromkeys(("hdd0", "hdd1", "hdd2", "hdd3"), 0)
    for region in plan.files[0].regions:
        requests = workload.files[0].requests
        for one in requests[(requests["offset"] >= region.start) & (requests["offset"] < region.start + region.len)]:
            for server, share in walk(
                list(region.stripes), int(one["offset"]) - region.start, int(one["size"])
            ).items():
                served[server] += share
    assert sum(served.values()) == 400 * 256 * KIB
    assert max(served.values()) <= 1.25 * sum(served.values()) / 4, served


def test_def_fills_ssds_in_seeded_random_order():
    workload, on = zipf_workload(64, 200), cluster(4, 2, 4 * MIB)
    plans = [policy_named("def").plan(workload, on, dataclasses.replace(OPTIONS, seed=seed)) for seed in (1, 2)]
    hybrid = [
        {r.start for r in plan.files[0].regions if any(n.startswith("ssd") for n, _ in r.stripes)} for plan in plans
    ]
    assert hybrid[0] != hybrid[1]
    assert all(len(chosen) >= 20 for chosen in hybrid)
    assert all({width for _, width in region.stripes} == {64 * KIB} for region in plans[0].files[0].regions[:64])


@pytest.mark.parametrize(("ssd_bytes", "last"), [(0, 6), (64 * MIB, 6), (4 * MIB, 4)])
def test_def_lays_growth_over_all_servers_as_long_as_they_have_room(ssd_bytes, last):
    regions = policy_named("def").plan(zipf_workload(20, 100), cluster(4, 2, ssd_bytes), OPTIONS).files[0].regions
    assert len(regions[-1].stripes) == last and regions[-1].start == 20 * MIB
    if last == 6:
        # In the same order: the file's next region would have begun with the same server.
        assert regions[-1].stripes == regions[len(regions[:-1]) % 6].stripes


def test_def_is_its_own_baseline():
    plan = policy_named("def").plan(zipf_workload(20, 100), cluster(4, 2, 2 * MIB), OPTIONS)
    assert plan.expected.gain == 1.0 and plan.expected.bound_gain == 1.0


def test_h2dp_gives_ssds_to_the_regions_with_the_largest_benefit():
    # Seed 000, eq. 1 and section 3.6: descending B until the space is used up (64 KiB are for the file system).
    workload, on = zipf_workload(60, 600), cluster(4, 2, 5 * MIB + 65536)
    table = build_regions(workload, MIB)
    plan = policy_named("h2dp").plan(workload, on, OPTIONS)
    count = np.bincount(np.repeat(np.arange(60), np.diff(table.first)), weights=table.count, minlength=60)
    critical = [g for g in range(60) if plan.files[0].regions[g].reason.startswith("critical")]
    assert len(critical) == 10
    assert min(count[critical]) >= max(count[[g for g in range(60) if g not in critical]])


def test_h2dp_puts_the_rest_on_hservers_with_stripe_r_over_m():
    plan = policy_named("h2dp").plan(zipf_workload(60, 600), cluster(4, 2, 5 * MIB), OPTIONS)
    cold = [r for r in plan.files[0].regions[:60] if r.reason.startswith("HServers")]
    assert cold and all(sorted(r.stripes) == [(f"hdd{i}", 64 * KIB) for i in range(4)] for r in cold)


def test_h2dp_rounds_r_over_m_up_to_4_kib():
    # Cost-models section 7: at 64 KiB over 12 HServers r/M = 5.3 KiB becomes 8 KiB, so 8 startups.
    plan = policy_named("h2dp").plan(zipf_workload(16, 64, 64 * KIB), cluster(12, 0), OPTIONS)
    assert {width for _, width in plan.files[0].regions[0].stripes} == {8 * KIB}


def test_h2dp_leaves_untouched_regions_on_hservers():
    workload = Workload((file_of([0], [MIB], size_bytes=8 * MIB),), 4)
    plan = policy_named("h2dp").plan(workload, cluster(4, 2), OPTIONS)
    assert plan.files[0].regions[5].reason == "HServers: not touched in the trace"
    assert all(name.startswith("hdd") for name, _ in plan.files[0].regions[5].stripes)


def test_h2dp_is_expected_to_double_the_demo():
    # The demo's simulation: DEF 80 MB/s, H2DP 178 MB/s (512 regions of 1 MiB, Zipf 0.8, SSDs hold 1/6).
    workload = zipf_workload(512, 20_000)
    on = cluster(4, 2, 512 * MIB // 12 // 4096 * 4096)
    plan = policy_named("h2dp").plan(workload, on, OPTIONS)
    moved_mb = 20_000 * 256 * KIB / 1e6
    assert 75 < moved_mb / plan.expected.bound_def_s < 90
    assert 170 < moved_mb / plan.expected.bound_s < 190


def test_where_the_network_is_slow_the_bound_is_its_time():
    # 8 processes on 2 nodes read 100 times 256 KiB at 1 us a byte: whatever the stripes, their links carry that.
    workload, on = zipf_workload(20, 100), cluster(4, 2, network=Network(0.0, 1e-6, 4))
    expected = policy_named("h2dp").plan(workload, on, OPTIONS).expected
    assert expected.bound_s >= 100 * 256 * KIB * 1e-6 / 2
    assert expected.bound_def_s >= 100 * 256 * KIB * 1e-6 / 2


def test_def_costs_depend_on_where_a_request_starts():
    workload = Workload((file_of([0, 32 * KIB], [64 * KIB, 64 * KIB]),), 1)
    table = build_regions(workload, MIB)
    on = cluster(2, 0)
    costs = region_costs(table, parameters(on, 1), on, [(("hdd0", 64 * KIB), ("hdd1", 64 * KIB))])
    assert costs[0] == pytest.approx((0.003 + 65536e-8) + (0.003 + 32768e-8))


def test_an_unknown_policy_names_those_that_exist():
    with pytest.raises(UsageError, match="did you mean h2dp"):
        policy_named("h2pd")


@pytest.mark.parametrize("bad", [0, -4096, 5000])
def test_sizes_that_are_no_granules_are_refused(bad):
    with pytest.raises(UsageError, match=r"multiple of 4096 bytes; the nearest one is [0-9]+"):
        PlanOptions(region_bytes=bad)


def test_padp_gives_a_region_the_pair_that_h2dp_gives_it():
    workload, on = zipf_workload(40, 400), cluster(4, 2, 4 * MIB)
    padp, h2dp = (policy_named(name).plan(workload, on, OPTIONS).files[0].regions for name in ("padp", "h2dp"))
    both = [(a, b) for a, b in zip(padp, h2dp, strict=True) if on_ssds(a) and on_ssds(b)]
    assert both and all(a.stripes == b.stripes for a, b in both)


def test_padp_puts_what_does_not_fit_on_hservers_with_stripe_r_over_m():
    plan = policy_named("padp").plan(zipf_workload(60, 600), cluster(4, 2, 5 * MIB), OPTIONS)
    cold = [r for r in plan.files[0].regions[:60] if not on_ssds(r)]
    assert len(cold) > 40
    assert all(sorted(r.stripes) == [(f"hdd{i}", 64 * KIB) for i in range(4)] for r in cold)


@pytest.mark.parametrize("name", ["padp", "psa"])
def test_who_is_on_ssds_is_drawn_by_the_seed(name):
    workload, on = zipf_workload(64, 600), cluster(4, 2, 5 * MIB)
    chosen = []
    for seed in (1, 1, 2):
        regions = policy_named(name).plan(workload, on, dataclasses.replace(OPTIONS, seed=seed)).files[0].regions
        chosen.append({r.start for r in regions if on_ssds(r)})
    assert chosen[0] == chosen[1] != chosen[2]


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), ssd_mib=st.integers(1, 20))
def test_h2dp_is_never_priced_above_padp_where_all_regions_take_equal_space(seed, ssd_mib):
    # With equal pairs the walk by descending benefit is the best choice of so many regions; else it is a greedy one.
    workload, on = zipf_workload(24, 300), cluster(4, 2, ssd_mib * MIB)
    options = dataclasses.replace(OPTIONS, seed=seed)
    costs = {name: policy_named(name).plan(workload, on, options).expected.cost_s for name in ("h2dp", "padp")}
    assert costs["h2dp"] <= costs["padp"] * (1 + 1e-9)


def test_psa_takes_one_pair_per_file_with_h_at_least_s_for_the_share_f_of_the_regions():
    # Golden: the objective by hand, over all pairs of the grid (placement.md, PSA).
    workload, on = zipf_workload(60, 600), cluster(4, 2, 5 * MIB)
    plan = policy_named("psa").plan(workload, on, OPTIONS)
    hybrid = [r for r in plan.files[0].regions[:60] if on_ssds(r)]
    pairs = {(dict(r.stripes)["hdd0"], dict(r.stripes)["ssd0"]) for r in hybrid}
    table, params = build_regions(workload, MIB), parameters(on, workload.processes)
    free = sum(Space(on).free[f"ssd{n}"] for n in range(2))

    def objective(h: int, s: int) -> tuple[float, float]:
        f = min(1.0, free / (60 * MIB * 2 * s / (4 * h + 2 * s)))
        mixed = region_costs(table, params, on, [hybrid_stripes(on, 0, h, s)] * 60).sum()
        rest = region_costs(table, params, on, [hserver_stripes(on, 0, 256 * KIB)] * 60).sum()
        return float(f * mixed + (1 - f) * rest), f

    ((h, s),) = pairs
    assert h >= s > 0
    best = min(objective(h, s)[0] for h, s in psa_grid(256 * KIB, 4, 2, 4096))
    assert objective(h, s)[0] == pytest.approx(best, rel=1e-9)
    assert len(hybrid) == pytest.approx(objective(h, s)[1] * 60, abs=1.5)


def test_psa_puts_more_regions_on_ssds_than_padp_for_its_narrow_stripes_there():
    workload, on = zipf_workload(60, 600), cluster(4, 2, 5 * MIB)
    counts = [sum(map(on_ssds, policy_named(n).plan(workload, on, OPTIONS).files[0].regions)) for n in ("psa", "padp")]
    assert counts[0] > counts[1]


@pytest.mark.parametrize(("M", "N"), [(4200, 0), (1, 4200), (4190, 10)])
@pytest.mark.parametrize("name", sorted(POLICIES))
def test_of_more_servers_than_a_cycle_holds_a_plan_names_as_many_as_it_may(name, M, N):
    options = dataclasses.replace(OPTIONS, window_ns=6000 if name == "h2dp" else None, time_limit_s=10)
    plan = policy_named(name).plan(zipf_workload(3, 12), cluster(M, N), options)
    # The rules of the file, the limit of its cycles among them.
    assert plan_from_json(json.loads(dump_plan(plan)), "plan.json").files == plan.files


def test_of_more_servers_than_a_cycle_holds_each_class_gives_its_share_and_all_take_part():
    many = cluster(6000, 2000)
    stripes = hybrid_stripes(many, 0, 4096, 8192)
    assert len(stripes) == STRIPES_MAX and sum(name.startswith("ssd") for name, _ in stripes) == STRIPES_MAX // 4
    for placed in (lambda n: hybrid_stripes(many, n, 4096, 8192), lambda n: hserver_stripes(many, n, MIB)):
        assert {name for n in range(2) for name, _ in placed(n)} >= {target.name for target in many.hservers}


def test_psa_leaves_a_file_on_hservers_where_no_pair_is_cheaper():
    on = cluster(4, 2)
    slow = tuple(dataclasses.replace(t, startup_read_s=1.0, startup_write_s=1.0) if t.is_ssd else t for t in on.targets)
    plan = policy_named("psa").plan(zipf_workload(8, 50), dataclasses.replace(on, targets=slow), OPTIONS)
    assert not any(map(on_ssds, plan.files[0].regions))
    assert "no pair is cheaper" in plan.files[0].regions[0].reason
