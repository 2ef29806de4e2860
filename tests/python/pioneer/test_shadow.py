"""Root against children: whose requests are whose, names without ranks, and how far offsets grow (thesis, 2.6.2)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stripewise.pioneer.extraction.gwp import read_gwp
from stripewise.pioneer.extraction.templates import base_of, relative, templates_of
from traced import COLLECTIVE, Run, shown

ALL, ROOT, CHILDREN = 0, 1, 2


def test_what_the_root_alone_does_is_its_own_and_what_children_alone_do_is_theirs(tmp_path):
    run = Run(3)
    run.opened(0, "/d/conf", 0)
    run.call(0, "read", "/d/conf", 0, 9)
    run.call(0, "close", "/d/conf")
    for rank in range(3):
        run.opened(rank, f"/d/out.{rank}")
        run.call(rank, "write", f"/d/out.{rank}", 0, 100)
        if rank == 0:
            run.call(0, "write", "/d/out.0", 100, 7)
        run.call(rank, "close", f"/d/out.{rank}")
        if rank:
            run.call(rank, "stat", "/d/conf")
    gwp = read_gwp(run.write(tmp_path / "t"))
    assert [(each.template, each.file_class) for each in gwp.files] == [("conf", "shared"), ("out.{rank}", "private")]
    assert shown(gwp, gwp.who, gwp.size) == [
        ("open", ROOT, 1), ("pread", ROOT, 9), ("close", ROOT, 0), ("open", ALL, 6), ("pwrite", ALL, 100),
        ("pwrite", ROOT, 7), ("close", ALL, 0), ("stat", CHILDREN, 0),
    ]  # fmt: skip
    # Nobody has written what is read of it.
    assert gwp.files[0].bytes == 9


def test_of_requests_alike_their_sizes_tell_which_one_is_the_roots(tmp_path):
    run = Run(2)
    for rank in range(2):
        run.opened(rank, "/d/f")
        if rank == 0:
            run.call(0, "write", "/d/f", 0, 512)
        for at in range(4):
            run.call(rank, "write", "/d/f", 512 + (2 * at + rank) * 4096, 4096)
        run.call(rank, "close", "/d/f")
    gwp = read_gwp(run.write(tmp_path / "t"))
    assert gwp.who.tolist() == [ALL, ROOT, ALL, ALL, ALL, ALL, ALL]
    assert gwp.shift.tolist() == [0, 0, 4096, 4096, 4096, 4096, 0]


def test_sizes_tell_the_roots_own_though_other_requests_differ_in_theirs(tmp_path):
    run = Run(2)
    for rank in range(2):
        run.opened(rank, "/d/f")
        for at in range(4):
            if rank == 0 and at % 2:
                run.call(0, "write", "/d/f", 0, 512)
            run.call(rank, "write", "/d/f", 512 + (2 * at + rank) * 4096, 4096)
        for _ in range(3):
            run.call(rank, "read", "/d/f", 0, 100 + rank)
        run.call(rank, "close", "/d/f")
    gwp = read_gwp(run.write(tmp_path / "t"))
    assert gwp.who.tolist() == [ALL, ALL, ROOT, ALL, ALL, ROOT, ALL, ALL, ALL, ALL, ALL]


def test_a_session_that_the_child_lacks_takes_none_of_its_requests(tmp_path):
    run = Run(2)
    for rank in range(2):
        for part in range(2):
            if rank == 0 or part:
                run.opened(rank, "/d/f")
                run.call(rank, "write", "/d/f", 0, 8 if part else 9)
                run.call(rank, "close", "/d/f")
    gwp = read_gwp(run.write(tmp_path / "t"))
    assert gwp.who.tolist() == [ROOT, ROOT, ROOT, ALL, ALL, ALL]


def test_a_collective_call_is_everybodys(tmp_path):
    run = Run(2)
    for rank in range(2):
        run.call(rank, "mpi_open", "/d/f", requested=5, flags=COLLECTIVE)
        for _ in range(2 - rank):
            run.call(rank, "mpi_write", "/d/f", 0, 8, flags=COLLECTIVE)
        run.call(rank, "mpi_close", "/d/f", flags=COLLECTIVE)
    gwp = read_gwp(run.write(tmp_path / "t"))
    assert gwp.who.tolist() == [ALL] * 4
    assert [each.text for each in gwp.communicators] == ["world"]


@pytest.mark.parametrize(
    ("names", "templates"),
    [
        ({0: ["/d/a.0"], 2: ["/d/a.2"]}, {"/d/a.{rank}": "private"}),
        ({0: ["/d/a"], 2: ["/d/a"]}, {"/d/a": "shared"}),
        ({0: ["/d/a"], 2: []}, {"/d/a": "root"}),
        ({0: [], 2: ["/d/a.2"]}, {"/d/a.{rank}": "private"}),
        # A number that is the same in all names of a process is its rank, one that counts files is not.
        ({0: ["/d/0.0", "/d/0.1", "/d/0.2"], 2: ["/d/2.0", "/d/2.1", "/d/2.2"]},
         {"/d/{rank}.0": "private", "/d/{rank}.1": "private", "/d/{rank}.2": "private"}),
        ({0: ["/d/rank0/0007"], 2: ["/d/rank2/0009"]}, {"/d/rank{rank}/{rank}": "private"}),
        # Numbers of steps are the same for all.
        ({0: ["/d/s1/p0", "/d/s2/p0"], 1: ["/d/s1/p1", "/d/s2/p1"]},
         {"/d/s1/p{rank}": "private", "/d/s2/p{rank}": "private"}),
    ],
)  # fmt: skip
def test_numbers_that_stand_for_the_rank(names, templates):
    assert templates_of(names, 0).classes == templates


def test_names_are_relative_to_the_directory_of_all():
    base = base_of(["/d/e/f", "/d/g"])
    assert (base, relative("/d/e/f", base), relative("/d/g", base)) == ("/d", "e/f", "g")
    assert relative("x/../../y", "/") == "y"
    # A directory of the rank's own stays in the name.
    own = [f"/d/rank.{{rank}}/f{at}" for at in range(2)]
    assert [relative(each, base_of(own)) for each in own] == ["rank.{rank}/f0", "rank.{rank}/f1"]


def test_reads_that_come_round_to_the_first_ranks_bytes_need_none_before_the_run(tmp_path):
    run = Run(3)
    for rank in range(3):
        run.opened(rank, "/d/f", 0o102)
        run.call(rank, "write", "/d/f", rank * 100, 100)
        run.call(rank, "read", "/d/f", (rank + 1) % 3 * 100, 100)
        run.call(rank, "close", "/d/f")
    gwp = read_gwp(run.write(tmp_path / "t"), subgroups="1")
    assert (gwp.shift.tolist(), gwp.files[0].bytes) == ([0, 100, 100, 0], 0)


STEPS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["w", "r", "s", "oc"])), max_size=25)


@given(STEPS, STEPS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_both_do_sessions_are_whole_for_all_who_take_part(tmp_path, root, child):
    run = Run(2)
    for rank, steps in enumerate((root, child)):
        for file in range(3):
            run.opened(rank, f"/d/f{file}", 0o102, fd=file)
        for file, what in steps:
            if what == "oc":
                run.call(rank, "close", f"/d/f{file}", fd=file)
                run.opened(rank, f"/d/f{file}", 0o102, fd=file)
            else:
                op = {"w": "write", "r": "read", "s": "stat"}[what]
                run.call(rank, op, f"/d/f{file}", 0, 8, fd=file)
        for file in range(3):
            run.call(rank, "close", f"/d/f{file}", fd=file)
    gwp = read_gwp(run.write(tmp_path / "t"))
    # Each process makes as many requests as it did, and has open what it uses.
    for rank in range(2):
        mine = (gwp.who == ALL) | (gwp.who == (ROOT if rank == 0 else CHILDREN))
        assert mine.sum() == len(run.rows[rank])
        for session in np.unique(gwp.session[mine]).tolist():
            names = [name for name, of in shown(gwp, gwp.session * mine + ~mine * -9) if of == session]
            assert session < 0 or (names[0] == "open" and names[-1] == "close" and names.count("open") == 1)
