"""Profiles say who makes what is not of all: of operations, of whole sessions, of groups at any number of processes."""

from __future__ import annotations

import pytest

from stripewise.pioneer import path as paths
from stripewise.pioneer.characterization.characteristics import profile_of
from stripewise.pioneer.characterization.distribution import constant
from stripewise.pioneer.characterization.makers import groups_of
from stripewise.pioneer.characterization.profile_reader import profile_of as checked
from stripewise.pioneer.characterize import characterize_traces
from stripewise.pioneer.extraction.generic_path import FIRST_GROUP
from stripewise.pioneer.extraction.gwp import read_gwp
from stripewise.pioneer.operations import operations
from stripewise.pioneer.synthesis.synthesize import at_processes, synthesize
from traced import COLLECTIVE, Run


def profile_from(run, tmp_path):
    made = profile_of(read_gwp(run.write(tmp_path / "t")))
    checked(made.as_json(), "what was characterized")
    return made


def test_a_header_of_the_root_has_its_own_size_place_and_followers(tmp_path):
    run = Run(3)
    for rank in range(3):
        run.call(rank, "mpi_open", "/d/f", aux=9, flags=COLLECTIVE)
        if rank == 0:
            run.call(0, "mpi_write", "/d/f", 64, 512)
        for at in range(4):
            run.call(rank, "mpi_write", "/d/f", 512 + (3 * at + rank) * 4096, 4096)
        run.call(rank, "mpi_close", "/d/f", flags=COLLECTIVE)
    (kind,) = profile_from(run, tmp_path).classes["shared"].sessions.values()
    assert kind.following == {
        "": {"mpi_write_at@root": 1}, "mpi_write_at@root": {"mpi_write_at": 1}, "mpi_write_at": {"mpi_write_at": 3},
    }  # fmt: skip
    assert kind.size == {"mpi_write_at": constant(4096), "mpi_write_at@root": constant(512)}
    assert (kind.shift, kind.own) == (constant(4096), {"SEQ@root": constant(0), "OFF@root": constant(64)})


def test_sessions_and_operations_outside_of_the_root_or_of_others_alone_are_told_as_theirs(tmp_path):
    run = Run(3)
    for rank in range(3):
        run.opened(rank, "/d/f", 0o101)
        run.call(rank, "write", "/d/f", rank * 10, 10)
        run.call(rank, "close", "/d/f")
    run.opened(0, "/d/f", 0)
    run.call(0, "read", "/d/f", 0, 5)
    run.call(0, "close", "/d/f")
    run.call(0, "stat", "/d/f")
    for rank in (1, 2):
        run.call(rank, "access", "/d/f")
        run.call(rank, "access", "/d/f")
    shared = profile_from(run, tmp_path).classes["shared"]
    assert shared.outside == {"stat@root": 1, "access@others": 2}
    assert list(shared.sessions) == ["posix-write", "posix-read@root"]
    assert shared.next == {"posix-write": {"posix-read@root": 1}}
    # What is of those who open it has no mark.
    assert shared.sessions["posix-read@root"].following == {"": {"pread": 1}}


def groups_run(world, odd):
    run = Run(world)
    for rank in range(world):
        run.opened(rank, "/d/f", 0o102)
        for at in range(20):
            run.call(rank, "read" if rank in odd else "write", "/d/f", at * 600 + rank * 100, 100)
        run.call(rank, "close", "/d/f")
    return run


def test_groups_that_other_sizes_have_are_named_and_of_others_the_largest_stands_for_all(tmp_path):
    named = profile_from(groups_run(6, {1, 3, 5}), tmp_path)
    assert [each.group for each in named.subgroups] == [{"congruent": [2, 1]}, {"congruent": [2, 0]}]
    sizes = named.classes["shared"].sessions["posix-readwrite"].size
    assert sorted(sizes) == ["pread@group-1", "pwrite@group-2", "pwrite@root"]
    other = profile_from(groups_run(8, {1, 4}), tmp_path)
    assert [each.group for each in other.subgroups] == [None, None]
    found = other.classes["shared"].sessions["posix-readwrite"].following
    assert {act for after in found.values() for act in after} == {"pwrite@root", "pwrite@others"}


@pytest.mark.parametrize(
    ("ranks", "groups"),
    [
        ([[1, 2, 3], [4, 5, 6, 7]], [{"span": [0, 32768]}, {"span": [32768, 65536]}]),
        ([[1], [2], [3, 4, 5, 6, 7]], [{"span": [0, 16384]}, {"span": [16384, 24576]}, {"span": [24576, 65536]}]),
        ([[1, 4, 7], [2, 5], [3, 6]], [{"congruent": [3, rest]} for rest in (1, 2, 0)]),
        ([[1, 3], [2, 4, 5, 6, 7]], None),
    ],
)
def test_groups_are_shares_of_all_ranks_or_ranks_of_one_rest(ranks, groups):
    assert groups_of(ranks, 8) == groups


BY = pytest.mark.parametrize("by", ["statistics", "symbolic"])


def written(run, tmp_path, by, processes=None):
    """Where each rank writes, by a synthetic path of the run's profile."""
    processes, out = processes or run.world, tmp_path / f"{by}.swp"
    synthesize(characterize_traces([run.write(tmp_path / "t")]).profile.as_json(), "t", out, processes, by=by)
    found = [paths.requests(out, processes, rank) for rank in range(processes)]
    return [rows["offset"][rows["op"] == operations()["pwrite"].number].tolist() for rows in found]


