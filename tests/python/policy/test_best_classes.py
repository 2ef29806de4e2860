"""The policy `best` where servers are many or alike: prices by class, dealing out, small requests, hopeless trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stripewise.cluster import Cluster, Network
from stripewise.policy import PlanOptions, policy_named
from stripewise.policy.best.proven.limits import asked, dual_bound
from stripewise.policy.best.regions.cuts import cut_for_balance, whole_regions
from stripewise.policy.best.regions.problem import Ground, Posed, pose
from stripewise.policy.best.regions.relaxed import _Model, classed, solve_relaxed
from stripewise.policy.best.regions.start import as_solution, spread
from stripewise.policy.best.regions.teams import Mix, split_bytes
from stripewise.policy.best.trial import Trials, trial_s
from stripewise.policy.toolkit.regions import build_regions, region_requests
from stripewise.workload import Workload
from stripewise.workload.describe import Description
from stripewise.workload.generated import generated_workload
from support import KIB, MIB, cluster, file_of, zipf_workload

OPTIONS = PlanOptions(region_bytes=MIB)


def posed_of(workload: Workload, on: Cluster, capacity: np.ndarray, processes: int) -> Posed:
    """The problem over whole regions."""
    table = build_regions(workload, MIB)
    paths = tuple(file.path for file in workload.files)
    requests = region_requests(table, table)
    ground = Ground(on, processes, whole_regions(table), table, (table,), requests, capacity, paths)
    return pose(ground, float(processes))


def test_servers_that_are_alike_have_the_same_price():
    workload, on = zipf_workload(200, 3000, seed=3), cluster(9, 3)
    capacity = np.array([np.inf] * 9 + [12.0 * MIB] * 3)
    posed = posed_of(workload, on, capacity, 200)
    classes = classed(posed)
    found = solve_relaxed(posed, classes, 0, 20.0)
    assert found is not None and len(classes.servers) == 2 and classes.choices == 2
    assert len(set(found.resource[:9])) == 1 and len(set(found.resource[9:12])) == 1
    assert (found.space[9:] > 0).all() and found.space[0] == 0


def test_what_is_dealt_out_by_classes_fits_and_is_near_the_programme():
    workload, on = zipf_workload(400, 6000, seed=4), cluster(9, 3)
    capacity = np.array([np.inf] * 9 + [30.5 * MIB] * 3)
    posed = posed_of(workload, on, capacity, 200)
    classes = classed(posed)
    found = solve_relaxed(posed, classes, 0, 20.0)
    assert found is not None
    dealt = spread(posed, classes, found)
    assert dealt is not None
    homes = [posed.problem.choices[choice].shares[0][0] for choice in dealt[0].tolist()]
    assert (np.bincount(homes, minlength=12) * MIB <= capacity).all()
    assert as_solution(posed, dealt, found).seconds <= 1.05 * found.seconds


def test_a_region_too_hot_for_one_server_goes_to_several():
    # Half of all requests are for one place, which whole would keep one of 16 servers busy for half of all the work.
    rng = np.random.default_rng(5)
    offsets = np.concatenate([np.zeros(2000, dtype=np.int64), rng.integers(1, 64, 2000)]) * MIB
    posed = posed_of(Workload((file_of(offsets, [MIB] * 4000, size_bytes=64 * MIB),), 16), cluster(0, 16),
                     np.full(16, np.inf), 16)  # fmt: skip
    classes = classed(posed)
    free = solve_relaxed(posed, classes, 0, 20.0)
    assert free is not None and free.longest_s > 4 * free.seconds
    kept = solve_relaxed(posed, classes, 0, 20.0, 0.5 * free.seconds)
    assert kept is not None
    whole, parted = (as_solution(posed, spread(posed, classes, each), free).seconds for each in (free, kept))
    assert parted < 0.3 * whole


@pytest.mark.parametrize("factor", [1.05, 1.3])
def test_servers_that_differ_a_little_leave_the_proof_no_gap(factor):
    # Prices found step by step settle slowly where very many layouts are nearly equal.
    base = cluster(6, 2)
    targets = tuple(
        replace(t, startup_read_s=t.startup_read_s * factor**n, startup_write_s=t.startup_write_s * factor**n)
        for n, t in enumerate(base.targets)
    )
    on, workload, capacity = replace(base, targets=targets), zipf_workload(300, 6000, seed=6), np.full(8, np.inf)
    posed = posed_of(workload, on, capacity, 200)
    classes = classed(posed)
    found = solve_relaxed(posed, classes, 0, 20.0)
    assert found is not None and len(classes.servers) == 8
    bound = dual_bound([asked(posed.ground.whole)], on, 200, [[posed.prices(found.resource)]])
    assert bound == pytest.approx(found.seconds, rel=0.01)


def proven_alone(workload: Workload, on: Cluster) -> float:
    """The bound of one process: its requests one after the other."""
    table = build_regions(workload, MIB)
    return dual_bound([asked(table)], on, 1, [[]])


def test_a_small_request_is_no_quicker_than_its_largest_granule():
    on = cluster(12, 0)
    offsets = np.arange(128) * 8160
    one = on.active[0].startup_read_s + 4080 * on.active[0].per_byte_read_s
    seconds = proven_alone(Workload((file_of(offsets, [8160] * 128, size_bytes=MIB),), 1), on)
    # Twelve servers would take 680 bytes each, if stripes were not whole granules.
    assert 0.98 * 128 * one <= seconds <= 128 * (one + 16 * on.active[0].per_byte_read_s)


def test_a_request_is_no_quicker_than_its_client_s_link():
    on = replace(cluster(0, 12), network=Network(0.0, 1e-7, 1))
    seconds = proven_alone(Workload((file_of(np.arange(4) * 256 * KIB, [256 * KIB] * 4, size_bytes=MIB),), 1), on)
    assert seconds >= 4 * 256 * KIB * 1e-7


def test_requests_of_few_granules_go_round_all_members_that_are_alike():
    widths, seconds = split_bytes(cluster(6, 0).active, 8160, Mix(0.0))
    assert widths == [4096] * 6
    assert seconds == pytest.approx(
        cluster(6, 0).active[0].startup_read_s + 4096 * cluster(6, 0).active[0].per_byte_read_s
    )


def test_pieces_fit_into_the_smallest_room_several_times():
    workload, on = zipf_workload(4, 2000, seed=7), cluster(2, 2)
    table = build_regions(workload, MIB)
    capacity = np.array([np.inf, np.inf, 512.0 * KIB, 512.0 * KIB])
    cuts = cut_for_balance(whole_regions(table), table, [table], on, capacity, 0.5)
    assert (cuts.length <= 256 * KIB).all() and int(cuts.length.sum()) == 4 * MIB


def test_plans_that_cannot_be_the_quickest_are_not_run():
    workload, on = zipf_workload(16, 400, seed=8), cluster(3, 1)
    plan = policy_named("def").plan(workload, on, OPTIONS)
    bound_s = plan.expected.bound_s
    first, same, hopeless = trial_s([plan] * 3, [bound_s, bound_s, 100 * bound_s], Trials([workload], on))[:, 0]
    assert first == same and hopeless == float("inf")
    assert trial_s([plan] * 2, [100 * bound_s, bound_s], Trials([workload], on))[0, 0] == first


def test_processes_of_a_sample_begin_at_once_wherever_in_their_run_it_is_drawn():
    """One request of each process does not tell who was over when; of a trace the same times do."""
    on = cluster(3, 1)
    described = Description("random", 8, ((64 * KIB, 1.0),), 16 * MIB, reads=50, writes=0, source="w.toml")
    sample = generated_workload(described, 8)
    assert sample.weight == 50 and sample.requests == 8
    (file,) = sample.files
    together = file.requests.copy()
    together["start_ns"], together["end_ns"] = 0, 1_000_000
    plan = policy_named("def").plan(sample, on, OPTIONS)

    def seconds(workload: Workload) -> float:
        return Trials([workload], on).run(plan)[0].seconds

    assert seconds(sample) == seconds(replace(sample, files=(replace(file, requests=together),)))
    assert seconds(replace(sample, weight=1)) > 2 * seconds(sample)


def test_shares_below_none_as_a_solver_leaves_them_when_its_time_ends_are_none():
    posed = posed_of(zipf_workload(40, 400), cluster(3, 1), np.full(4, np.inf), 200)
    classes = classed(posed)
    model = _Model(posed, classes, 0, np.inf)
    taken = np.tile(np.array([[-1.5], [2.5]]), (1, len(model.touched)))
    found = model._told(1.0, np.ones(len(classes.resources)), taken, 1.0)
    assert found is not None and (found.choice[np.concatenate(model.alike)] == 1).all()
