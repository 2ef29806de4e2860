"""A damaged trace is one error, and never taken for a run without requests."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from runs import write_rows
from stripewise.errors import NoRequestsError, WorkloadError
from stripewise.findings import facts_of
from stripewise.pattern.records import read_records
from stripewise.view import picture_of, read_requests
from stripewise.workload.trace import read_trace
from test_cli import stripewise

NAMES = [(0, "stat", f"/d/{k}", None, 0) for k in range(600)]
READERS = (read_trace, read_records, read_requests, facts_of)


def cut(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def without_offsets(path):
    pq.write_table(pq.read_table(path).drop_columns(["offset"]), path)


def with_bad(path, name):
    """Only the pages of one column do not unpack: its bytes are others."""
    found = pq.read_metadata(path).row_group(0)
    column = next(found.column(k) for k in range(found.num_columns) if found.column(k).path_in_schema == name)
    begin = column.dictionary_page_offset or column.data_page_offset
    data = bytearray(path.read_bytes())
    data[begin : begin + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(data)


def with_bad_sizes(path):
    with_bad(path, "done")


@pytest.mark.parametrize("damage", [cut, without_offsets, with_bad_sizes])
def test_a_damaged_trace_is_one_error_for_every_reader_and_command(damage, tmp_path):
    trace = write_rows(tmp_path / "t", [*NAMES, (0, "write", "/d/f", 0, 10)])
    damage(trace / "trace.parquet")
    for reader in READERS:
        with pytest.raises(WorkloadError) as raised:
            reader(trace)
        assert not isinstance(raised.value, NoRequestsError) and "trace.parquet" in str(raised.value)
    for words in ([], ["--json"], ["--html", tmp_path / "out.html"]):
        said = stripewise("show", trace, *words, code=1)
        assert "trace.parquet" in said.stderr and len(said.stderr.splitlines()) == 1 and not said.stdout
    assert not (tmp_path / "out.html").exists()


def test_what_only_one_reader_looks_at_is_damage_all_the_same(tmp_path):
    rows = [*NAMES, (0, "write", "/d/f", 0, 10)]
    process, world = write_rows(tmp_path / "pid", rows), write_rows(tmp_path / "world", rows)
    # The table of files is of numbers of processes, findings are not.
    with_bad(process / "trace.parquet", "pid")
    facts_of(process)
    for words in ([], ["--json"]):
        assert "cannot be read" in stripewise("show", process, *words, code=1).stderr
    # Patterns are of the size of the MPI world, pictures are not.
    with_bad(world / "trace.parquet", "world")
    requests = read_requests(world)
    with pytest.raises(WorkloadError, match="cannot be read"):
        picture_of(requests, world)


def test_a_sound_trace_without_requests_is_told_apart(tmp_path):
    trace = write_rows(tmp_path / "t", NAMES)
    for reader in READERS[:3]:
        with pytest.raises(NoRequestsError, match="moved a byte"):
            reader(trace)
    assert json.loads(stripewise("show", trace, "--json").stdout)["run"]["requests"] == 0
    with pytest.raises(NoRequestsError, match="moved a byte"):
        facts_of(write_rows(tmp_path / "u", [(0, "sync", "/d/f", None, 0)]))
