"""What `best --smooth` expects of a run like the traced one, and its plans on requests that they have not seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.policy import PlanOptions, policy_named
from stripewise.policy.best.demand import REQUESTS, features
from stripewise.policy.best.smooth import expected_counts, expected_features, expected_rates, size_trust
from stripewise.policy.best.trial import trial_s
from stripewise.policy.toolkit.regions import build_regions
from stripewise.policy.toolkit.striping import region_requests
from stripewise.workload import Workload
from support import KIB, MIB, cluster, file_of, zipf_workload

#: What is expected is no whole numbers, so the solver rarely comes to its end: it need not for these tests.
OPTIONS = PlanOptions(region_bytes=MIB, time_limit_s=4.0)
ALIKE = replace(OPTIONS, smooth=True)


def each_alone(regions: int) -> tuple[np.ndarray, np.ndarray]:
    """Every region one piece: their groups and bytes."""
    return np.arange(regions), np.full(regions, MIB)


def test_counts_that_differ_by_chance_only_are_expected_to_be_alike():
    count = np.random.default_rng(1).poisson(4.0, 500).astype(float)
    expected = expected_counts(count, *each_alone(500))
    assert expected.std() < 0.1 * count.std()


def test_many_requests_are_believed():
    rate = np.geomspace(200, 20_000, 60)
    count = np.random.default_rng(2).poisson(rate).astype(float)
    assert expected_counts(count, *each_alone(60)) == pytest.approx(count, rel=0.1)


def test_what_is_expected_is_nearer_to_the_rates_than_what_was_counted():
    rng = np.random.default_rng(3)
    rate = 1600 * (1 / np.arange(1, 2049) ** 0.8) / (1 / np.arange(1, 2049) ** 0.8).sum()
    count = rng.poisson(rate).astype(float)
    expected = expected_counts(count, *each_alone(2048))
    assert np.abs(expected - rate).sum() < 0.7 * np.abs(count - rate).sum()
    # Not all that was never asked for is never asked for.
    assert expected[count == 0].min() > 0


def test_pieces_of_a_region_are_alike_unless_they_differ_by_more_than_chance():
    rng = np.random.default_rng(4)
    group, valid = np.repeat(np.arange(100), 8), np.full(800, MIB // 8)
    even = rng.poisson(np.repeat(rng.uniform(2, 20, 100), 8)).astype(float)
    spread = expected_counts(even, group, valid).reshape(100, 8)
    assert (spread.std(axis=1) < 0.2 * np.sqrt(spread.mean(axis=1))).all()
    uneven = rng.poisson(np.tile([90, 1, 1, 1, 1, 1, 1, 4], 100)).astype(float)
    kept = expected_counts(uneven, group, valid).reshape(100, 8)
    assert kept[:, 0].mean() > 0.8 * 90 and kept[:, 1].mean() < 5


def test_sizes_tell_of_a_region_where_regions_differ_in_size_and_not_where_they_do_not():
    rng = np.random.default_rng(5)
    rows, ones, count = np.repeat(np.arange(50), 6), np.ones(300), np.full(50, 6.0)
    mixed = rng.choice([4096.0, 65536.0, 1048576.0], 300)
    assert size_trust(rows, mixed, ones, count).max() < 0.3
    own = np.repeat(rng.choice([4096.0, 65536.0, 1048576.0], 50), 6)
    assert size_trust(rows, own, ones, count).min() > 0.99


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 500), min_size=1, max_size=40).filter(any), st.integers(1, 4))
def test_as_many_requests_are_expected_as_were_counted(counts, parts):
    count = np.repeat(np.array(counts, dtype=float), parts)
    group, valid = np.repeat(np.arange(len(counts)), parts), np.full(len(count), MIB)
    expected = expected_counts(count, group, valid)
    assert (expected >= 0).all() and np.isfinite(expected).all()
    assert expected.sum() == pytest.approx(count.sum())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 500), min_size=2, max_size=40).filter(any))
def test_of_two_regions_the_one_that_was_asked_for_more_often_is_not_expected_less(counts):
    order = np.argsort(counts, kind="stable")
    assert (np.diff(expected_rates(np.array(counts, dtype=float))[order]) >= -1e-9).all()


def test_features_are_those_of_the_requests_to_expect():
    workload = zipf_workload(50, 300)
    table = build_regions(workload, MIB)
    group, valid = np.arange(table.regions), table.valid_bytes
    counted = features(table, region_requests(table, table), 1)[:, None]
    expected = expected_features(table, group, valid, counted)
    requests = expected[:, 0, REQUESTS : REQUESTS + 2].sum(axis=1)
    count = counted[:, 0, REQUESTS : REQUESTS + 2].sum(axis=1)
    assert requests == pytest.approx(expected_counts(count, group, valid))


def later(workload: Workload) -> tuple[Workload, Workload]:
    """Every second request, and the others."""
    (file,) = workload.files
    first, second = (replace(file, requests=file.requests[number::2].copy()) for number in (0, 1))
    return replace(workload, files=(first,)), replace(workload, files=(second,))


def test_a_smooth_plan_of_a_short_trace_is_quicker_on_requests_that_it_has_not_seen():
    on = cluster(6, 2, 34 * MIB)
    mixed = replace(zipf_workload(200, 800), processes=64)
    (file,) = mixed.files
    file.requests["size"] = np.random.default_rng(1).choice([4 * KIB, 32 * KIB, 256 * KIB], 800)
    seen, unseen = later(mixed)
    followed, smooth = (policy_named("best").plan(seen, on, options) for options in (OPTIONS, ALIKE))
    seconds = [trial_s([plan], [plan.expected.bound_s], unseen, on)[0] for plan in (followed, smooth)]
    assert seconds[1] < 0.8 * seconds[0]


def test_a_smooth_plan_says_what_it_expects_and_records_its_option():
    plan = policy_named("best").plan(zipf_workload(40, 400), cluster(4, 2, 8 * MIB), ALIKE)
    assert plan.options["smooth"] is True
    assert plan.expected.proven_s <= plan.expected.objective_s <= plan.expected.bound_s
    if not plan.comment:
        assert any("expected reads" in region.reason for region in plan.files[0].regions)


def test_a_trace_of_one_request_can_be_planned_smoothly():
    workload = Workload((file_of([0], [4 * KIB], size_bytes=8 * MIB),), 1)
    plan = policy_named("best").plan(workload, cluster(2, 1, 4 * MIB), ALIKE)
    assert sum(plan.bytes_per_target().values()) == 8 * MIB
