"""The trace reader: what counts as a request, which files are kept, and traces that are none."""

from __future__ import annotations

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stripewise.errors import WorkloadError
from stripewise.findings import facts_of
from stripewise.pattern.records import read_records
from stripewise.run.collect import collect_logs
from stripewise.view import read_requests
from stripewise.workload.counted import Touched
from stripewise.workload.requests import dealt
from stripewise.workload.trace import FLAG_MANAGED, FLAG_UNKNOWN_OFFSET, partial_reasons, read_trace, wanted_files
from support import KIB, MIB

TYPES = {
    "pid": pa.int32(), "rank": pa.int32(), "world": pa.int32(), "layer": pa.string(), "op": pa.string(),
    "file": pa.string(), "offset": pa.int64(), "requested": pa.int64(), "done": pa.int64(), "start_ns": pa.int64(),
    "end_ns": pa.int64(), "flags": pa.int32(),
}  # fmt: skip


def row(**changes):
    base = {
        "pid": 10, "rank": None, "world": None, "layer": "posix", "op": "read", "file": "/data/f", "offset": 0,
        "requested": 4096, "done": 4096, "start_ns": 5, "end_ns": 9, "flags": 0,
    }  # fmt: skip
    return {**base, **changes}


def trace(tmp_path, *groups, columns=None, **types):
    """A collected trace of some row groups; `types` are other types of columns."""
    kept = {name: types.get(name, kind) for name, kind in TYPES.items() if columns is None or name in columns}
    schema = pa.schema(list(kept.items()))
    with pq.ParquetWriter(tmp_path / "trace.parquet", schema) as writer:
        for rows in groups:
            table = pa.table({name: [r[name] for r in rows] for name in kept}, schema=schema)
            writer.write_table(table)
    return tmp_path


def test_reads_and_writes_that_moved_bytes_are_requests(tmp_path):
    workload = read_trace(
        trace(
            tmp_path,
            [
                row(offset=8192, start_ns=20, end_ns=30),
                row(op="write", done=100, start_ns=7, end_ns=8),
                row(done=0), row(done=-1), row(op="open", done=3), row(op="truncate"),
                row(layer="mpi", op="mpi_read"), row(layer="mpi"),
                row(offset=None, flags=FLAG_UNKNOWN_OFFSET), row(offset=None), row(file=None),
            ],
        )
    )  # fmt: skip
    assert [file.path for file in workload.files] == ["/data/f"]
    requests = workload.files[0].requests
    assert requests[["write", "offset", "size"]].tolist() == [(True, 0, 100), (False, 8192, 4096)]
    assert workload.files[0].size_bytes == 8192 + 4096


def test_row_groups_of_several_processes_are_merged_in_time(tmp_path):
    workload = read_trace(
        trace(tmp_path, [row(pid=1, start_ns=30)], [row(pid=2, start_ns=10), row(pid=2, start_ns=20)])
    )
    assert workload.files[0].requests["start_ns"].tolist() == [10, 20, 30]
    assert workload.processes == 2


def test_the_mpi_world_is_the_number_of_processes(tmp_path):
    assert read_trace(trace(tmp_path, [row(rank=0, world=16)])).processes == 16


def wanted(names, patterns=()):
    """The files that count, of some that moved a byte each."""
    return list(wanted_files(dict.fromkeys(names, Touched(1)), patterns).files)


def test_managed_files_are_preferred_and_system_files_left_out(tmp_path):
    rows = [row(file="/data/a", flags=FLAG_MANAGED), row(file="/data/b"), row(file="/etc/hosts")]
    path = trace(tmp_path, rows)
    assert [file.path for file in read_trace(path).files] == ["/data/a"]
    assert [file.path for file in read_trace(path, ["/data/*"]).files] == ["/data/a", "/data/b"]
    assert [file.path for file in read_trace(trace(tmp_path, rows[1:])).files] == ["/data/b"]


def test_plans_patterns_pictures_and_findings_are_of_the_same_files(tmp_path):
    names = ["/data/b", "/dev/null", "/proc/self/maps", "<STDOUT>", "/usr/lib/x.so", "/v/site-packages/m.py", ""]
    path = trace(tmp_path, [row(file=name) for name in names])
    for patterns in ([], ["/data/*", "/proc/*"]):
        kept = wanted(names, patterns)
        assert kept == (["/data/b", "/proc/self/maps"] if patterns else ["/data/b"])
        assert [file.path for file in read_trace(path, patterns).files] == kept
        assert [file.path for file in read_records(path, patterns).files] == kept
        assert list(read_requests(path, patterns).files) == kept
        assert sorted(file.path for file in facts_of(path, patterns).files) == kept


def test_pictures_prefer_managed_files_as_plans_do_and_patterns_tell_of_all(tmp_path):
    path = trace(tmp_path, [row(file="/data/a", flags=FLAG_MANAGED)], [row(file="/data/b"), row(file="/etc/a")])
    assert list(read_requests(path).files) == [file.path for file in read_trace(path).files] == ["/data/a"]
    assert [file.path for file in read_records(path).files] == ["/data/a", "/data/b"]


@pytest.mark.parametrize(
    "name",
    ["/v/lib/python3.11/os.py", "/v/site-packages/m/data", "/d/m.py", "/d/__pycache__/m", "/d/m.so.1", "/d/a.pth"],
)
def test_code_is_left_out_where_it_is_not_asked_for(name):
    assert wanted([name, "/d/f.pyx", "/d/soap.sob"]) == ["/d/f.pyx", "/d/soap.sob"]
    assert wanted([name], [name]) == [name]


