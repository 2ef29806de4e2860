"""Mixtures: regular files by symbolic patterns, irregular ones by statistics, in the order of the run."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest

from stripewise.cli.pioneer.synth import _rows
from stripewise.errors import UsageError, WorkloadError
from stripewise.pioneer import path as paths
from stripewise.pioneer.characterization.anonymous import anonymous_gwps
from stripewise.pioneer.characterization.profile_reader import profile_of
from stripewise.pioneer.characterize import characterize_traces
from stripewise.pioneer.extraction.gwp import read_gwp
from stripewise.pioneer.operations import operations
from stripewise.pioneer.synthesis import synthesize as synthesis
from stripewise.pioneer.synthesis.coverage import regular_files
from stripewise.pioneer.synthesis.synthesize import FILES_SAID_MAX, Knobs, synthesize
from traced import MS, Run

PIECE, STEPS = 4096, 6000


def clocked(run, rank):
    """Calls of a rank: each 1 ms, some time after the one before."""
    clock = 0

    def call(op, file, offset=0, size=0, wait=MS, **more):
        nonlocal clock
        clock += wait
        run.call(rank, op, f"/d/{file}", offset, size, start=clock, took=MS, **more)
        clock += MS

    return call


def stepping(place, own, steps=STEPS, until=STEPS, ranks=2):
    """In each step a turn in a shared file; up to one step, what `own(call, step, chance)` does with a file of the
    rank's, which is closed then."""
    run = Run(ranks)
    for rank in range(ranks):
        call, chance = clocked(run, rank), random.Random(rank)
        call("open", "all", done=3, aux=0o102)
        call("open", f"own.{rank}", done=4, fd=4, aux=0o102)
        for step in range(steps):
            call("write", "all", (step * ranks + rank) * PIECE, PIECE, wait=2 * MS)
            if step < until:
                own(lambda *rest, call=call, rank=rank: call("write", f"own.{rank}", *rest, fd=4), step, chance)
            if step == min(until, steps) - 1:
                call("close", f"own.{rank}", fd=4)
        call("close", "all")
    return run.write(place)


def scattered(call, _, chance):
    call(chance.randrange(1 << 22), chance.randrange(1, 5000))


