"""CSV: our own columns and units, the fields of IOSIG's traces, and lines that are wrong."""

from __future__ import annotations

import pytest

from imports import brief, imported
from stripewise.errors import WorkloadError
from stripewise.workload.trace import read_trace

IOSIG = """rank,pid,file_id,offset,size,operation,start_s,end_s
0,100,7,0,4096,MPI_File_read_at_all,0.5,0.75
1,101,8,1048576,65536,MPI_File_iwrite,0.25,1
"""
PATHS = "file_id,path\n7,/data/in\n8,/data/out\n"


def test_every_column_of_the_trace_can_be_given(tmp_path):
    text = (
        "process,pid,rank,world,thread,host,seq,layer,op,file,file2,fd,offset,requested,done,start_ns,end_ns,collective,"
        "managed,errno,flags,aux\n"
        "3,10,0,2,11,n0,5,posix,rename,/a,/b,-1,0,0,-1,100,200,false,true,13,256,7\n"
    )
    meta, rows = imported(tmp_path, "csv", text)
    assert rows == [
        {
            "process": 0, "pid": 10, "rank": 0, "world": 2, "thread": 11, "host": "n0", "seq": 5, "layer": "posix",
            "op": "rename", "file": "/a", "file2": "/b", "fd": -1, "handle": None, "comm_size": None, "offset": 0,
            "requested": 0, "done": -1, "start_ns": 0, "end_ns": 100, "collective": False, "managed": True,
            "errno": 13, "flags": 256 | 2, "aux": 7, "ordinal": None, "parent": None, "parent_thread": None,
        }
    ]  # fmt: skip
    assert meta["partial"] == [] and meta["imported"]["format"] == "csv"


def test_rows_of_the_mpi_layer_have_handles_and_communicators(tmp_path):
    text = (
        "layer,op,file,handle,comm_size,offset,done,start_ns,end_ns\n"
        "mpi,mpi_write,/a,4,16,0,10,1,2\nmpi,write,/a,4,16,10,10,2,3\nposix,write,/a,,,0,20,1,3\n"
    )
    _, rows = imported(tmp_path, "csv", text)
    assert brief(rows, "layer", "op", "handle", "comm_size", "fd") == [
        ("mpi", "mpi_write", 4, 16, None), ("posix", "write", None, None, -1), ("mpi", "mpi_write", 4, 16, None),
    ]  # fmt: skip


@pytest.mark.parametrize(("unit", "value"), [("ns", "2000000000"), ("us", "2000000"), ("ms", "2000"), ("s", "2.0")])
def test_times_are_in_the_unit_that_the_column_says(tmp_path, unit, value):
    meta, rows = imported(tmp_path, "csv", f"op,file,offset,size,start_{unit},end_s\nread,/a,0,1,{value},2.5\n")
    assert brief(rows, "start_ns", "end_ns", "requested", "done") == [(0, 500_000_000, 1, 1)]
    assert meta["zero_unix_ns"] == 0


def test_the_fields_of_iosig_become_requests(tmp_path):
    meta, rows = imported(tmp_path, "csv", IOSIG, PATHS)
    assert brief(rows, "rank", "pid", "op", "file", "offset", "done", "start_ns", "collective") == [
        (0, 100, "read", "/data/in", 0, 4096, 250_000_000, True),
        (1, 101, "write", "/data/out", 1048576, 65536, 0, False),
    ]
    assert any("only MPI-IO calls are known" in reason for reason in meta["partial"])
    workload = read_trace(tmp_path / "out")
    assert workload.processes == 2 and workload.requests == 2 and workload.partial == tuple(meta["partial"])


def test_rows_of_a_process_stand_by_start_and_processes_by_rank(tmp_path):
    text = "rank,op,file,offset,size,start_ns,end_ns\n1,read,/a,0,1,5,6\n0,read,/a,1,1,9,9\n0,read,/a,2,1,7,8\n"
    meta, rows = imported(tmp_path, "csv", text)
    assert brief(rows, "process", "rank", "offset", "start_ns") == [(0, 0, 2, 2), (0, 0, 1, 4), (1, 1, 0, 0)]
    assert [process["rank"] for process in meta["processes"]] == [0, 1]


