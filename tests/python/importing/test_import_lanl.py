"""LANL-Trace's text: PIONEER's tables 2.1 and 2.3, and calls inside each other."""

from __future__ import annotations

import pytest

from imports import brief, imported
from stripewise.errors import WorkloadError
from stripewise.importing.lanl.reader import sanitised
from stripewise.importing.mpi_names import mpi_operation
from stripewise.importing.records import COLLECTIVE, IMPLICIT_OFFSET, NONBLOCKING, OP

#: PIONEER, table 2.3, before sanitization.
OPEN = """10:48:52.404754 MPI_File_open(92, 0x807a7f8, 34, 0x8078e38, 0xbf83b9e0 <unfinished ...>
10:48:52.405470 SYS_statfs64(0x807a7f8, 84, 0xbf83b788, 0xbf83b788, 0x81dff4) = 0 <0.008302>
10:48:52.414801 SYS_umask(022) = 077 <0.000025>
10:48:52.414866 SYS_umask(077) = 022 <0.000017>
10:48:52.414936 SYS_open("/panfs/caddypan.lanl.gov/scratch1/nobody/tests/OUTPUT.1206553581.0", 32768, 0600) = 36\
 <0.000301>
10:48:52.416760 <... MPI_File_open resumed> ) = 0 <0.011931>
"""
#: The rest of its table 2.1.
REST = """10:48:52.416807 MPI_Wtime(0xf6000000, 0x41b419c7, 0x1dc50cea, 0x4067346f, 0 <unfinished ...>
10:48:52.417341 <... MPI_Wtime resumed> ) = 0x6490a356 <0.000416>
10:48:52.417419 MPI_Wtime(0x75a0a0, 0x8053cc3, 0x45fe1127, 0x4041e0d0, 0x81f8b8 <unfinished ...>
10:48:52.417922 <... MPI_Wtime resumed> ) = 0x2f661f1e <0.000401>
10:48:52.417986 MPI_File_seek(0x807a8a0, 0, 0, 600, 0x406734d6) = 0 <0.000195>
10:48:52.418364 MPI_File_iread(0x807a8a0, 0xa7d19008, 458752, 1, 0xbf83b898 <unfinished ...>
10:48:52.418681 SYS_read(36, "EDITED"..., 458752) = 458752 <0.029523>
10:48:52.449365 <... MPI_File_iread resumed> ) = 0 <0.030849>
"""
FILE = "/panfs/caddypan.lanl.gov/scratch1/nobody/tests/OUTPUT.1206553581.0"


def test_the_open_of_table_2_3_is_one_line():
    [only] = sanitised(OPEN.splitlines())
    assert only.line() == f"10:48:52.404754 MPI_File_open {FILE} NULL NULL 0.011931 MPI_COMM_SELF,34"


def test_the_read_of_table_2_1_knows_its_file_offset_and_size():
    *_, read = sanitised((OPEN + REST).splitlines())
    assert read.line() == f"10:48:52.418364 MPI_File_iread {FILE} 0 458752 0.030849 NULL"


def test_both_layers_stand_in_the_trace_children_within_the_time_of_their_parent(tmp_path):
    meta, rows = imported(tmp_path, "lanl", OPEN + REST)
    assert brief(rows, "layer", "op", "offset", "requested", "done") == [
        ("mpi", "mpi_open", None, 0, 0), ("posix", "open", 0, 0, 36), ("mpi", "mpi_seek", 0, 0, 0),
        ("mpi", "mpi_read", 0, 458752, 458752), ("posix", "read", 0, 458752, 458752),
    ]  # fmt: skip
    assert {row["file"] for row in rows} == {FILE}
    opened, inner = rows[0], rows[1]
    assert (
        opened["end_ns"] == 11_931_000 and opened["start_ns"] < inner["start_ns"] < inner["end_ns"] < opened["end_ns"]
    )
    [file] = meta["files"]
    assert (file["opens"], file["reads"], file["bytes_read"], file["extent_bytes"]) == (1, 1, 458752, 458752)
    assert any("without a date" in reason for reason in meta["partial"])


def test_offsets_of_system_calls_follow_the_position(tmp_path):
    text = """00:00:01.0 SYS_open("/f", 0102, 0600) = 3 <0.000001>
00:00:02.0 SYS_write(3, "x"..., 100) = 100 <0.000001>
00:00:03.0 SYS__llseek(3, 1, 16, 0xbf, 0) = 0 <0.000001>
00:00:04.0 SYS_write(3, "x"..., 100) = 50 <0.000001>
00:00:05.0 SYS_pread64(3, "x"..., 10, 7, 1) = 10 <0.000001>
00:00:06.0 SYS_read(3, "x"..., 10) = -5 <0.000001>
00:00:07.0 SYS_lseek(3, 5, 0) = 5 <0.000001>
00:00:08.0 SYS_read(3, "x"..., 10) = 10 <0.000001>
"""
    _, rows = imported(tmp_path, "lanl", text)
    data = [row for row in rows if row["op"] in ("read", "write")]
    assert brief(data, "op", "offset", "done", "errno") == [
        ("write", 0, 100, 0), ("write", (1 << 32) + 16, 50, 0), ("read", (1 << 32) + 7, 10, 0),
        ("read", (1 << 32) + 66, -1, 5), ("read", 5, 10, 0),
    ]  # fmt: skip


def test_times_pass_midnight(tmp_path):
    text = '23:59:59.5 SYS_open("/f", 0, 0) = 3 <0.1>\n00:00:00.5 SYS_read(3, "x", 9) = 9 <0.1>\n'
    assert imported(tmp_path, "lanl", text)[0]["duration_ns"] == 1_100_000_000


def test_a_call_that_never_returned_is_told(tmp_path):
    meta, _ = imported(tmp_path, "lanl", OPEN + REST.partition("10:48:52.449365")[0])
    assert any("1 calls had not returned" in reason for reason in meta["partial"])


@pytest.mark.parametrize(
    "line",
    [
        "10:48:53.0 <... MPI_File_read resumed> ) = 0 <0.1>",
        "10:48:53.0 SYS_read(36",
        "nonsense",
        "25:00:00.0 SYS_x() = 0",
    ],
)
def test_a_bad_line_is_named_or_skipped(tmp_path, line):
    text = OPEN + line + "\n" + REST
    with pytest.raises(WorkloadError, match=r"trace0.txt: line 7: .*--lenient"):
        imported(tmp_path, "lanl", text)
    meta, rows = imported(tmp_path, "lanl", text, lenient=True)
    assert len(rows) == 5 and meta["skipped"]


@pytest.mark.parametrize(
    ("name", "op", "flags"),
    [
        ("MPI_File_read", "mpi_read", IMPLICIT_OFFSET),
        ("MPI_File_iread_at", "mpi_read", NONBLOCKING),
        ("MPI_File_write_at_all", "mpi_write", COLLECTIVE),
        ("MPI_File_write_ordered", "mpi_write", COLLECTIVE | IMPLICIT_OFFSET),
        ("MPI_File_read_at_all_begin", "mpi_read", COLLECTIVE | NONBLOCKING),
        ("MPI_File_iwrite_shared_c", "mpi_write", NONBLOCKING | IMPLICIT_OFFSET),
        ("MPI_File_set_view", "view", COLLECTIVE),
    ],
)
def test_mpi_calls_are_told_by_their_names(name, op, flags):
    assert mpi_operation(name) == (OP[op], flags)


@pytest.mark.parametrize("name", ["MPI_File_read_all_end", "MPI_File_get_info", "MPI_Send", "read"])
def test_other_calls_are_none(name):
    assert mpi_operation(name) is None
