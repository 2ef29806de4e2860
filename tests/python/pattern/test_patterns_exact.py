"""Patterns give back every record, of any trace; from runs at 4, 8 and 12 processes every request of a run at 32."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from generators import ALL, REGULAR
from pattern_traces import read_table, write_trace
from stripewise.errors import WorkloadError
from stripewise.pattern import predicted, report_of
from stripewise.pattern.local import RecognisedFile, expanded
from stripewise.pattern.records import FileRecords, Kind, read_records


def assert_given_back(records: FileRecords) -> RecognisedFile:
    """What the patterns of each stream expand to, put back into the rows, are the records."""
    found = RecognisedFile(records)
    back = [np.zeros_like(column) for column in (records.kind, records.offset, records.size)]
    for stream in range(found.streams):
        rows = found.rows(stream)
        for column, values in zip(back, found.expand(stream), strict=True):
            column[rows] = values
    assert [column.tolist() for column in back] == [
        column.tolist() for column in (records.kind, records.offset, records.size)
    ]
    return found


@pytest.mark.parametrize("name", ALL)
def test_patterns_of_each_generator_expand_to_its_requests(name, tmp_path):
    write_trace(tmp_path / "t", ALL[name](4))
    trace = read_records(tmp_path / "t")
    assert_given_back(trace.files[0])


@settings(max_examples=200, deadline=None)
@given(data=st.data(), rows=st.integers(1, 60))
def test_patterns_of_any_records_expand_to_them(data, rows):
    """Whatever 64 bits hold, in streams that interleave; nothing panics."""

    def column(dtype, values):
        return data.draw(arrays.arrays(dtype, rows, elements=values))

    small = st.integers(0, 3)
    whole = st.one_of(small, st.integers(-(2**63), 2**63 - 1))
    records = FileRecords(
        "/f",
        True,
        column(np.int64, small),
        column(np.uint64, small),
        column(np.uint32, small),
        tuple(Kind("read") for _ in range(4)),
        column(np.int64, whole),
        column(np.int64, whole),
        np.arange(rows, dtype=np.int64),
        np.arange(rows, dtype=np.int64),
    )
    assert_given_back(records)


@pytest.mark.parametrize("name", REGULAR)
def test_a_formula_gives_every_rank_its_requests(name, tmp_path):
    made = REGULAR[name](12)
    report = report_of(write_trace(tmp_path / "t", made))
    [file] = report.files
    back = {rank: [] for rank in made}
    for each in file.patterns:
        assert each.pattern.is_symbolic and each.pattern.ranks == tuple(range(12)), each.sentence
        for rank in each.pattern.ranks:
            kind, offset, size = expanded(each.pattern.tree(rank))
            back[rank] += zip((file.kinds[k].op for k in kind), offset.tolist(), size.tolist(), strict=True)
    assert back == made


@pytest.mark.parametrize("name", REGULAR)
def test_runs_with_4_8_and_12_processes_predict_the_one_with_32(name, tmp_path):
    generate = REGULAR[name]
    reports = [report_of(write_trace(tmp_path / f"p{p}", generate(p))) for p in (4, 8, 12)]
    prediction = predicted(reports, 32)
    assert not prediction.files[0].left_out
    prediction.write(tmp_path / "out")
    assert read_table(tmp_path / "out") == generate(32)


def test_random_requests_are_not_predicted(tmp_path):
    reports = [report_of(write_trace(tmp_path / f"p{p}", ALL["mpiio_random"](p))) for p in (4, 8)]
    prediction = predicted(reports, 16)
    assert prediction.doubts() and "not predicted" in prediction.doubts()[0]


def test_formulas_that_disagree_are_told(tmp_path):
    """Two runs cannot tell 16 / P from a line."""

    def made(processes):
        return {rank: [("write", i * 4096, 4096) for i in range(10 + processes)] for rank in range(processes)}

    reports = [report_of(write_trace(tmp_path / f"p{p}", made(p))) for p in (4, 8, 12)]
    prediction = predicted(reports, 32)
    prediction.write(tmp_path / "out")
    assert read_table(tmp_path / "out") == made(32)
    reports = [report_of(write_trace(tmp_path / f"q{p}", ALL["mpiio_sequential"](p))) for p in (4, 9)]
    assert any("or" in doubt for doubt in predicted(reports, 25).doubts())


def test_runs_of_one_size_predict_nothing(tmp_path):
    reports = [report_of(write_trace(tmp_path / f"p{n}", ALL["hpio"](4))) for n in range(2)]
    with pytest.raises(WorkloadError, match="differ in their number of processes"):
        predicted(reports, 8)


def test_row_groups_with_files_of_their_own_are_kept_apart(tmp_path):
    """Each row group has a dictionary of its own for its texts."""
    for name in "ab":
        write_trace(tmp_path / name, ALL["hpio"](2), path=f"/data/{name}")
    tables = [pq.read_table(tmp_path / name / "trace.parquet") for name in "ab"]
    with pq.ParquetWriter(tmp_path / "trace.parquet", tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    report = report_of(tmp_path)
    assert [(file.path, file.records, len(file.patterns)) for file in report.files] == [
        ("/data/a", 256, 1),
        ("/data/b", 256, 1),
    ]
