"""Subgroups of children, found by operation counts and reuse distances, or given (thesis, 2.4.1 and 2.6.1)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.errors import UsageError
from stripewise.pioneer.extraction.gwp import read_gwp
from stripewise.pioneer.extraction.subgroups import given_groups, reuse_distances, runs_text
from traced import Run, shown


def test_the_reuse_distance_counts_the_operations_between_two_of_one_kind():
    assert reuse_distances(np.array([1, 2, 2, 3, 1, 2])).tolist() == [-1, -1, 0, -1, 3, 2]


def two_kinds(world=6, traced=None):
    """Children of odd ranks read, those of even ones write."""
    run = Run(world)
    for rank in range(world):
        run.opened(rank, "/d/f", 0o102)
        for at in range(20):
            run.call(rank, "read" if rank % 2 else "write", "/d/f", at * 600 + rank * 100, 100)
        run.call(rank, "close", "/d/f")
    run.rows = {rank: rows for rank, rows in run.rows.items() if traced is None or rank in traced}
    return run


def test_children_that_do_otherwise_are_a_group_of_their_own(tmp_path):
    gwp = read_gwp(two_kinds().write(tmp_path / "t"))
    assert [(each.text, each.chosen) for each in gwp.groups] == [("1,3,5", 3), ("2,4", 4)]
    found = shown(gwp, gwp.who)
    # The root writes with the even children; the odd ones read for themselves; all open the file.
    assert (found[0], found[-1]) == (("open", 0), ("close", 0))
    assert found.count(("pwrite", 1)) == found.count(("pwrite", 17)) == found.count(("pread", 16)) == 20


def test_the_root_and_one_child_are_enough_and_two_of_a_group_that_does_what_the_root_does_not(tmp_path):
    whole = read_gwp(two_kinds().write(tmp_path / "t"), subgroups="1,3,5/2,4")
    few = read_gwp(two_kinds(traced=(0, 1, 3, 4)).write(tmp_path / "u"), subgroups="1,3,5/2,4")
    assert few.processes == 6 and [each.ranks for each in few.groups] == [(1, 3, 5), (2, 4)]
    all_of_it = shown(whole, whole.who, whole.offset, whole.shift)
    assert all_of_it == shown(few, few.who, few.offset, few.shift)
    fewer = read_gwp(two_kinds(traced=(0, 3, 4)).write(tmp_path / "v"), subgroups="1,3,5/2,4")
    # Of one reader nobody knows where the others read.
    assert shown(fewer, fewer.who, fewer.offset, fewer.shift) == [
        (op, who, offset + 300, 0) if op == "pread" else (op, who, offset, shift)
        for op, who, offset, shift in all_of_it
    ]


@pytest.mark.parametrize("text", ["", "1-", "a", "3-1", "1/1", "0-3", "7", "1,,2", "99999999999"])
def test_groups_that_are_none_are_refused(text):
    with pytest.raises(UsageError, match=r"^--subgroups: .*; (write|name|trace) "):
        given_groups(text, [0, 1, 2, 3], 0)


@given(st.text("0123456789-,/ x", max_size=12))
def test_whatever_is_given_is_groups_or_a_usage_error(text):
    try:
        groups = given_groups(text, range(12), 0)
    except UsageError:
        return
    ranks = [rank for group in groups for rank in group.ranks]
    assert len(set(ranks)) == len(ranks) and 0 not in ranks


@given(st.sets(st.integers(0, 40)))
def test_runs_tell_all_ranks(ranks):
    found = {
        rank
        for run in filter(None, runs_text(sorted(ranks)).split(","))
        for rank in range(int(run.split("-")[0]), int(run.split("-")[-1]) + 1)
    }
    assert found == ranks
