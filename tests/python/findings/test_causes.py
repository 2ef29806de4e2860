"""Causes: each is named where it is, and nothing is where there is none; any trace gives some page."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs import RUNS, opens, rng, write_rows
from stripewise.errors import WorkloadError
from stripewise.findings import DEFAULT_CLUSTER, facts_of, findings_of, summary_of_run
from stripewise.findings.causes.sieving import _advice as sieving_advice
from stripewise.findings.layers import MpiCalls
from stripewise.workload.trace import META_VERSION
from support import KIB, MIB
from test_cli import cluster_toml as cluster_toml
from test_cli import stripewise


def causes(place, rows):
    return [each.cause for each in findings_of(facts_of(write_rows(place, rows)), DEFAULT_CLUSTER)]


@pytest.mark.parametrize("name", RUNS)
def test_each_cause_is_named_and_no_other(name, tmp_path):
    rows, expected = RUNS[name]
    assert causes(tmp_path / "t", rows) == expected


def test_a_run_that_only_asks_for_names_has_a_page(tmp_path):
    trace = write_rows(tmp_path / "t", [(0, "stat", f"/d/{k}", None, 0) for k in range(600)])
    said = json.loads(stripewise("show", trace, "--json").stdout)
    assert said["files"] == [] and [each["cause"] for each in said["findings"]] == ["metadata"]
    assert said["run"]["calls"] == 600
    assert "a storm of calls by name" in stripewise("show", trace).stdout


def test_prices_are_those_of_the_cluster_that_is_given(tmp_path, cluster_toml):
    rows, _ = RUNS["small, interleaved"]
    trace = write_rows(tmp_path / "t", rows)
    own, given_ = (
        json.loads(stripewise("show", trace, "--json", *words).stdout) for words in ([], ["--cluster", cluster_toml])
    )
    assert given_["cluster"] == str(cluster_toml) and own["findings"][0]["price"] != given_["findings"][0]["price"]
    assert "no-such.toml" in stripewise("show", trace, "--cluster", "no-such.toml", code=1).stderr


@pytest.mark.parametrize(("ranks", "in_turn"), [([0, 0, 0], True), ([0, 1, 2], False)])
def test_what_files_of_a_series_share_is_one_finding_with_their_price(tmp_path, ranks, in_turn):
    rows = [
        (rank, "write", f"/d/ckpt-{number}.h5", k * 4 * KIB, 4 * KIB)
        for number, rank in enumerate(ranks)
        for k in range(100 * (number + 1))
    ] + [(0, "write", "/d/other.h5", k * 4 * KIB, 4 * KIB) for k in range(100)]
    series, alone = findings_of(facts_of(write_rows(tmp_path / "t", rows)), DEFAULT_CLUSTER)
    assert (series.series, series.files, series.where) == ("/d/ckpt-*.h5", 3, "3 files, /d/ckpt-*.h5")
    assert series.evidence[0].startswith("in /d/ckpt-2.h5, the dearest of them: 300 requests")
    assert (alone.file, alone.series, alone.files) == ("/d/other.h5", "", 1)
    # 100, 200 and 300 requests: one after the other they cost six times the least, at once as much as the most.
    assert series.price.high == pytest.approx(6 * alone.price.high, rel=0.02)
    assert series.price.low == pytest.approx((6 if in_turn else 3) * alone.price.low, rel=0.02)


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"version": META_VERSION}, "small_requests"),
        ({"version": META_VERSION, "imported": {"format": "strace", "files": []}}, "collective_buffer"),
    ],
)
def test_a_program_that_never_called_mpi_io_has_no_collective_buffer(tmp_path, meta, expected):
    rows = [*opens(2), *((0, "write", "/d/f", k * 8000, 8000) for k in range(1500)), (1, "read", "/d/f", 0, 100)]
    trace = write_rows(tmp_path / "t", rows)
    table = pq.read_table(trace / "trace.parquet")
    pq.write_table(table.append_column("parent", pa.nulls(len(table), pa.int64())), trace / "trace.parquet")
    (trace / "meta.json").write_text(json.dumps(meta))
    (found,) = findings_of(facts_of(trace), DEFAULT_CLUSTER)
    assert found.cause == expected


@pytest.mark.parametrize("by_mpi", [False, True])
def test_the_cure_of_small_requests_is_one_for_what_the_program_calls(tmp_path, by_mpi):
    rows = [
        row
        for op in ("write", "read")
        for k in range(100)
        for row in [(0, f"mpi_{op}", "/d/f", k * 4 * KIB, 4 * KIB), (0, op, "/d/f", k * 4 * KIB, 4 * KIB)]
        if by_mpi or row[1] == op
    ]
    (found,) = findings_of(facts_of(write_rows(tmp_path / "t", rows)), DEFAULT_CLUSTER)
    assert found.cause == "small_requests"
    assert ("derived datatype" in found.advice, "setvbuf" in found.advice) == (by_mpi, not by_mpi)


def test_names_that_would_move_the_cursor_are_shown_as_text(tmp_path):
    trace = write_rows(tmp_path / "t", [(0, "write", "/d/\x1b[2Jx", 0, 10)])
    said = stripewise("show", trace).stdout
    assert "\x1b" not in said and "\\x1b" in said


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.sampled_from(["read", "write", "open", "stat", "sync"]),
            st.sampled_from(["/d/f", "/d/g"]),
            st.one_of(st.integers(0, 100), st.integers(0, 2**62)), st.integers(-1, 1 << 40),
        ),
        min_size=1, max_size=80,
    )
)  # fmt: skip
def test_any_trace_gives_a_page_or_one_error(tmp_path, rows):
    place = write_rows(tmp_path / "t", rows)
    try:
        run = facts_of(place)
    except WorkloadError as error:
        assert "trace.parquet" in str(error)
        return
    summary = summary_of_run(run)
    moved = [each for each in rows if each[1] in ("read", "write") and each[4] > 0]
    assert (summary.requests, summary.bytes) == (len(moved), sum(each[4] for each in moved))
    for found in findings_of(run, DEFAULT_CLUSTER):
        assert found.price is None or 0 <= found.price.low <= found.price.high


def test_sieving_tells_reads_and_writes(tmp_path):
    """Each of both moves four times what was asked for; writes alone are told as well."""

    def rows(op):
        asked = [(0, f"mpi_{op}", "/d/f", k * MIB, 256 * KIB) for k in range(16)]
        return asked + [(0, op, "/d/f", k * MIB, MIB) for k in range(16)]

    def found(name, *ops):
        (one,) = findings_of(
            facts_of(write_rows(tmp_path / name, [row for op in ops for row in rows(op)])), DEFAULT_CLUSTER
        )
        return one

    both, read, written = found("b", "read", "write"), found("r", "read"), found("w", "write")
    assert [each.title.removeprefix("data sieving multiplies ") for each in (both, read, written)] == [
        "reads and writes", "reads", "writes",
    ]  # fmt: skip
    assert both.evidence == (*read.evidence, *written.evidence)
    assert "MPI-IO writes 4.0 MiB, the system calls below move 16.0 MiB, 4.0 times as much" in both.evidence
    assert both.price.high == pytest.approx(read.price.high + written.price.high)
    assert both.advice == f"for reads: {read.advice}; for writes: {written.advice}" or read.advice == written.advice


def test_bytes_that_a_process_reads_many_times_are_a_finding(tmp_path):
    # One column of chunks of 1 MiB: each is read anew for every row of it, 12 times.
    chunks = [(0, "read", "/d/f", k % 64 * MIB, MIB) for k in range(64 * 12)]
    (found,) = findings_of(facts_of(write_rows(tmp_path / "t", chunks)), DEFAULT_CLUSTER)
    assert found.cause == "reread" and "768.0 MiB read of 64.0 MiB" in found.evidence[0]
    assert "12.0 times each" in found.evidence[0] and found.price.low > 0
    # Three times is no habit, and of 12 processes each has read once.
    assert not findings_of(facts_of(write_rows(tmp_path / "3", chunks[: 64 * 3])), DEFAULT_CLUSTER)
    each = [(k // 64, *row[1:]) for k, row in enumerate(chunks)]
    assert not findings_of(facts_of(write_rows(tmp_path / "12", each)), DEFAULT_CLUSTER)


@pytest.mark.parametrize("by_mpi", [False, True])
@pytest.mark.parametrize("op", ["read", "write"])
def test_collective_calls_are_no_cure_of_gaps_for_a_program_without_mpi_io(tmp_path, op, by_mpi):
    rows = [(0, op, "/d/f", k * MIB, 16 * KIB) for k in range(200)]
    rows += [(0, f"mpi_{op}", "/d/f", k * MIB, 16 * KIB) for k in range(200)] if by_mpi else []
    (found,) = findings_of(facts_of(write_rows(tmp_path / "t", rows)), DEFAULT_CLUSTER)
    assert found.cause == "gaps" and ("use collective calls" in found.advice) == by_mpi
    assert ("a copy in the order of the reads" in found.advice) == (op == "read")
    assert found.command.split()[1] == ("replicate" if op == "read" else "plan")


def test_sieved_collective_writes_name_the_hint_and_reads_have_a_cure_of_their_own(tmp_path):
    calls = MpiCalls("write", 4, 4, 0, MIB, 64, 4, MIB, 4, MIB)
    assert sieving_advice(calls, write=True).startswith("set the hint romio_cb_write to enable (of ROMIO; Open MPI: --")
    assert sieving_advice(replace(calls, op="read"), write=False).startswith("set the hint romio_cb_read to enable")
    assert "romio_cb" not in sieving_advice(replace(calls, collective=0), write=True)


def test_what_is_read_in_no_order_is_told_apart_from_what_follows_each_other(tmp_path):
    """A buffer helps the ones, a plan or sorting the others; together most follow the one before."""
    rows = [(0, "read", "/data/f", number * 4 * KIB, 4 * KIB) for number in range(1500)]
    order = rng(1).permutation(1000)
    rows += [(0, "read", "/data/f", (64 * MIB) + int(place) * 8 * KIB, 4 * KIB) for place in order[:500]]
    found = {each.cause: each for each in findings_of(facts_of(write_rows(tmp_path / "t", rows)), DEFAULT_CLUSTER)}
    assert set(found) == {"small_requests", "scattered"}, found
    assert found["small_requests"].evidence[0].startswith("1,500 requests of 4.0 KiB (median), 100% begin")
    assert found["scattered"].evidence[0].startswith("500 reads of 4.0 KiB (median), ")
    assert " plan " in found["scattered"].command and not found["small_requests"].command


@pytest.mark.parametrize("size", [8 * KIB, 64 * KIB, MIB])
def test_what_follows_each_other_is_not_counted_among_what_is_read_in_no_order(tmp_path, size):
    """A phase of ordered reads before one of many more random ones."""
    rows = [(0, "read", "/data/f", number * size, size) for number in range(300)]
    order = rng(1).permutation(2000)
    rows += [(0, "read", "/data/f", (400 * MIB) + int(place) * 256 * KIB, 4 * KIB) for place in order[:1500]]
    found = {each.cause: each for each in findings_of(facts_of(write_rows(tmp_path / "t", rows)), DEFAULT_CLUSTER)}
    (alone,) = findings_of(facts_of(write_rows(tmp_path / "alone", rows[300:])), DEFAULT_CLUSTER)
    assert set(found) == {"scattered", "small_requests"} - ({"small_requests"} if size == MIB else set()), found
    assert (found["scattered"].evidence, found["scattered"].price) == (alone.evidence, alone.price)
    if size < MIB:
        assert found["small_requests"].evidence[0].startswith(f"300 requests of {size // KIB}.0 KiB (median), 100%")


def test_random_reads_of_few_places_that_follow_by_chance_are_one_finding(tmp_path):
    rows = [(0, "read", "/data/f", int(place) * 4 * KIB, 4 * KIB) for place in rng(2).integers(0, 40, 3000)]
    rows += [(0, "read", "/data/f", 64 * MIB, 4 * KIB)]
    found = [each.cause for each in findings_of(facts_of(write_rows(tmp_path / "t", rows)), DEFAULT_CLUSTER)]
    assert "small_requests" not in found, found