def test_patterns_are_taken_from_the_present_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert wanted([f"{tmp_path}/a", "/d/a"], ["a"]) == [f"{tmp_path}/a"]


def test_a_directory_whose_name_is_not_utf_8_is_read(tmp_path):
    (tmp_path / "t").mkdir()
    path = trace(tmp_path / "t", [row()]).rename(tmp_path / os.fsdecode(b"\xff"))
    for reader in (read_trace, read_records, read_requests, facts_of):
        assert len(reader(path).files) == 1


def test_optional_columns_may_be_missing(tmp_path):
    needed = {"op", "file", "offset", "done", "start_ns", "end_ns"}
    assert read_trace(trace(tmp_path, [row()], columns=needed)).processes == 1


def test_the_command_comes_from_meta_json(tmp_path):
    trace(tmp_path, [row()])
    (tmp_path / "meta.json").write_text(json.dumps({"version": 1, "command": ["mpiio", "--file", "f"]}))
    assert read_trace(tmp_path).command == ("mpiio", "--file", "f")


def test_records_that_were_lost_make_a_trace_partial(tmp_path):
    trace(tmp_path, [row()])
    (tmp_path / "meta.json").write_text(json.dumps({"records": 9, "dropped": 0, "missing": 0}))
    assert read_trace(tmp_path).partial == ()
    (tmp_path / "meta.json").write_text(json.dumps({"records": 9, "dropped": 1200, "missing": 0, "unnamed": 3}))
    told = ("1,200 records were dropped for want of space", "3 records have no name of a file")
    assert read_trace(tmp_path).partial == partial_reasons(tmp_path) == told


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda p: None, "run --trace"),
        (lambda p: (p / "10-1.log").write_bytes(b"x"), "stripewise collect"),
        (lambda p: (p / "trace.parquet").write_bytes(b"junk"), "cannot be read as Parquet"),
        (lambda p: trace(p, [row()], columns={"op", "file"}), "has no column 'offset'"),
        (lambda p: trace(p, [row(offset="x")], offset=pa.string()), "'offset' is of type string, not of whole numbers"),
        (lambda p: trace(p, [row(rank=0.5)], rank=pa.float64()), "'rank' is of type double, not of whole numbers"),
        (lambda p: trace(p, [row(op=3)], op=pa.int64()), "its column 'op' is of type int64, not text"),
        (lambda p: trace(p), "holds no read or write"),
        (lambda p: trace(p, [row(done=0)]), "holds no read or write"),
        (lambda p: (trace(p, [row()]), (p / "meta.json").write_text("{")), "meta.json: cannot be read as JSON"),
        (lambda p: (trace(p, [row()]), (p / "meta.json").write_text('{"version": 9}')), "version = 9 is newer"),
    ],
)
def test_a_directory_that_is_no_trace_is_one_sentence(tmp_path, prepare, said):
    prepare(tmp_path)
    with pytest.raises(WorkloadError) as caught:
        read_trace(tmp_path)
    assert said in str(caught.value) and str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("read", [read_trace, read_records, read_requests, facts_of])
def test_a_file_that_is_no_trace_is_told_so(tmp_path, read):
    (tmp_path / "passwd").write_text("root:x:0:0:")
    with pytest.raises(WorkloadError, match="passwd: is no trace; give the directory"):
        read(tmp_path / "passwd")


def test_a_directory_of_collected_traces_says_how_many_there_are(tmp_path):
    for name, told in (("def", "the collected trace of a run: "), ("psa", "collected traces of several runs: ")):
        (tmp_path / name).mkdir()
        trace(tmp_path / name, [row()])
        for read in (read_trace, lambda logs: collect_logs(logs, tmp_path / "out")):
            with pytest.raises(WorkloadError, match=f"{told}{tmp_path}/def"):
                read(tmp_path)


def test_a_missing_trace_is_named(tmp_path):
    with pytest.raises(WorkloadError, match="does not exist"):
        read_trace(tmp_path / "none")


def test_requests_of_processes_outside_mpi_stay_their_own(tmp_path):
    """Dealt out in turn, two processes that each read in order would make two that leap to and fro."""
    rows = [row(pid=10 + k % 3, offset=(k % 3) * MIB + k // 3 * KIB, start_ns=k, end_ns=k + 1) for k in range(12)]
    found = read_trace(trace(tmp_path, rows))
    (requests,) = dealt([each.requests for each in found.files], found.processes)
    assert found.processes == 3 and len(set(requests["rank"].tolist())) == 3 and (requests["rank"] < -1).all()
    for rank in set(requests["rank"].tolist()):
        assert set(np.diff(requests["offset"][requests["rank"] == rank]).tolist()) == {KIB}


def test_ranks_count_before_pids_and_without_either_requests_are_dealt_in_turn(tmp_path):
    (file,) = read_trace(trace(tmp_path, [row(rank=k % 2, world=2, pid=7 + k % 2) for k in range(4)])).files
    assert file.requests["rank"].tolist() == [0, 1, 0, 1]
    (file,) = read_trace(trace(tmp_path, [row(pid=-1) for _ in range(4)])).files
    assert file.requests["rank"].tolist() == [-1] * 4
    (requests,) = dealt([file.requests], 2)
    assert requests["rank"].tolist() == [0, 1, 0, 1]
