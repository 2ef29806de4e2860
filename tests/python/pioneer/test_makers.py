"""Profiles say who makes what is not of all: of operations, of whole sessions, of groups at any number of processes."""

from __future__ import annotations

import pytest

from stripewise.pioneer.characterization.characteristics import profile_of
from stripewise.pioneer.characterization.distribution import constant
from stripewise.pioneer.characterization.makers import groups_of
from stripewise.pioneer.characterization.profile_reader import profile_of as checked
from stripewise.pioneer.extraction.gwp import read_gwp
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