def test_an_empty_offset_is_unknown(tmp_path):
    _, rows = imported(tmp_path, "csv", "op,file,offset,size,start_ns,end_ns\nread,/a,,1,5,6\n")
    assert brief(rows, "offset", "flags") == [(None, 32)]


def test_names_in_quotes_and_of_any_bytes_are_kept(tmp_path):
    text = 'op,file,offset,size,start_ns,end_ns\nread,"/a, ""b""",0,1,5,6\nread,/\udcff,0,1,5,6\n'
    _, rows = imported(tmp_path, "csv", text)
    assert [row["file"] for row in rows] == ['/a, "b"', "/\\xff"]


HEADER = "op,file,offset,size,start_ns,end_ns"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("read,/a,0,1,5", "has 5 fields, the header 6"),
        ("read,/a,0,1,5,6,7", "has 7 fields, the header 6"),
        ("fly,/a,0,1,5,6", "its op is not a known operation"),
        ("read,/a,x,1,5,6", "its offset 'x' is not a whole number"),
        ("read,/a,-5,1,5,6", "its offset is out of range"),
        ("read,/a,99999999999999999999,1,5,6", "its offset '99999999999999999999' is out of range"),
        ("read,/a,0,1,6,5", "it ends before it starts"),
        ("read,/a,0,1,-1,5", "its start_ns is not a time from 0 on"),
        ("read,/a,0,1,,5", "its start_ns is empty"),
        ('read,"/a,0,1,5,6', "unexpected end of data"),
    ],
)
def test_a_bad_line_is_named_or_skipped(tmp_path, line, why):
    text = f"{HEADER}\nread,/a,0,1,5,6\n# a comment\n\n{line}\nread,/a,1,1,7,8\n"
    with pytest.raises(WorkloadError) as caught:
        imported(tmp_path, "csv", text)
    assert str(caught.value).startswith(f"{tmp_path}/trace0.txt: line 5: {why}")
    assert "--lenient" in str(caught.value) and not list((tmp_path / "out").iterdir())
    meta, rows = imported(tmp_path, "csv", text, lenient=True)
    assert [row["offset"] for row in rows] == [0, 1]
    assert meta["skipped"][0]["why"].startswith("1 bad line") and "1 bad lines" in meta["partial"][-1]


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["op,file,offset,size,start_ns,wings\n"], "column 'wings' is not a known one; known are aux, "),
        (["op,file,ofset,size,start_ns\n"], "column 'ofset' is not a known one; did you mean offset?"),
        (["op,op,file,offset,size,start_ns\n"], "column 'op' stands twice"),
        (["op,file,size,start_ns\n"], "has no column offset"),
        (["op,file,offset,start_ns\n"], "has no column done or requested or size"),
        ([f"{HEADER}\n"], "holds no record"),
        ([IOSIG], "its file_id has no path"),
        ([""], "is not a known one"),
    ],
)
def test_a_file_without_what_is_needed_is_refused(tmp_path, texts, why):
    with pytest.raises(WorkloadError, match=why):
        imported(tmp_path, "csv", *texts)


def test_a_million_lines_are_written_in_row_groups(tmp_path, monkeypatch):
    """In small: lines, rows that wait, and row groups are some tens."""
    monkeypatch.setattr("stripewise.importing.comma.PIECE_LINES", 64)
    monkeypatch.setattr("stripewise.importing.writer.GROUP_ROWS", 50)
    monkeypatch.setattr("stripewise.importing.writer.WAITING_ROWS", 80)
    lines = [f"{n % 3},read,/f{n % 7},{n},1,{1000 - n},{1001 - n}" for n in range(1000)]
    meta, rows = imported(tmp_path, "csv", "\n".join([f"rank,{HEADER}", *lines]))
    assert [row["offset"] for row in rows] == [n for rank in range(3) for n in range(999, -1, -1) if n % 3 == rank]
    assert all(row["file"] == f"/f{row['offset'] % 7}" for row in rows)
    assert {file["path"]: file["reads"] for file in meta["files"]} == {
        f"/f{file}": len(range(file, 1000, 7)) for file in range(7)
    }
