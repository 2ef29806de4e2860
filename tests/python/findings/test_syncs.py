"""Syncs: their time is I/O of a run, a page tells of it, they are a finding where a process waits for little else."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import write_rows
from stripewise.findings import DEFAULT_CLUSTER, facts_of, findings_of, summary_of_run
from stripewise.run.measure import in_flight_seconds, measured
from stripewise.workload import Workload
from stripewise.workload.syncs import written_back
from stripewise.workload.trace import read_trace
from support import MIB, file_of
from test_cli import stripewise


def timed(place, rows):
    """A trace of (rank, op, file, offset, bytes, milliseconds): each begins when the one before it ended."""
    rows = list(rows)
    trace = write_rows(place, [row[:5] for row in rows])
    file = trace / "trace.parquet"
    table = pq.read_table(file)
    end = np.cumsum([int(row[5] * 1e6) for row in rows])
    for name, values in (("start_ns", np.concatenate([[0], end[:-1]])), ("end_ns", end)):
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values, pa.int64()))
    pq.write_table(table, file)
    return trace


def checkpoints(count, size, sync_ms, write_ms=0.4, rank=0):
    """So many writes with a sync behind each."""
    for number in range(count):
        yield (rank, "write", "/d/f", number * size, size, write_ms)
        yield (rank, "sync", "/d/f", 0, 0, sync_ms)


def test_a_page_has_the_time_of_syncs_and_names_them_as_the_cause(tmp_path):
    trace = timed(tmp_path / "t", checkpoints(100, MIB, 11.8))
    (found,) = findings_of(facts_of(trace), DEFAULT_CLUSTER)
    assert (found.cause, found.file, found.command) == ("sync", "/d/f", "")
    assert found.price is not None and (found.price.low, found.price.high) == (pytest.approx(1.18),) * 2
    assert found.evidence == (
        "100 syncs (fsync and the like) for 1.0 MiB written each, on average",
        "rank 0 is 1.18 s in syncs, 0.04 s in its reads and writes",
    )
    page = stripewise("show", trace).stdout
    assert "; first to last request of this run: 1.21 s):" in page
    assert "in 100 calls that sync: 1.18 s of all processes" in page and "costs 1.18 s, measured in this run" in page
    run = json.loads(stripewise("show", trace, "--json").stdout)["run"]
    assert (run["syncs"], run["syncs_s"]) == (100, pytest.approx(1.18))


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (checkpoints(8, MIB, 500.0), "too few for a habit"),
        (checkpoints(100, MIB, 0.9, 0.4), "they take no time"),
        (checkpoints(100, MIB, 10.0, 11.0), "the writes take more"),
        (checkpoints(100, 32 * MIB, 300.0), "what is written takes the time"),
    ],
)
def test_syncs_that_do_not_hold_a_run_up_are_no_finding(tmp_path, rows, why):
    assert findings_of(facts_of(timed(tmp_path / "t", rows)), DEFAULT_CLUSTER) == (), why


def test_the_price_of_syncs_is_of_the_longest_process_and_of_all(tmp_path):
    rows = [*checkpoints(20, MIB, 10.0), *checkpoints(20, MIB, 30.0, rank=1)]
    (found,) = findings_of(facts_of(timed(tmp_path / "t", rows)), DEFAULT_CLUSTER)
    assert (found.price.low, found.price.high) == (pytest.approx(0.6), pytest.approx(0.8))
    assert summary_of_run(facts_of(tmp_path / "t")).syncs == 40


def test_a_run_is_measured_with_its_syncs_and_with_closes_of_what_it_wrote(tmp_path):
    rows = [
        *checkpoints(100, MIB, 11.8),
        (0, "close", "/d/f", None, 0, 500.0),
        (0, "sync", "/d/other", 0, 0, 9000.0),
        (0, "read", "/d/f", 0, MIB, 2.0),
    ]
    trace = timed(tmp_path / "t", rows)
    waits = written_back(trace, {"/d/f"})
    run = measured("def", (), (), 99.0, {}, read_trace(trace), waits)
    assert run.io_seconds == pytest.approx(0.04 + 1.18 + 0.5 + 0.002)
    assert run.write_mb_s == pytest.approx(100 * MIB / 1.72 / 1e6) and run.read_mb_s == pytest.approx(MIB / 2000)
    # A program that only reads has no rate of writes.
    assert measured("def", (), (), 9.0, {}, Workload((file_of([0], [10]),), 1), waits).write_mb_s is None


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6), st.booleans()), max_size=12))
def test_what_overlaps_is_waited_for_once(rows):
    writes = [(at, at + took) for at, took, is_sync in rows if not is_sync]
    file = file_of([0] * len(writes), [1] * len(writes), [True] * len(writes))
    file.requests["start_ns"], file.requests["end_ns"] = np.array(writes, dtype=np.int64).reshape(-1, 2).T
    waits = np.array([(at, at + took) for at, took, is_sync in rows if is_sync], dtype=np.int64).reshape(-1, 2)
    instants = {instant for at, took, _ in rows for instant in range(at, at + took)}
    found = in_flight_seconds(Workload((file,), 1), True, waits)
    assert found == (len(writes), pytest.approx(len(instants) / 1e9))