def twice(call, step, chance):
    scattered(call, step, chance)
    scattered(call, step, chance)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Trace and profile (all keys) of a regular and a scattered file."""
    place = stepping(tmp_path_factory.mktemp("mixed") / "t", scattered)
    return place, described(place)


def described(*places):
    return profile_of(characterize_traces(places).profile.as_json(), "p.json").as_json()


def of_file(path, processes, rank, number):
    rows = paths.requests(path, processes, rank)
    return rows[rows["file"] == number]


def templates(trace):
    gwp = read_gwp(trace)
    kept = regular_files(gwp)
    return None if kept is None else [each.template for each, is_kept in zip(gwp.files, kept, strict=True) if is_kept]


def test_each_file_is_made_by_what_fits_it_and_the_regular_one_is_as_it_was(mixed, tmp_path):
    trace, profile = mixed
    made = synthesize(profile, "p.json", tmp_path / "out.swp")
    assert made.way == "mixture"
    ways = [(each.name, each.way) for each in made.ways]
    assert ways == [("all", "symbolic"), ("own.{rank}", "statistics")]
    gwp = read_gwp(trace)
    regular = gwp.file == [each.template for each in gwp.files].index("all")
    found = of_file(tmp_path / "out.swp", 2, 0, 0)
    placed = found["offset"] >= 0
    assert found["op"].tolist() == gwp.op[regular].tolist()
    assert found["offset"][placed].tolist() == gwp.offset[regular][placed].tolist()
    assert found["size"].tolist() == gwp.size[regular].tolist()
    assert found["slack_ns"].tolist() == gwp.slack_ns[regular].tolist()
    # In turns, as in the run.
    rows = paths.requests(tmp_path / "out.swp", 2, 0)
    assert np.abs(np.cumsum(rows["file"]) - np.cumsum(gwp.file)).max() <= 2


def test_ranks_that_are_added_take_their_turns_in_the_regular_file(mixed, tmp_path):
    synthesize(mixed[1], "p.json", tmp_path / "out.swp", 8)
    rows = of_file(tmp_path / "out.swp", 8, 7, 0)
    data = rows[rows["op"] == operations()["pwrite"].number]
    assert data["offset"].tolist() == [(step * 8 + 7) * PIECE for step in range(STEPS)]
    own = of_file(tmp_path / "out.swp", 8, 7, 1)
    assert abs(own["size"].astype(np.int64).sum() / (STEPS * 2500) - 1) < 0.03


def test_an_irregular_phase_stays_in_its_half_and_loops_behind_it_stay_loops(tmp_path):
    profile = described(stepping(tmp_path / "t", twice, until=STEPS // 2))
    made = synthesize(profile, "p.json", tmp_path / "out.swp", by="mixture")
    rows = paths.requests(tmp_path / "out.swp", 2, 0)
    own = np.flatnonzero((rows["file"] == 1) & (rows["op"] == operations()["pwrite"].number))
    # Of 6,000 turns half come behind: 3,000 of 12,000 requests.
    assert abs(own[-1] / len(rows) - 0.75) < 0.02
    assert made.nodes < 9100


def test_what_is_edited_is_heeded(mixed, tmp_path):
    profile = copy.deepcopy(mixed[1])
    uncovered = profile["programs"]["uncovered"]["classes"]["private"]["sessions"]["posix-readwrite"]
    uncovered["SIZE"]["pwrite"] = {"constant": 77}
    made = synthesize(profile, "p.json", tmp_path / "a.swp", by="mixture")
    assert not made.is_edited
    assert set(of_file(tmp_path / "a.swp", 2, 1, 1)["size"].tolist()) == {0, 7, 77}
    profile["classes"]["shared"]["OS"] = 2
    assert synthesize(profile, "p.json", tmp_path / "b.swp").is_edited
    assert synthesize(profile, "p.json", tmp_path / "b.swp").way == "statistics"
    turned = synthesize(mixed[1], "p.json", tmp_path / "c.swp", knobs=Knobs(scale=("requests=2",)))
    assert (turned.way, turned.is_edited) == ("statistics", False)
    assert {each.way for each in turned.ways} == {"statistics"}


@pytest.mark.parametrize(
    "edit",
    [{"together": {"pwrite": 0.04}}, {"subgroups": [{"ranks": "1", "share": 1, "group": {"congruent": [2, 1]}}]}],
)
def test_waits_and_groups_that_are_edited_go_for_statistics_for_the_patterns_have_their_own(mixed, tmp_path, edit):
    profile = profile_of(mixed[1] | edit, "p.json").as_json()
    made = synthesize(profile, "p.json", tmp_path / "a.swp")
    assert (made.is_edited, made.way) == (True, "statistics")
    old = {key: value for key, value in profile["programs"].items() if key != "ranks"}
    assert not synthesize(profile | {"programs": old}, "p.json", tmp_path / "b.swp").is_edited


def test_of_each_way_files_are_named_and_all_are_counted(mixed, tmp_path):
    profile = copy.deepcopy(mixed[1])
    more = [{"name": f"more{number}", "class": "shared", "bytes": 0} for number in range(FILES_SAID_MAX)]
    profile["programs"]["files"] += more
    made = synthesize(profile, "p.json", tmp_path / "out.swp", by="mixture")
    assert made.files_by == {"symbolic": FILES_SAID_MAX + 1, "statistics": 1}
    assert made.as_json()["files_by"] == made.files_by
    assert [each.name for each in made.ways if each.way == "statistics"] == ["own.{rank}"]
    shown = list(_rows(made))
    assert len(made.ways) == FILES_SAID_MAX + 1 and len(shown) == 12
    assert [name for name, *_ in shown[-2:]] == ["... 4,087 more", "own.{rank}"]


def test_what_the_last_rank_makes_is_none_of_the_roots_requests(mixed, tmp_path):
    profile = copy.deepcopy(mixed[1])
    loop = next(node for node in profile["programs"]["body"] if "body" in node)
    assert [node["op"] for node in loop["body"]] == ["pwrite"]
    loop["body"][0]["who"] = "last"
    made = synthesize(profile, "p.json", tmp_path / "out.swp", by="mixture")
    assert made.requests == len(paths.requests(tmp_path / "out.swp", 2, 0)) < STEPS + 100


def test_a_path_that_no_player_takes_is_the_profiles_fault(mixed, tmp_path, monkeypatch):
    def refused(part, *_):
        raise WorkloadError(f"{part}: node 4 is none; make the path again with 'stripewise synth'")

    monkeypatch.setattr(synthesis, "expected", refused)
    with pytest.raises(WorkloadError, match=r"^p.json: makes no path \(node 4 is none\); edit it, or give --by stat"):
        synthesize(mixed[1], "p.json", tmp_path / "out.swp")


def test_an_uncovered_part_that_is_no_object_is_told_in_the_words_of_json(mixed, tmp_path):
    profile = mixed[1] | {"programs": mixed[1]["programs"] | {"uncovered": None}}
    with pytest.raises(WorkloadError, match=r"^p.json: programs.uncovered is no object; give it the keys requests and"):
        synthesize(profile, "p.json", tmp_path / "out.swp")


def test_ways_that_a_profile_lacks_are_refused_with_one_that_it_has(mixed, tmp_path):
    plain = described(stepping(tmp_path / "t", lambda *_: None, steps=9))
    for profile, way, said in (
        (mixed[1], "symbolic", "of some files alone .*; give --by mixture"),
        (plain, "mixture", "of all files; give --by symbolic"),
        (plain | {"programs": None}, "mixture", "no symbolic patterns .*; give --by statistics"),
    ):
        with pytest.raises(UsageError, match=said):
            synthesize(profile, "p.json", tmp_path / "out.swp", by=way)
    with pytest.raises(UsageError, match="knobs change statistics alone"):
        synthesize(mixed[1], "p.json", tmp_path / "out.swp", knobs=Knobs(fs="2"), by="mixture")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda of: of.update(colour=1), "programs.uncovered.*colour"),
        (lambda of: of.update(requests=-1), "programs.uncovered.requests"),
        (lambda of: of["classes"]["private"].update(OS=-1), "p.json: programs.uncovered: classes.private.OS"),
        (lambda of: of["classes"]["private"].update(RT2={"stat": 1e18}), "p.json.*RT2"),
        (
            lambda of: of["classes"]["private"].update(names=["all/b.{rank}"]),
            "^p.json: programs.uncovered.classes.private.names has 'all/b.{rank}' below 'all', a file of programs",
        ),
    ],
)
def test_a_bad_edit_of_the_uncovered_part_is_told_with_its_key(mixed, tmp_path, edit, said):
    profile = copy.deepcopy(mixed[1])
    edit(profile["programs"]["uncovered"])
    with pytest.raises(WorkloadError, match=said):
        synthesize(profile, "p.json", tmp_path / "out.swp")
    assert not list(tmp_path.iterdir())


def test_a_run_without_a_regular_file_has_no_patterns(tmp_path):
    run = Run(2)
    for rank in range(2):
        call, chance = clocked(run, rank), random.Random(rank)
        call("open", f"own.{rank}", done=3, aux=0o102)
        for _ in range(9000):
            call("write", f"own.{rank}", chance.randrange(1 << 22), chance.randrange(1, 5000))
        call("close", f"own.{rank}")
    profile = described(run.write(tmp_path / "t"))
    assert "body" not in profile["programs"]
    assert synthesize(profile, "p.json", tmp_path / "out.swp").way == "statistics"


def alone(place, calls, names):
    """One rank that opens these files, makes the calls (operation, file, offset, size), and closes them."""
    run = Run(1)
    call = clocked(run, 0)
    for number, name in enumerate(names):
        call("open", name, done=3 + number, fd=3 + number, aux=0o102)
    for op, name, offset, size in calls:
        call(op, name, offset, size, fd=3 + names.index(name))
    for number, name in enumerate(names):
        call("close", name, fd=3 + number)
    return run.write(place)


def interleaving(place):
    """Two files in turns, and a third now and then."""
    chance, calls, done = random.Random(1), [], 0
    for step in range(STEPS):
        calls += [("write", name, step * PIECE, PIECE) for name in ("all", "also")]
        count = chance.randrange(3)
        calls += [("write", "now and then", (done + number) * PIECE, PIECE) for number in range(count)]
        done += count
    return alone(place, calls, ["now and then", "all", "also"])


def test_of_regular_files_that_interleave_by_chance_those_are_kept_that_fold_together(tmp_path):
    assert templates(interleaving(tmp_path / "t")) == ["all", "also"]


def test_without_names_the_same_files_are_left_to_statistics(tmp_path):
    trace = interleaving(tmp_path / "t")
    named, bare = (characterize_traces([trace], anonymous=each).profile.as_json()["programs"] for each in (False, True))
    assert [each["name"] for each in named["files"]] == ["all", "also"]
    assert [each["name"] for each in bare["files"]] == ["f1", "f2"]
    assert bare["body"] == named["body"]
    assert bare["uncovered"]["requests"] == named["uncovered"]["requests"]
    for of in (named, bare):
        del of["uncovered"]["classes"]["root"]["names"]
    assert bare["uncovered"] == named["uncovered"]


def test_a_file_of_several_traces_has_one_made_name_in_all_of_them(tmp_path):
    calls = [("write", name, 0, 9) for name in "abc"]
    one = read_gwp(alone(tmp_path / "one", calls, list("abc")))
    other = read_gwp(alone(tmp_path / "other", calls[1:], list("cb")))
    made = anonymous_gwps([one, other])
    known = dict(zip((each.template for each in one.files), (each.template for each in made[0].files), strict=True))
    assert known == {"a": "f0", "b": "f1", "c": "f2"}
    assert [each.template for each in other.files] == ["c", "b"]
    assert [each.template for each in made[1].files] == ["f2", "f1"]


def test_many_irregular_files_are_left_out_at_once(tmp_path):
    chance, names = random.Random(1), ["all", *(f"scattered {letter}" for letter in "abcdefgh")]
    calls = [
        ("write", name, step * PIECE if name == "all" else chance.randrange(1 << 22), PIECE)
        for step in range(1500)
        for name in names
    ]
    assert templates(alone(tmp_path / "t", calls, names)) == ["all"]


def test_a_regular_file_of_next_to_nothing_is_not_worth_patterns(tmp_path):
    chance = random.Random(1)
    calls = [("write", "scattered", chance.randrange(1 << 22), PIECE) for _ in range(9000)]
    calls[100:100] = [("write", "small", number, 1) for number in range(99)]
    assert templates(alone(tmp_path / "t", calls, ["scattered", "small"])) is None


def renaming(place):
    """A regular file, and a scattered one with another name at the end."""
    run = Run(1)
    call, chance = clocked(run, 0), random.Random(1)
    call("open", "all", done=3, aux=0o102)
    call("open", "part", done=4, fd=4, aux=0o102)
    for step in range(STEPS):
        call("write", "all", step * PIECE, PIECE)
        call("write", "part", chance.randrange(1 << 22), chance.randrange(1, 5000), fd=4)
    call("close", "part", fd=4)
    run.call(0, "rename", "/d/part", file2="/d/whole", start=10**12)
    run.call(0, "close", "/d/all", start=10**12 + 2 * MS)
    return run.write(place)


def test_files_that_a_rename_joins_are_left_out_together(tmp_path):
    assert templates(renaming(tmp_path / "t")) == ["all"]


def test_of_a_rename_whose_other_file_is_not_kept_it_is_unknown(tmp_path):
    gwp = read_gwp(renaming(tmp_path / "t"))
    assert gwp.other.max() >= 0
    part = gwp.part(np.array([each.template != "whole" for each in gwp.files]))
    assert len(part.files) == 2 and set(part.other.tolist()) == {-1}


def test_calls_on_a_file_match_whatever_others_come_between(tmp_path):
    """By operation and name alone the ranks' turns would match those of other steps."""

    def own(call, _, chance):
        for _ in range(1 + chance.randrange(3)):
            scattered(call, 0, chance)

    gwp = read_gwp(stepping(tmp_path / "t", own, steps=300))
    turns = (gwp.file == 0) & (gwp.op == operations()["pwrite"].number)
    assert gwp.files[0].template == "all"
    assert set(gwp.who[turns].tolist()) == {0} and set(gwp.shift[turns].tolist()) == {PIECE}
