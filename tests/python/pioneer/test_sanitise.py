"""Sanitised requests: what folds into what, which open a request belongs to, what goes (thesis, 2.5.2 and 2.6.1)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imports import imported
from stripewise.pioneer.extraction.sanitise import sanitise
from stripewise.pioneer.extraction.views import view_from
from stripewise.pioneer.operations import by_number, operations
from test_import_lanl import OPEN, REST
from traced import AT_POSITION, COLLECTIVE, MS, NONBLOCKING, SHARED_POINTER, Run, shown


def records(run, tmp_path, rank=0):
    found = sanitise(run.write(tmp_path / "t"))
    return found.records[rank], found.names


def names_of(found):
    return [name for (name,) in shown(found)]


def test_table_2_3_the_four_posix_calls_of_an_open_fold_into_it_and_the_seek_into_the_read(tmp_path):
    imported(tmp_path, "lanl", OPEN + REST)
    found = sanitise(tmp_path / "out")
    (only,) = found.records.values()
    assert names_of(only) == ["mpi_open", "mpi_iread10", "mpi_close"]
    assert {found.names[file] for file in only.file} == {
        "/panfs/caddypan.lanl.gov/scratch1/nobody/tests/OUTPUT.1206553581.0"
    }
    assert (only.end_ns[0] - only.start_ns[0], only.offset[1], only.size[1]) == (11_931_000, 0, 458752)


def test_a_seek_folds_into_the_read_behind_it_and_a_tell_before_the_close_stays(tmp_path):
    run = Run(1)
    run.opened(0, "/d/f", 0o102)
    run.call(0, "write", "/d/f", 0, 100, flags=AT_POSITION)
    run.call(0, "seek", "/d/f", 0, 0, done=10)
    run.call(0, "seek", "/d/f", 0, 0, done=20)
    run.call(0, "read", "/d/f", 20, 50, flags=AT_POSITION)
    run.call(0, "read", "/d/f", 70, 5)
    run.call(0, "seek", "/d/f", 0, 1, done=70)
    run.call(0, "close", "/d/f")
    found, _ = records(run, tmp_path)
    assert shown(found, found.offset, found.size) == [
        ("open", 0, 7), ("write0", 0, 100), ("read1", 20, 50), ("pread", 70, 5), ("seek", 70, 0), ("close", -1, 0),
    ]  # fmt: skip
    # The folded read begins when its seek does.
    assert found.start_ns[2] == 6 * MS


def test_a_wait_folds_into_its_call_where_no_other_is_under_way(tmp_path):
    run = Run(1)
    run.call(0, "mpi_open", "/d/f", requested=9)
    run.call(0, "mpi_seek", "/d/f", 0)
    run.call(0, "mpi_read", "/d/f", 0, 8, flags=NONBLOCKING | AT_POSITION)
    run.call(0, "mpi_wait", "/d/f", None, 8)
    run.call(0, "mpi_write", "/d/f", 8, 8, flags=NONBLOCKING)
    run.call(0, "mpi_write", "/d/f", 16, 8, flags=NONBLOCKING)
    run.call(0, "mpi_wait", "/d/f", None, 8)
    run.call(0, "mpi_wait", "/d/f", None, 8)
    run.call(0, "mpi_close", "/d/f")
    found, _ = records(run, tmp_path)
    assert names_of(found) == [
        "mpi_open", "mpi_iread11", "mpi_iwrite_at0", "mpi_iwrite_at0", "mpi_wait", "mpi_wait", "mpi_close",
    ]  # fmt: skip
    # From the read's return at 5 ms to the wait at 6 ms the program did something else; the request ends with the wait.
    assert (found.held_ns[1], found.end_ns[1]) == (MS, 7 * MS)


@pytest.mark.parametrize(
    ("op", "flags", "name"),
    [
        ("mpi_write", 0, "mpi_write_at"), ("mpi_read", COLLECTIVE, "mpi_read_at_all"),
        ("mpi_read", AT_POSITION, "mpi_read0"), ("mpi_write", AT_POSITION | COLLECTIVE, "mpi_write_all0"),
        ("mpi_read", SHARED_POINTER, "mpi_read_shared"),
        ("mpi_write", SHARED_POINTER | COLLECTIVE, "mpi_write_ordered"),
        ("mpi_write", NONBLOCKING | COLLECTIVE, "mpi_iwrite_at_all0"), ("mpi_read", NONBLOCKING, "mpi_iread_at0"),
        ("mpi_sync", COLLECTIVE, "mpi_sync"), ("mpi_get_size", 0, "mpi_get_size"), ("mpi_delete", 0, "mpi_delete"),
    ],
)  # fmt: skip
def test_flags_tell_the_operation(op, flags, name, tmp_path):
    run = Run(1)
    run.call(0, "mpi_open", "/d/f", requested=9)
    run.call(0, op, "/d/f", 0, 8, flags=flags)
    run.call(0, "mpi_close", "/d/f")
    found, _ = records(run, tmp_path)
    assert name in names_of(found)


def test_what_is_made_inside_a_call_of_mpi_is_no_request(tmp_path):
    run = Run(1)
    run.call(0, "mpi_open", "/d/f", requested=9)
    run.call(0, "open", "/d/f", 0, 0, parent=0, parent_thread=1)
    run.call(0, "mpi_write", "/d/f", 0, 8)
    run.call(0, "write", "/d/f", 0, 8, parent=2, parent_thread=1)
    run.call(0, "extent", "/d/f", 0, 4, parent=2, parent_thread=1)
    run.call(0, "mpi_close", "/d/f")
    found, _ = records(run, tmp_path)
    assert names_of(found) == ["mpi_open", "mpi_write_at", "mpi_close"]


def test_a_failed_open_asks_for_the_name_alone_and_names_that_never_exist_go(tmp_path):
    run = Run(1)
    run.call(0, "open", "/d/absent", done=-1, errno=2)
    run.call(0, "open", "/d/f", done=-1, errno=2)
    run.call(0, "stat", "/d/f", done=-1, errno=2)
    run.opened(0, "/d/f")
    run.call(0, "write", "/d/f", 0, 8, done=-1, errno=28)
    run.call(0, "close", "/d/f")
    found, names = records(run, tmp_path)
    assert names_of(found) == ["access", "stat", "open", "close"]
    assert {names[file] for file in found.file} == {"/d/f"}


def test_sessions_without_open_or_close_get_them(tmp_path):
    run = Run(1)
    run.call(0, "read", "/d/log", 0, 8, fd=9)
    run.opened(0, "/d/f")
    run.call(0, "write", "/d/f", 0, 8, flags=AT_POSITION)
    run.call(0, "read", "/d/log", 8, 8, fd=9)
    run.call(0, "write", "/d/f", 8, 8, fd=4)
    found, _ = records(run, tmp_path)
    assert shown(found, found.session) == [
        ("open", 0), ("pread", 0), ("open", 1), ("write0", 1), ("pread", 0), ("close", 0), ("pwrite", 1), ("close", 1),
    ]  # fmt: skip
    assert found.size[[0, 2]].tolist() == [1, 6]


def test_processes_without_ranks_count_in_their_order_and_idle_ones_not_at_all(tmp_path):
    run = Run(3)
    for rank in (1, 2):
        run.opened(rank, "/d/f")
        run.call(rank, "write", "/d/f", 0, 8)
    run.opened(0, "/etc/passwd", 0)
    for rows in run.rows.values():
        for row in rows:
            row |= {"rank": None, "world": None}
    found = sanitise(run.write(tmp_path / "t"))
    assert (found.processes, sorted(found.records)) == (2, [0, 1])


def test_what_lies_nowhere_near_data_is_start_up(tmp_path):
    run = Run(1)
    run.call(0, "stat", "/elsewhere/x")
    run.call(0, "mkdir", "/d/sub")
    run.opened(0, "/d/f")
    run.call(0, "close", "/d/f")
    found, names = records(run, tmp_path)
    assert [names[file] for file in found.file] == ["/d/sub", "/d/f", "/d/f"]


def test_a_relative_name_is_seen_from_the_directory_of_the_run(tmp_path):
    run = Run(1)
    run.call(0, "stat", "sub/../f")
    run.opened(0, "/d/f")
    run.call(0, "close", "/d/f")
    run.call(0, "unlink", "./f")
    found, names = records(run, tmp_path)
    assert [names[file] for file in found.file] == ["/d/f"] * 4


@pytest.mark.parametrize(
    ("ranges", "size", "step", "view"),
    [
        ([(0, 1024, 8, 4096, False)], 8192, 32768, (1024, 4096, 1, 4096)),
        ([(0, 1024, 8, 4096, False)], 8192, 29696, (1024, 4096, 8, 29696)),
        ([(0, 1024, 8, 4096, False)], 8192, 0, (1024, 4096, 1, 4096)),
        ([(0, 16, 4, 64, False), (0, 0, 3, 1000, True)], 192, 3000, (16, 64, 4, 1000)),
        ([], 100, 400, (100, 400, 1, 400)),
        ([], 100, 100, (0, 0, 0, 0)),
        ([(0, 10, 1, 0, False), (100, 30, 1, 0, False), (180, 20, 1, 0, False)], 60, 0, (20, 90, 1, 90)),
        # As BTIO's planes: rows at one distance, the next plane a row further on; all ranks' pieces must stay apart.
        ([(0, 16, 8, 64, False), (528, 16, 8, 64, False), (1056, 16, 8, 64, False)], 384, 0, (16, 64, 1, 64)),
        ([(0, 16, 1, 64, False), (40, 16, 1, 64, False), (140, 16, 1, 64, False)], 48, 0, (16, 70, 1, 70)),
        ([(0, 16, 3, 64, False), (192, 40, 3, 64, False)], 168, 0, (28, 66, 1, 66)),
    ],
)
def test_a_view_is_told_from_the_ranges_of_the_calls_behind_it(ranges, size, step, view):
    assert view_from(ranges, size, step) == view


OPS = ("open", "close", "read", "write", "seek", "stat", "truncate", "sync", "mmap", "unlink", "opendir", "dup", "odd")
MPI_OPS = ("mpi_open", "mpi_close", "mpi_read", "mpi_write", "mpi_seek", "mpi_wait", "view", "mpi_sync", "extent")
CALL = st.tuples(
    st.sampled_from(OPS + MPI_OPS), st.sampled_from(("/d/a", "/d/b", "/e/c")),
    st.integers(-1, 100), st.integers(-1, 50),
    st.sampled_from((0, 4, 8, 16, 24, 32, 2048)), st.integers(-1, 5), st.integers(0, 9),
)  # fmt: skip


@given(st.lists(CALL, max_size=40))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_trace_holds_sessions_begin_with_an_open_and_end_with_a_close(tmp_path, calls):
    run = Run(1)
    run.opened(0, "/d/first")
    for op, file, offset, size, flags, holder, start in calls:
        which = {"handle": holder} if op in MPI_OPS else {"fd": holder}
        aux = {"aux": flags} if op not in MPI_OPS or op == "extent" else {}
        run.call(0, op, file, offset, size, flags=flags, start=start * MS, **which, **aux)
    found, _ = records(run, tmp_path)
    kinds = by_number()
    for session in set(found.session.tolist()) - {-1}:
        rows = np.flatnonzero(found.session == session)
        ops = [kinds[op].name for op in found.op[rows].tolist()]
        assert ops[0] in ("open", "opendir", "mpi_open") and ops[-1] in ("close", "mpi_close")
        assert not {"open", "mpi_open", "close", "mpi_close"} & set(ops[1:-1])
        assert len(set(found.file[rows].tolist())) == 1
    alone = [kinds[op] for op in found.op[found.session < 0].tolist()]
    assert all(each.place != "inside" for each in alone)
    assert set(found.op.tolist()) <= {each.number for each in operations().values()}