def run_of_others():
    run = Run(5)
    for rank in range(5):
        run.opened(rank, "/d/f", 0o101)
        for step in range(6 if rank else 0):
            run.call(rank, "write", "/d/f", (step * 4 + rank - 1) * 100, 100)
        run.call(rank, "close", "/d/f")
    return run


@BY
def test_what_others_alone_write_goes_on_from_rank_to_rank(tmp_path, by):
    # Rank 0, which has no part in it, would be before the file's begin: all are one place further on.
    found = written(run_of_others(), tmp_path, by)
    assert found == [[], *([(step * 4 + rank) * 100 for step in range(6)] for rank in range(1, 5))]


@BY
def test_places_that_three_ranks_do_not_share_in_one_way_are_the_childs_own(tmp_path, by):
    run = Run(5)
    for rank, place in enumerate((0, 700, 200, 500, 4000)):
        run.opened(rank, "/d/f", 0o101)
        if rank:
            run.call(rank, "write", "/d/f", place, 100)
        run.call(rank, "close", "/d/f")
    assert written(run, tmp_path, by)[1:] == [[500]] * 4


@BY
def test_a_later_group_has_places_of_its_own(tmp_path, by):
    found = written(groups_run(6, {1, 3, 5}), tmp_path, by)
    assert found == [[at * 600 + rank * 100 for at in range(20)] if rank % 2 == 0 else [] for rank in range(6)]


def test_turns_of_others_or_of_a_group_grow_with_the_processes_and_the_roots_with_them(tmp_path):
    found = written(run_of_others(), tmp_path, "statistics", 9)
    assert found == [[], *([(step * 8 + rank) * 100 for step in range(6)] for rank in range(1, 9))]
    found = written(groups_run(6, {4, 5}), tmp_path, "statistics", 12)
    writers = [rank for rank in range(12) if found[rank]]
    assert writers == list(range(8))
    assert [found[rank] for rank in writers] == [[at * 1200 + rank * 100 for at in range(20)] for rank in writers]


@pytest.mark.parametrize(
    ("group", "values", "grown"),
    [
        # Ranks 1, 3, 5 of 7, and six of 12; a SHIFT is half a turn.
        ({"congruent": [2, 1]}, [300, 600], [600, 1200]),
        # Ranks 1 to 3 of 7, and 1 to 5 of 12.
        ({"span": [0, 32768]}, [150, 300], [250, 500]),
        # Rounds of all ranks.
        ({"span": [0, 32768]}, [350, 700], [600, 1200]),
        ({"span": [0, 32768]}, [120, 240], [120, 240]),
    ],
)
def test_turns_of_a_group_are_of_all_ranks_or_of_its_own(group, values, grown):
    kind = {"SHIFT@group-1": {"constant": 50}, "OFF@group-1": {"values": values, "weights": [1, 1]}}
    shared = {"OS": 1, "sessions": {"posix-write": kind}}
    data = {"processes": 7, "subgroups": [{"group": group}], "classes": {"shared": shared}}
    (found,) = at_processes(data, 12)["classes"]["shared"]["sessions"].values()
    assert found == kind | {"OFF@group-1": {"values": grown, "weights": [1, 1]}}


def test_what_children_alone_read_and_nobody_wrote_is_there_before(tmp_path):
    run = Run(5)
    for rank in range(5):
        run.opened(rank, "/d/f", 0o102)
        if rank == 0:
            run.call(0, "write", "/d/f", 0, 100)
        run.call(rank, "sync", "/d/f")
        if rank > 0:
            run.call(rank, "read", "/d/f", rank * 100, 100)
        run.call(rank, "close", "/d/f")
    gwp = read_gwp(run.write(tmp_path / "t"))
    # Rank 0 writes where it would read itself.
    assert [(each.template, each.bytes) for each in gwp.files] == [("f", 500)]


@pytest.mark.parametrize(
    ("places", "found"),
    [
        # Rank 2's, and 0: by either way it would be another place before the file's begin.
        ([[10, 100], [700, 900]], [(700, 0), (900, 0)]),
        ([[700, 900], [10, 100]], [(1390, -690), (1700, -800)]),
        # Its second request says how far it goes, its first one is a SHIFT further on with it.
        ([[0, 200], [100, 300]], [(0, 100), (200, 100)]),
    ],
)
def test_places_of_two_ranks_stay_in_the_file(tmp_path, places, found):
    run = Run(3)
    for rank, own in enumerate([[], *places]):
        run.opened(rank, "/d/f", 0o101)
        for place in own:
            run.call(rank, "write", "/d/f", place, 10)
        run.call(rank, "close", "/d/f")
    gwp = read_gwp(run.write(tmp_path / "t"))
    assert list(zip(gwp.offset.tolist(), gwp.shift.tolist(), strict=True))[1:-1] == found


def test_a_later_group_that_does_not_go_evenly_with_the_root_is_where_its_child_is(tmp_path):
    run = groups_run(6, {1, 3, 5})
    for row in run.rows[4]:
        if row["op"] == "write":
            row["offset"] += 1
    gwp = read_gwp(run.write(tmp_path / "t"))
    own = gwp.who == FIRST_GROUP + 1
    assert gwp.offset[own].tolist() == [at * 600 + 401 for at in range(20)] and not gwp.shift[own].any()
