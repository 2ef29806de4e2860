"""Two runs held against each other: what is counted, how far apart curves are, what the verb says and refuses."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from stripewise.cli.main import app
from stripewise.errors import NoRequestsError, WorkloadError
from stripewise.pioneer.comparison.compare import PARTS, compare_operations, compare_traces
from stripewise.pioneer.comparison.run_operations import read_operations

MS = 1_000_000
COLLECTIVE, NONBLOCKING, AT_POSITION = 4, 8, 16
TYPES = {
    "process": pa.int32(), "pid": pa.int32(), "rank": pa.int32(), "world": pa.int32(), "thread": pa.int32(),
    "layer": pa.string(), "op": pa.string(), "file": pa.string(), "fd": pa.int32(), "handle": pa.int32(),
    "offset": pa.int64(), "requested": pa.int64(), "done": pa.int64(), "start_ns": pa.int64(), "end_ns": pa.int64(),
    "errno": pa.int32(), "flags": pa.int32(), "parent": pa.int64(),
}  # fmt: skip
DEFAULTS = {"layer": "posix", "file": "/d/f", "fd": 3, "rank": 0, "world": 2, "done": 0, "errno": 0, "flags": 0}


def row(op, start_ms, took_ms=1.0, **more):
    """One record of a trace."""
    start = round(start_ms * MS)
    made = {**DEFAULTS, "op": op, "start_ns": start, "end_ns": start + round(took_ms * MS), **more}
    made.setdefault("process", made["rank"] if made["rank"] is not None else 99)
    return {**made, "pid": 100 + made["process"], "thread": 100 + made["process"]}


def mpi(op, start_ms, took_ms=1.0, **more):
    return row(op, start_ms, took_ms, **{"layer": "mpi", "fd": None, "handle": 1, **more})


def trace(place, rows, **meta):
    """A collected trace of these records, a row group for each process."""
    place.mkdir(exist_ok=True)
    with pq.ParquetWriter(place / "trace.parquet", pa.schema(TYPES)) as file:
        for process in sorted({each["process"] for each in rows}):
            own = [each for each in rows if each["process"] == process]
            columns = {name: pa.array([each.get(name) for each in own], kind) for name, kind in TYPES.items()}
            file.write_table(pa.table(columns))
    (place / "meta.json").write_text(json.dumps({"version": 1, **meta}))
    return place


def counts(run):
    """How often each operation occurs."""
    found = [run.names[at] for at in run.name.tolist()]
    return {name: found.count(name) for name in sorted(set(found))}


def steady(place, shift_ms=0.0, ranks=2, each=50, size=1000, every_ms=10.0):
    """Ranks that write `size` bytes `every_ms`, for 1 ms each."""
    rows = [row("open", shift_ms, 0.1, rank=rank, world=ranks) for rank in range(ranks)]
    for rank in range(ranks):
        rows += [
            row("write", shift_ms + (at + 1) * every_ms, rank=rank, world=ranks, done=size, flags=AT_POSITION)
            for at in range(each)
        ]
    return trace(place, rows)


def test_operations_are_sanitised_as_those_of_a_profile_are(tmp_path):
    rows = [
        mpi("mpi_open", 0),
        row("open", 0.2, 0.1, parent=0),
        mpi("mpi_seek", 5),
        mpi("mpi_write", 6, 1, flags=NONBLOCKING | AT_POSITION, done=500),
        row("write", 6.1, 0.1, parent=3, done=500),
        mpi("mpi_wait", 9, 2, done=500),
        mpi("mpi_read", 20, 1, flags=COLLECTIVE, done=700),
        mpi("mpi_close", 30),
    ]
    run = read_operations(trace(tmp_path / "t", rows))
    assert counts(run) == {"mpi_close": 1, "mpi_iwrite11": 1, "mpi_open": 1, "mpi_read_at_all": 1}
    assert run.bytes.tolist() == [0, 500, 700, 0]
    assert (run.data.tolist(), run.write.tolist()) == ([False, True, True, False], [False, True, False, False])
    # A nonblocking call lasts until it was waited for.
    assert run.end_ns.tolist() == [1 * MS, 11 * MS, 21 * MS, 31 * MS]
    assert run.duration_ns == 31 * MS


def test_only_ranks_and_files_of_the_program_count(tmp_path):
    rows = [
        row("open", 0),
        row("write", 1, done=10, flags=AT_POSITION),
        row("close", 2),
        # The launcher; the system; what is nowhere to be found; the path that a player reads.
        row("read", 1, done=99, rank=None, world=None, process=7),
        row("read", 2, done=99, file="/proc/cpuinfo"),
        row("open", 3, file="/home/u/settings", errno=2, done=-1),
        row("open", 4, file="/d/out.swp", done=4),
        # Few bytes count here: files are many and small in a metadata-heavy program.
        row("stat", 6, file="/d/empty", fd=None),
    ]
    run = read_operations(trace(tmp_path / "t", rows))
    assert counts(run) == {"close": 1, "open": 1, "stat": 1, "write0": 1}
    assert run.bytes.sum() == 10 and run.data.sum() == 1 and run.processes == 2


def test_a_run_without_ranks_counts_as_a_whole(tmp_path):
    rows = [row("write", at, rank=None, world=None, process=at, done=1) for at in range(3)]
    assert read_operations(trace(tmp_path / "t", rows)).processes == 3


def test_a_trace_without_operations_is_refused(tmp_path):
    with pytest.raises(NoRequestsError, match="no operation on a file that counts"):
        read_operations(trace(tmp_path / "t", [row("read", 0, file="/proc/cpuinfo", done=9)]))


def test_a_run_is_at_no_distance_from_itself(tmp_path):
    run = steady(tmp_path / "a")
    found = compare_traces(run, run).comparison
    assert [each.parts for each in found.binned] == list(PARTS)
    assert all(each.distances == each.busy for each in found.binned[1:2])
    for each in found.binned:
        assert (each.distances.throughput, each.distances.ratio, each.distances.arrival) == (0, 0, 0)
    assert found.gap == found.gap_normalised == found.largest.difference == 0
    assert (found.original.bytes_written, found.original.bytes_read) == (100_000, 0)


def test_when_a_run_began_does_not_matter(tmp_path):
    found = compare_traces(steady(tmp_path / "a"), steady(tmp_path / "b", shift_ms=12345)).comparison
    assert found.gap == 0 and found.binned[0].distances.throughput == 0


def test_the_same_work_at_half_the_speed_is_told_by_every_metric(tmp_path):
    found = compare_traces(steady(tmp_path / "a"), steady(tmp_path / "b", every_ms=20)).comparison
    first = found.binned[0]
    assert (first.original_bins, first.synthetic_bins) == (100, 200)
    # The original ends after 501 ms, when the other has moved half of the bytes.
    assert found.gap == pytest.approx(0.5, abs=0.02)
    # By shares of time they are alike.
    assert found.gap_normalised == pytest.approx(0, abs=0.05)
    assert found.synthetic.duration_s == pytest.approx(2 * found.original.duration_s, rel=0.01)
    # In bins of 5.01 ms half of the original's have a write, a quarter of the other's: distances of a quarter.
    assert first.distances.arrival == pytest.approx(0.25, abs=0.02)
    # In most bins in which anything happens it is the same.
    assert first.busy.arrival < first.distances.arrival


def test_order_in_time_is_told_by_the_cumulative_bytes_alone(tmp_path):
    def run(place, sizes):
        rows = [row("open", 0, 0.1)] + [row("write", 10 * (at + 1), done=size) for at, size in enumerate(sizes)]
        return trace(place, rows)

    sizes = [1000] * 50 + [3000] * 50
    found = compare_traces(run(tmp_path / "a", sizes), run(tmp_path / "b", sizes[::-1])).comparison
    assert found.binned[0].distances.throughput <= 0.02
    # Half-way one has moved 50 of 200, the other 150.
    assert found.gap == pytest.approx(0.5, abs=0.02)
    assert found.gap_normalised == pytest.approx(0.5, abs=0.02)


def test_empty_bins_count_and_are_left_out_beside(tmp_path):
    def stats(place, every_ms):
        return trace(place, [row("stat", at * every_ms + 0.5, 0.01, fd=None) for at in range(100)])

    found = compare_traces(stats(tmp_path / "a", 1), stats(tmp_path / "b", 2)).comparison.binned[0]
    # One in each of 100 bins, and one in every other of twice as many.
    assert found.distances.arrival == pytest.approx(0.5, abs=0.02)
    assert found.busy.arrival == pytest.approx(0, abs=0.02)


def test_counts_are_compared_rank_by_rank(tmp_path):
    one, other = steady(tmp_path / "a", each=50), tmp_path / "b"
    rows = [row("open", 0, 0.1, rank=rank) for rank in range(2)]
    # As many in all, but one rank has 40 and the other 60.
    for rank, each in enumerate((40, 60)):
        rows += [row("write", at + 1, rank=rank, done=1000, flags=AT_POSITION) for at in range(each)]
    found = compare_traces(one, trace(other, rows)).comparison
    assert (found.largest.operation, found.largest.original, found.largest.synthetic) == ("write0", 50, 50)
    assert found.largest.difference == pytest.approx(0.2) and found.largest.rank == 0


def test_runs_of_unlike_numbers_of_processes_are_compared_by_their_means(tmp_path):
    found = compare_traces(steady(tmp_path / "a", ranks=2), steady(tmp_path / "b", ranks=4, each=25)).comparison
    assert (found.original.processes, found.synthetic.processes) == (2, 4)
    assert found.largest.rank is None and found.largest.difference == pytest.approx(0.5)


def test_an_operation_of_one_run_alone_differs_wholly(tmp_path):
    rows = [row("write", 0, done=1)]
    found = compare_traces(
        trace(tmp_path / "a", rows), trace(tmp_path / "b", [*rows, row("stat", 1, fd=None)])
    ).comparison
    assert (found.largest.operation, found.largest.difference) == ("stat", 1.0)


def test_more_bytes_than_any_run_moves_are_refused(tmp_path):
    each = {"op": "read", "layer": "posix", "file": "/d/f", "process": 0, "done": 1 << 62}
    rows = [each | {"start_ns": at, "end_ns": at} for at in (0, 1)]
    with pytest.raises(WorkloadError, match=r"a: .*more than 2\^62 bytes"):
        read_operations(trace(tmp_path / "a", rows))


NUMBERS = st.one_of(st.integers(-3, 10**9), st.integers(-(2**63), 2**63 - 1))
RECORDS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["read", "write", "open", "seek", "mpi_read", "mpi_wait", "extent", "op77", "view"]),
        "layer": st.sampled_from(["posix", "mpi"]),
        "file": st.sampled_from(["/d/f", "/d/g", "", None]),
        "world": st.one_of(st.none(), st.integers(-1, 4)),
        "process": st.integers(0, 3),
        "done": NUMBERS, "start_ns": NUMBERS, "end_ns": NUMBERS,
        "flags": st.integers(-(2**31), 2**31 - 1), "errno": st.integers(0, 40),
        "fd": st.one_of(st.none(), st.integers(-1, 4)), "handle": st.one_of(st.none(), st.integers(-1, 2)),
        "parent": st.one_of(st.none(), st.integers(-1, 5)),
    }
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(st.lists(RECORDS, max_size=12), st.lists(RECORDS, max_size=12), st.booleans())
def test_any_table_is_compared_or_refused(tmp_path, one, other, has_ranks):
    for each in (*one, *other):
        each["rank"] = each["process"] if has_ranks else None
    try:
        runs = [read_operations(trace(tmp_path / name, rows)) for name, rows in (("a", one), ("b", other))]
    except WorkloadError:
        return
    found = compare_operations(*runs)
    for each in found.binned:
        for distances in (each.distances, each.busy):
            assert all(0 <= value <= 1 for value in (distances.throughput, distances.ratio, distances.arrival))
    assert found.gap >= 0 and 0 <= found.largest.difference <= 1
    assert json.loads(json.dumps(found.as_json(), allow_nan=False))["version"] == 1


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_verb_prints_tables_json_and_a_page_that_loads_nothing(tmp_path):
    one, other = steady(tmp_path / "a<b>$x"), steady(tmp_path / "b", every_ms=11)
    said = invoke("compare", one, other, "--html", tmp_path / "page.html")
    assert said.exit_code == 0, said.output
    assert "Kolmogorov-Smirnov" in said.output and "write0" in said.output and "largest gap" in said.output
    page = (tmp_path / "page.html").read_text()
    assert "a&lt;b&gt;$x" in page and "a<b>" not in page
    assert not re.search(r"<script|<link|@import|src=", page)
    assert page.count("<tr>") == 1 + 110
    found = json.loads(invoke("compare", one, other, "--json").stdout)
    assert found["binned"][0]["parts"] == 100 and found["original"]["bytes_written"] == 100_000
    assert found == compare_traces(one, other).comparison.as_json() | {
        "binned": found["binned"], "counts": found["counts"]
    }  # fmt: skip


@pytest.mark.parametrize("name", ["page.txt", "a/trace.parquet", "none/page.html"])
def test_a_page_that_cannot_be_is_refused_before_the_work(tmp_path, name):
    one = steady(tmp_path / "a")
    before = (one / "trace.parquet").read_bytes()
    said = invoke("compare", one, one, "--html", tmp_path / name)
    assert said.exit_code == 2 and "--html" in said.stderr and len(said.stderr.strip().splitlines()) == 1
    assert (one / "trace.parquet").read_bytes() == before


def test_a_trace_that_is_not_there_or_is_none_is_one_error(tmp_path):
    one = steady(tmp_path / "a")
    (tmp_path / "text").write_text("no trace")
    for other in (tmp_path / "none", tmp_path / "text", tmp_path):
        said = invoke("compare", one, other)
        assert said.exit_code == 1 and str(other) in said.stderr and len(said.stderr.strip().splitlines()) == 1


def test_a_partial_trace_is_said(tmp_path):
    rows = [row("write", 0, done=1)]
    said = invoke("compare", trace(tmp_path / "a", rows), trace(tmp_path / "b", rows, dropped=3))
    assert said.exit_code == 0 and "3 records were dropped" in said.stderr
