"""The heat that `best` expects of the next run, the grid it is told on, and runs as likely as the traced one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.policy import PlanOptions, policy_named
from stripewise.policy.best.expected.heat import Runs, heat_of
from stripewise.policy.best.expected.heats import heats_of
from stripewise.policy.best.expected.likely import likely_run
from stripewise.policy.best.expected.spans import spans_of
from stripewise.policy.best.judge import Judge
from stripewise.policy.best.trial import Trials
from stripewise.workload import Workload
from support import KIB, MIB, cluster, file_of, workloads, zipf_workload

OPTIONS = PlanOptions(region_bytes=MIB, time_limit_s=4.0)


def density(runs: Runs, slots: int) -> np.ndarray:
    """Requests expected of every slot."""
    return np.repeat(runs.expected / runs.slots, runs.slots)[:slots]


def heat(slot: np.ndarray, slots: int) -> np.ndarray:
    """Requests expected of every slot, from one request each."""
    return density(heat_of(slot, np.ones(len(slot)), slots), slots)


def test_counts_that_differ_by_chance_only_are_expected_to_be_alike():
    rng = np.random.default_rng(1)
    # 352 and 1,000 are no powers of two: where the file ends the halves are not of one length.
    for slots in (352, 1000, 1024):
        found = heat(rng.integers(0, slots, 4000), slots)
        assert found == pytest.approx(np.full(slots, 4000 / slots), rel=0.25)


def test_too_few_requests_to_tell_of_heat_are_not_asked_for_it(monkeypatch):
    # A level's shapes take milliseconds, which thousands of small files would pay at each of theirs.
    monkeypatch.setattr("stripewise.policy.best.expected.heat._mixed", None)
    assert heat(np.array([700]), 1024) == pytest.approx(np.full(1024, 1 / 1024))
    assert heat(np.array([3, 3, 900, 901]), 1024) == pytest.approx(np.full(1024, 4 / 1024))


def test_many_requests_are_believed():
    rate = np.random.default_rng(2).permutation(np.geomspace(200, 20_000, 60))
    counts = np.random.default_rng(3).poisson(rate)
    assert heat(np.repeat(np.arange(60), counts), 60) == pytest.approx(counts, rel=0.1)


@pytest.mark.parametrize("grain", [1, 4, 64])
def test_heat_is_followed_to_its_grain_and_no_further(grain):
    # Zipf over cells in any order; below a cell all is chance.
    rng = np.random.default_rng(4)
    cells = 2048 // grain
    weight = rng.permutation(1 / np.arange(1, cells + 1) ** 1.1)
    rate = np.repeat(weight / weight.sum(), grain) * 6000 / grain
    counts = rng.poisson(rate)
    found = heat(np.repeat(np.arange(2048), counts), 2048)
    assert np.abs(found - rate).sum() < (0.85 if grain == 1 else 0.6) * np.abs(counts - rate).sum()
    # Not all that was never asked for is never asked for.
    assert found[counts == 0].min() > 0 or grain > 1


def test_a_hot_span_is_found_wherever_it_begins():
    rng = np.random.default_rng(5)
    slots = np.concatenate([rng.integers(0, 10_000, 2000), rng.integers(3333, 3433, 2000)])
    found = heat(slots, 10_000)
    assert found[3333:3433].sum() == pytest.approx(2020, rel=0.05)
    assert found[3440:].sum() == pytest.approx(2000 * 0.656, rel=0.1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 999), min_size=1, max_size=300), st.integers(1000, 5000), st.integers(0, 6))
def test_as_many_requests_are_expected_as_there_were_and_runs_leave_no_slot_out(places, slots, finest):
    runs = heat_of(np.array(places), np.ones(len(places)), slots, finest)
    assert runs.expected.sum() == pytest.approx(len(places))
    assert runs.first[0] == 0 and runs.first[-1] == slots and (runs.slots > 0).all()
    assert (runs.first[:-1] % (1 << finest) == 0).all()


def test_the_heat_of_files_that_are_asked_for_least_is_even_at_every_grain(monkeypatch):
    monkeypatch.setattr("stripewise.policy.best.expected.heats.FILES_MAX", 1)
    rng = np.random.default_rng(8)
    files = tuple(
        file_of(rng.integers(0, 9, many) * 300_000, rng.integers(1, 90_000, many), path=f"/data/{many}")
        for many in (90, 60)
    )
    first, other = heats_of(Workload(files, 8))
    assert first.runs.count > 1 and first.finest().runs.count > 1
    assert [each.runs.count for each in (other, other.finest(), other.at_grain(1))] == [1, 1, 1]
    assert other.finest().grid.unit == 1 < other.grid.unit


def test_runs_are_no_more_than_are_asked_for():
    rng = np.random.default_rng(6)
    weight = rng.permutation(1 / np.arange(1, 5001))
    places = rng.choice(5000, 50_000, p=weight / weight.sum())
    runs = heat_of(places, np.ones(len(places)), 5000, most=100)
    assert runs.count <= 100 and runs.expected.sum() == pytest.approx(50_000)


# The grid ------------------------------------------------------------------------------------------------------------


def heat_of_file(offsets: np.ndarray, size: int, size_bytes: int):
    """The heat of one file of requests of one size."""
    (found,) = heats_of(Workload((file_of(offsets, [size] * len(offsets), size_bytes=size_bytes),), 8))
    assert found is not None
    return found


def test_records_with_gaps_are_one_run_with_two_spans():
    rng = np.random.default_rng(7)
    found = heat_of_file(rng.integers(0, 500, 5000) * 512 * KIB, 64 * KIB, 256 * MIB)
    assert (found.grid.slot_bytes, found.grid.is_apart) == (512 * KIB, True)
    spans = spans_of([found])
    assert len(spans.start) < 20
    assert {(int(low), int(high)) for low, high in zip(spans.low, spans.high, strict=True)} == {
        (0, 64 * KIB),
        (64 * KIB, 512 * KIB),
    }
    assert spans.asked[spans.low > 0].sum() == 0


def test_a_period_is_found_where_two_records_of_every_seven_are_asked_for():
    rng = np.random.default_rng(8)
    places = rng.integers(0, 400, 3000) * 7 + rng.choice([2, 5], 3000)
    assert heat_of_file(places * 32 * KIB, 32 * KIB, 2800 * 32 * KIB).grid.slot_bytes == 7 * 32 * KIB


@pytest.mark.parametrize("pattern", ["scattered", "streams", "hot"])
def test_no_period_is_found_where_there_is_none(pattern):
    rng = np.random.default_rng(9)
    places = {
        "scattered": rng.integers(0, 3000, 2500),
        "streams": (np.arange(1600) // 100 * 187 + np.arange(1600) % 100),
        "hot": np.concatenate([rng.integers(0, 3000, 500), np.full(4000, 1234), rng.integers(700, 720, 900)]),
    }[pattern]
    assert heat_of_file(places * 32 * KIB, 32 * KIB, 3000 * 32 * KIB).grid.slot_bytes == 32 * KIB


# Likely runs ---------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(workloads(), st.integers(0, 100))
def test_a_likely_run_asks_as_often_and_inside_the_file(workload, seed):
    drawn = likely_run(workload, heats_of(workload), seed)
    for file, other in zip(workload.files, drawn.files, strict=True):
        assert len(file.requests) == len(other.requests) and file.size_bytes == other.size_bytes
        assert (other.requests["rank"] == file.requests["rank"]).all()
        ends = file.requests["offset"] + file.requests["size"]
        end = max(file.size_bytes, int(ends.max(initial=0)))
        assert (other.requests["offset"] >= 0).all()
        assert int((other.requests["offset"] + other.requests["size"]).max(initial=0)) <= end
        assert set(other.requests["size"].tolist()) <= set(file.requests["size"].tolist())


def test_a_likely_run_asks_where_the_heat_is():
    rng = np.random.default_rng(10)
    places = np.concatenate([rng.integers(0, 4000, 1000), rng.integers(1000, 1040, 3000)])
    workload = Workload((file_of(places * 64 * KIB, [64 * KIB] * 4000, size_bytes=4000 * 64 * KIB),), 8)
    (drawn,) = likely_run(workload, heats_of(workload), 1).files
    found = drawn.requests["offset"] // (64 * KIB)
    assert 2700 < ((found >= 1000) & (found < 1040)).sum() < 3300
    # Another run: nearly none of its requests is the trace's own.
    assert (found == places).mean() < 0.1


def test_a_file_that_is_gone_through_in_sequence_is_gone_through_so_again():
    offsets = np.arange(512) * 64 * KIB
    workload = Workload((file_of(offsets, [64 * KIB] * 512),), 1)
    (drawn,) = likely_run(workload, heats_of(workload), 3).files
    assert (drawn.requests["offset"] == offsets).all()


def later(workload: Workload) -> tuple[Workload, Workload]:
    """Every second request, and the others."""
    (file,) = workload.files
    first, second = (replace(file, requests=file.requests[number::2].copy()) for number in (0, 1))
    return replace(workload, files=(first,)), replace(workload, files=(second,))


def test_a_plan_of_a_short_trace_is_quick_on_requests_that_it_has_not_seen():
    on = cluster(6, 2, 34 * MIB)
    mixed = replace(zipf_workload(200, 800), processes=64)
    (file,) = mixed.files
    file.requests["size"] = np.random.default_rng(1).choice([4 * KIB, 32 * KIB, 256 * KIB], 800)
    seen, unseen = later(mixed)
    plans = [policy_named(name).plan(seen, on, replace(OPTIONS, time_limit_s=None)) for name in ("h2dp", "psa", "def")]
    plans.append(policy_named("best").plan(seen, on, OPTIONS))
    *others, best = (Trials([unseen], on).run(plan)[0].seconds for plan in plans)
    assert best < 0.9 * min(others)


def test_a_plan_for_a_run_that_repeats_its_requests_records_so():
    repeats = replace(OPTIONS, smooth=False)
    plan = policy_named("best").plan(zipf_workload(40, 400), cluster(4, 2, 8 * MIB), repeats)
    assert plan.options["smooth"] is False
    assert plan.expected.proven_s <= plan.expected.objective_s <= plan.expected.bound_s


def test_where_most_places_are_asked_for_often_no_plan_counts_that_is_slow_in_the_trace():
    often, seldom = zipf_workload(8, 4000), zipf_workload(64, 200)
    on = cluster(3, 2, 2 * MIB)
    likely = [likely_run(often, [heat.finest() for heat in heats_of(often)], seed) for seed in range(3)]
    assert not Judge(seldom, likely, [], on).repeats and not Judge(often, [], [], on).repeats
    judge = Judge(often, likely, [], on)
    assert judge.repeats
    judge.least_s = 2.0
    assert judge.decides(np.array([2.01, 5.0, 7.0])) == 6.0
    assert judge.decides(np.array([2.2, 4.0, 4.0])) > 6.0 > judge.decides(np.array([2.0, 5.0, 5.0]))
    with judge.by_trace():
        assert judge.decides(np.array([3.0])) == 3.0 and not judge.likely and not judge.fresh
    plans = [policy_named("best").plan(often, on, replace(OPTIONS, smooth=smooth)) for smooth in (None, False)]
    both, alone = (plan.expected.simulated_s for plan in plans)
    assert both is not None and alone is not None and both <= 1.03 * alone


def test_plans_that_were_not_run_take_for_ever_whatever_the_trace_tells():
    workload, on = zipf_workload(40, 300), cluster(2, 1)
    judge = Judge(workload, [workload], [], on)
    plan = policy_named("def").plan(workload, on, PlanOptions(region_bytes=MIB))
    seconds = [judge.decides(each) for each in judge.all_s([plan, plan], [plan.expected.bound_s, 1e6])]
    assert judge.told == 0 and seconds[1] == np.inf > seconds[0]


def test_a_trace_of_one_request_can_be_planned():
    workload = Workload((file_of([0], [4 * KIB], size_bytes=8 * MIB),), 1)
    plan = policy_named("best").plan(workload, cluster(2, 1, 4 * MIB), OPTIONS)
    assert sum(plan.bytes_per_target().values()) == 8 * MIB
