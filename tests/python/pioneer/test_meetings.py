"""Where ranks wait for each other before they go on: told from when they end and begin, on made-up runs."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from stripewise.errors import WorkloadError
from stripewise.pioneer import path as paths
from stripewise.pioneer.characterization.profile_reader import profile_of
from stripewise.pioneer.characterize import characterize_traces
from stripewise.pioneer.comparison.ks import ks_distance
from stripewise.pioneer.extraction import gwp as reading
from stripewise.pioneer.extraction.gwp import read_gwp
from stripewise.pioneer.extraction.meetings import met
from stripewise.pioneer.extraction.sanitise import records_of
from stripewise.pioneer.operations import by_number, operations
from stripewise.pioneer.synthesis.synthesize import SYMBOLIC, Knobs, synthesize
from traced import MS, Run

READ, STAT = operations()["pread"].number, operations()["stat"].number
#: Made-up runs of a kind: chance decides now and then otherwise.
RUNS = 100


def gone(chance, clock, how, computing):
    """When ranks begin that ended at these times."""
    slow = np.where(np.arange(len(clock)) == 1, 1.3, 1.0)
    if how == "barrier, then computing":
        return clock.max() + computing
    if how == "computing, then barrier":
        return np.full(len(clock), (clock + computing).max()) + chance.uniform(0, 3e5, len(clock))
    if how == "barrier, one rank slow":
        return clock.max() + computing * slow
    if how == "equal computing":
        return clock + computing[0] * chance.uniform(0.999, 1.001, len(clock))
    if how == "one rank slow":
        return clock + 1e8 * slow * chance.uniform(0.99, 1.01, len(clock))
    assert how in ("each by itself", "collective")
    return clock + computing


def run_of(how, ranks=4, pauses=20, seed=0, pause_ns=1e8):
    """Latest ends before, and begins behind pauses, as `met` takes them; a burst of 10 to 30 ms lies between two."""
    chance = np.random.default_rng(seed)
    clock, ends, starts = np.zeros(ranks), [], []
    for _ in range(pauses):
        ends.append(clock)
        clock = gone(chance, clock, how, pause_ns * chance.uniform(0.8, 1.2, ranks))
        starts.append(clock)
        clock = clock + chance.uniform(1e7, 3e7, ranks)
        if how == "collective":
            clock = np.full(ranks, clock.max()) + chance.exponential(5e5, ranks)
    return tuple(np.array(each).T.astype(np.int64) for each in (ends, starts))


def share(how, **more):
    """In which share of made-up runs the ranks are found to meet before most of the pauses."""
    found = [met(np.full(len(run[0][0]), READ), *run).mean() > 0.5
             for run in (run_of(how, seed=seed, **more) for seed in range(RUNS))]  # fmt: skip
    return np.mean(found)


@pytest.mark.parametrize("ranks", [4, 16])
@pytest.mark.parametrize("how", ["barrier, then computing", "computing, then barrier", "barrier, one rank slow"])
def test_ranks_that_wait_for_each_other_are_found(how, ranks):
    assert share(how, ranks=ranks) >= 0.9


@pytest.mark.parametrize("ranks", [4, 16])
@pytest.mark.parametrize("how", ["each by itself", "equal computing", "one rank slow", "collective"])
def test_ranks_that_go_on_alone_are_not(how, ranks):
    """Nor those that only a collective call has brought to one time."""
    assert share(how, ranks=ranks) <= 0.02


def test_of_two_ranks_more_pauses_are_needed():
    assert share("barrier, then computing", ranks=2, pauses=20) < 0.5
    assert share("barrier, then computing", ranks=2, pauses=40) >= 0.9
    assert share("each by itself", ranks=2, pauses=40) <= 0.05


def test_of_two_ranks_ten_clear_pauses_are_not_enough():
    """These drift apart by chance so that they look as if they met in three runs of a hundred."""
    found = [met(np.full(10, READ), *run_of("each by itself", ranks=2, pauses=10, seed=seed)) for seed in range(400)]
    assert np.mean([each.any() for each in found]) <= 0.01
    assert share("computing, then barrier", ranks=2, pauses=19) == 0
    assert share("computing, then barrier", ranks=2, pauses=20) >= 0.95


def test_of_ranks_that_begin_at_once_ten_pauses_are_enough():
    assert share("computing, then barrier", pauses=10) >= 0.95
    assert share("computing, then barrier", pauses=9) == 0
    assert share("each by itself", pauses=10) <= 0.02


@pytest.mark.parametrize("apart_ns", [200_000, -700_000])
def test_clocks_that_are_a_little_apart_hide_no_meeting_and_make_none(apart_ns):
    clocks = np.arange(4)[:, None] * apart_ns // 3
    for how, is_met in (("computing, then barrier", True), ("each by itself", False), ("equal computing", False)):
        ends, starts = run_of(how)
        assert met(np.full(20, READ), ends + clocks, starts + clocks).all() == is_met, how


def test_short_waits_are_found_without_any_computing_between():
    assert share("computing, then barrier", pause_ns=1e6) >= 0.9
    assert share("each by itself", pause_ns=1e6) == 0


def test_waiting_that_costs_nothing_is_none():
    """Ranks whose ends are 20 us apart need no barrier."""
    chance = np.random.default_rng(1)
    ends, starts = (chance.integers(0, spread, (4, 20)) + np.arange(20) * 10**8 for spread in (20_000, 2_000))
    assert not met(np.full(20, READ), ends, starts + 10**7).any()
    assert met(np.full(20, READ), 100 * ends, 100 * (starts + 10**7)).all()


def test_long_pauses_are_told_from_the_requests_between_them():
    """Of each 10 requests one comes behind a barrier, nine follow in 2 ms each."""
    ends, starts = run_of("barrier, then computing", pauses=20)
    all_ends, all_starts = [], []
    chance = np.random.default_rng(3)
    for at in range(20):
        clock = starts[:, at]
        all_ends.append(ends[:, at])
        all_starts.append(clock)
        for _ in range(9):
            all_ends.append(clock)
            clock = clock + chance.integers(18 * MS // 10, 22 * MS // 10, 4)
            all_starts.append(clock)
    found = met(np.full(200, READ), np.array(all_ends).T, np.array(all_starts).T)
    assert np.array_equal(np.flatnonzero(found), np.arange(0, 200, 10))


def test_operations_with_few_pauses_are_judged_with_each_other():
    ends, starts = run_of("barrier, then computing", pauses=16)
    assert met(np.repeat([READ, STAT], 8), ends, starts).all()
    assert not met(np.full(15, READ), ends[:, :15], starts[:, :15]).any()


def stepping(place, how, ranks=4, steps=16, hiccups=False, slow=0, root_pauses=0, clocks=(0, 0, 0, 0), straggler=None):
    """A trace: in each step a rank computes (50 ms), then reads eight blocks of its own file, 1 ms each and 1 ms apart.

    With hiccups one of the pauses between blocks is 20 ms longer in every step, another one each time. Reads of the
    last rank are `slow` ns longer each, rank 0 pauses `root_pauses` ns twice in each step; `clocks` of ranks are so
    many ns ahead. With a straggler all compute alike, and this rank alone ends its reads up to 64 ms later.
    """
    run = Run(ranks)
    chance = np.random.default_rng(5)
    clock = np.zeros(ranks)
    for rank in range(ranks):
        run.opened(rank, f"/d/own.{rank}", flags=0, start=0, took=1000)
    for step in range(steps):
        computing = 5e7 * (chance.uniform(0.8, 1.2, ranks) if straggler is None else np.ones(ranks))
        starts = gone(chance, clock, how, computing)
        ended = []
        for rank, began in enumerate(starts.astype(np.int64).tolist()):
            start = began
            for block in range(8):
                took = MS + int(chance.integers(0, MS)) * (straggler is None)
                took += slow * (rank == ranks - 1) + int(8 * MS * chance.uniform()) * (rank == straggler)
                offset = (8 * step + block) * 4096
                run.call(rank, "read", f"/d/own.{rank}", offset, 4096, start=start, took=took, flags=0)
                start += took + MS + 20 * MS * (hiccups and block == step % 7)
                start += root_pauses * (rank == 0 and block in (0, 5))
            ended.append(start - MS)
        clock = np.array(ended, np.float64)
    for rank in range(ranks):
        run.call(rank, "close", f"/d/own.{rank}", start=int(clock[rank]) + MS)
        for row in run.rows[rank]:
            row["start_ns"] += 100 * MS + clocks[rank % 4]
            row["end_ns"] += 100 * MS + clocks[rank % 4]
    return run.write(place)


@pytest.mark.parametrize("straggler", [0, 1, 2, 3])
def test_ranks_that_wait_for_one_alone_are_found_whoever_it_is(straggler, tmp_path):
    gwp = read_gwp(stepping(tmp_path / "t", "barrier, then computing", straggler=straggler))
    assert gwp.is_together.sum() >= 15


def test_of_many_ranks_and_groups_few_are_looked_at(tmp_path, monkeypatch):
    """Also where subgroups have a child each: all in all as many as may be, but two of each."""
    looked = []

    def seen(trace, rank):
        looked.append(rank)
        return records_of(trace, rank)

    monkeypatch.setattr(reading, "records_of", seen)
    monkeypatch.setattr(reading, "WITNESSES_MAX", 6)
    trace = stepping(tmp_path / "t", "barrier, then computing", ranks=13)
    read_gwp(trace, subgroups="1-6/7-12")
    # Root, two children, and three more of each group.
    assert len(looked) == 9 and len(set(looked)) == 9


def test_nobody_else_is_looked_at_where_the_first_are_never_in_one_step(tmp_path, monkeypatch):
    looked = []
    monkeypatch.setattr(reading, "records_of", lambda trace, rank: looked.append(rank) or records_of(trace, rank))
    trace = stepping(tmp_path / "t", "barrier, then computing", clocks=(0, 500 * MS, 500 * MS, 500 * MS))
    assert not read_gwp(trace).is_together.any() and len(looked) == 2


@pytest.mark.parametrize("clocks", [(0, 0, 0, 20), (0, 0, 0, -20), (20, 0, 0, 0), (-20, 0, 0, 0)])
def test_pauses_are_those_of_one_clock(clocks, tmp_path):
    how = "barrier, then computing"
    true = read_gwp(stepping(tmp_path / "a", how, steps=32))
    found = read_gwp(stepping(tmp_path / "b", how, steps=32, clocks=[each * MS for each in clocks]))
    assert found.is_together.sum() == 32
    # What a median of 32 pauses of 40 to 60 ms leaves.
    means = [each.slack_ns[each.is_together].mean() / MS for each in (true, found)]
    assert means[1] == pytest.approx(means[0], abs=4)


def test_clocks_leave_pauses_behind_which_all_begin_at_once_as_they_are(tmp_path):
    how = "computing, then barrier"
    true, found = (read_gwp(stepping(tmp_path / str(ahead), how, clocks=(0, 0, 0, ahead * MS))) for ahead in (0, 20))
    assert found.is_together.sum() == 16
    means = [each.slack_ns[each.is_together].mean() / MS for each in (true, found)]
    assert means[1] == pytest.approx(means[0], abs=0.3)


def test_statistics_that_cannot_wait_keep_the_waiting_as_slack(tmp_path):
    """Rank 0 pauses in its bursts for as long as it computes, the last rank reads slowly: no slack tells a barrier."""
    trace = stepping(tmp_path / "t", "barrier, then computing", steps=32, slow=30 * MS, root_pauses=60 * MS)
    assert read_gwp(trace).is_together.sum() >= 31
    made = characterize_traces([trace]).profile
    assert made.together == {}
    synthesize(made.as_json(), "p.json", tmp_path / "a.swp", 4, by="statistics")
    found = paths.requests(tmp_path / "a.swp", 4, 0)
    own = read_gwp(trace)
    idle = own.start_ns[1:] - np.maximum.accumulate(own.end_ns)[:-1]
    assert not found["together"].any()
    assert found["slack_ns"].sum() == pytest.approx(idle.sum(), rel=0.03)


def test_the_path_has_the_computing_without_the_waiting(tmp_path):
    gwp = read_gwp(stepping(tmp_path / "t", "barrier, then computing"))
    waits = np.flatnonzero(gwp.is_together)
    assert np.diff(waits).tolist() == [8] * 15 and {by_number()[op].name for op in gwp.op[waits].tolist()} == {"pread"}
    # Computing is 40 to 60 ms; the root's own slack has up to 20 ms of waiting on top of it.
    slack = gwp.slack_ns[waits] / MS
    own = (gwp.start_ns[waits] - gwp.end_ns[waits - 1]) / MS
    assert slack[1:].min() >= 39.9 and slack.max() <= 60.1 and own.max() > 62
    assert gwp.apart, "each rank computes by itself behind the barrier"


@pytest.mark.parametrize("how", ["each by itself", "equal computing"])
def test_a_run_without_barriers_has_no_meetings(how, tmp_path):
    gwp = read_gwp(stepping(tmp_path / "t", how))
    assert not gwp.is_together.any()


def test_ranks_that_meet_behind_their_computing_pause_alike(tmp_path):
    gwp = read_gwp(stepping(tmp_path / "t", "computing, then barrier"))
    assert gwp.is_together.sum() == 16 and not gwp.apart


@pytest.mark.parametrize("by", ["symbolic", "statistics"])
def test_a_synthetic_path_waits_as_often_as_the_run(by, tmp_path):
    made = characterize_traces([stepping(tmp_path / "t", "barrier, then computing")]).profile
    (limit,) = made.together.values()
    assert 0.04 <= limit < 0.06
    synthesize(made.as_json(), "p.json", tmp_path / "a.swp", 6, by=by)
    ranks = [paths.requests(tmp_path / "a.swp", 6, rank) for rank in range(6)]
    for found in ranks:
        # Statistics deal whole bursts from anywhere in the first one on.
        assert abs(int(found["together"].sum()) - 16) <= (by == "statistics")
        assert np.array_equal(found["together"], ranks[0]["together"])
        assert (found["slack_ns"][found["together"]] >= 39.9 * MS).all()
        assert (found["slack_ns"][found["together"]] <= 60.1 * MS).all(), "without the waiting"
        assert (found["slack_ns"][~found["together"]] < 3 * MS).all()
    assert not np.array_equal(ranks[0]["slack_ns"], ranks[5]["slack_ns"])


def test_patterns_pause_where_ranks_wait_and_not_at_hiccups(tmp_path):
    made = characterize_traces([stepping(tmp_path / "t", "barrier, then computing", hiccups=True)]).profile
    synthesize(made.as_json(), "p.json", tmp_path / "a.swp", by=SYMBOLIC)
    assert paths.info(tmp_path / "a.swp")["nodes"] < 8
    found = paths.requests(tmp_path / "a.swp", 4, 3)
    assert np.flatnonzero(found["together"]).tolist() == list(range(1, 129, 8))
    assert (found["slack_ns"][found["together"]] > 39 * MS).all()


def test_knobs_scale_from_which_slack_on_ranks_wait(tmp_path):
    made = characterize_traces([stepping(tmp_path / "t", "barrier, then computing")]).profile
    synthesize(made.as_json(), "p.json", tmp_path / "a.swp", knobs=Knobs(scale=("slack=0.1",)))
    found = paths.requests(tmp_path / "a.swp", 4, 0)
    assert 15 <= found["together"].sum() <= 17 and (found["slack_ns"][found["together"]] < 7 * MS).all()


def test_a_profile_without_the_key_makes_the_path_that_it_made(tmp_path):
    made = characterize_traces([stepping(tmp_path / "t", "equal computing")]).profile.as_json()
    assert made["together"] == {}
    old = {key: value for key, value in made.items() if key != "together"}
    for name, data in (("a", made), ("b", profile_of(old, "p.json").as_json())):
        synthesize(data, "p.json", tmp_path / f"{name}.swp", by=SYMBOLIC)
    assert (tmp_path / "a.swp").read_bytes() == (tmp_path / "b.swp").read_bytes()
    assert "together" not in str(made["programs"]["body"])


def begins(trace):
    """Of all reads of a trace, ns, ascending."""
    rows = pq.read_table(trace / "trace.parquet").to_pylist()
    return np.sort([row["start_ns"] for row in rows if row["op"] == "read"])


def begins_played(path, ranks):
    """Of all requests of a path that is played without a machine: each takes 1 to 2 ms, as those of `stepping`."""
    chance = np.random.default_rng(9)
    rows = np.stack([paths.requests(path, ranks, rank) for rank in range(ranks)], axis=1)
    clock, found = np.zeros(ranks), []
    for each in rows:
        clock = (np.full(ranks, clock.max()) if each["together"].all() else clock) + each["slack_ns"]
        found.append(clock)
        clock = clock + chance.integers(MS, 2 * MS, ranks)
    return np.sort(np.concatenate(found))


@pytest.mark.parametrize("how", ["barrier, then computing", "computing, then barrier"])
def test_sixteen_ranks_wait_for_the_slowest_of_sixteen(how, tmp_path):
    """The path of a profile of four is as long as the run of sixteen, and their arrival rates are alike."""
    made = characterize_traces([stepping(tmp_path / "t", how, steps=64)]).profile
    synthesize(made.as_json(), "p.json", tmp_path / "a.swp", 16, by=SYMBOLIC)
    run, played = begins(stepping(tmp_path / "t16", how, ranks=16, steps=64)), begins_played(tmp_path / "a.swp", 16)
    duration = np.ptp(run)
    assert np.ptp(played) == pytest.approx(duration, rel=0.02)
    bins = np.arange(0, 1.001, 0.01)
    rates = [np.histogram((each - each[0]) / duration, bins)[0] for each in (run, played)]
    assert ks_distance(*rates) < 0.1


@pytest.mark.parametrize(
    ("given", "said"),
    [({"wait": 1}, "together.wait is not a known key"), ({"pread": -1}, "together.pread"), (7, "together")],
)
def test_a_profile_that_waits_before_nothing_is_refused(given, said):
    data = {
        "version": 1,
        "together": given,
        "classes": {"private": {"OS": 1, "sessions": {"posix-read": {"SIZE": {"read0": 9}}}}},
    }
    with pytest.raises(WorkloadError, match=said):
        profile_of(data, "p.json")
