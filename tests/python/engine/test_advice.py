"""What IO-Engine tells of a traced run: patterns of its calls, how they were carried out, hints for all of it."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs import write_rows
from stripewise.engine.advice import Advice, Site, advise, ompio_parameters, romio_hints
from stripewise.engine.calls import COLLECTIVE, SHARED, Calls, calls_of
from stripewise.engine.exchange import carried_out
from stripewise.errors import NoRequestsError, WorkloadError
from stripewise.pattern.records import FileRecords, Kind
from support import KIB, MIB
from test_cli import stripewise

Rows = list[tuple[int, str, str, int, int]]


def advices(trace: Path, site: Site, files: list[str]) -> tuple[Advice, ...]:
    return advise(trace, site, files).advices


def interleaved(ranks: int, turns: int, size: int, op: str = "mpi_write", file: str = "/d/f") -> Rows:
    return [(r, op, file, (k * ranks + r) * size, size) for k in range(turns) for r in range(ranks)]


def regions(ranks: int, turns: int, size: int, op: str = "mpi_write", file: str = "/d/f") -> Rows:
    return [(r, op, file, (r * turns + k) * size, size) for k in range(turns) for r in range(ranks)]


def traced(place: Path, rows: Rows, flags: int = COLLECTIVE, **meta: object) -> Path:
    """Calls, each of all ranks at once; those of the posix layer within the turn before them."""
    write_rows(place, rows)
    table = pq.read_table(place / "trace.parquet")
    ranks = len({row[0] for row in rows})
    is_mpi = np.array([row[1].startswith("mpi") for row in rows])
    turn = np.cumsum(is_mpi) - 1
    start = turn // ranks * 1000 + np.where(is_mpi, turn % ranks, 100)
    columns = {
        "start_ns": start, "end_ns": np.where(is_mpi, turn // ranks * 1000 + 900, start + 300),
        "flags": np.where(is_mpi, flags, 0).astype(np.int32),
    }  # fmt: skip
    for name, values in columns.items():
        table = table.drop_columns([name]) if name in table.column_names else table
        table = table.append_column(name, pa.array(values))
    pq.write_table(table, place / "trace.parquet")
    if meta:
        (place / "meta.json").write_text(json.dumps({"version": 1, **meta}))
    return place


@pytest.mark.parametrize(("made", "is_strided"), [(interleaved, True), (regions, False)])
def test_patterns_are_told_apart(made, is_strided, tmp_path):
    (advice,) = advices(traced(tmp_path / "t", made(4, 8, 64 * KIB)), Site(), ["/d/f"])
    inputs = advice.ruled.inputs
    assert (inputs.strided, inputs.processes, inputs.request_bytes) == (is_strided, 4, 64 * KIB)
    assert inputs.region_bytes == (64 * KIB if is_strided else 8 * 64 * KIB)
    assert (advice.calls, advice.bytes, advice.is_collective) == (32, 2 * MIB, True)
    assert advice.ruled.mode == ("collective" if is_strided else "independent")


def records_of(rows: list[tuple[int, int, int, int]], op: str = "write", flags: int = COLLECTIVE) -> FileRecords:
    """Of (rank, start, offset, bytes), in any order."""
    rank, start, offset, size = (np.array(column, dtype=np.int64) for column in zip(*sorted(rows), strict=True))
    return FileRecords(
        "/d/f", True, rank, rank.astype(np.uint64), np.zeros(len(rows), dtype=np.uint32), (Kind(op, flags=flags),),
        offset, size, start, start + 5,
    )  # fmt: skip


def only(records: FileRecords) -> Calls:
    (calls,) = calls_of(records)
    return calls


@settings(max_examples=60, deadline=None)
@given(
    ranks=st.integers(2, 6), turns=st.integers(2, 6), size=st.integers(1, 10 * KIB), gap=st.integers(0, 5 * KIB),
    is_strided=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_patterns_are_told_apart_with_gaps_and_in_any_order(ranks, turns, size, gap, is_strided, seed):
    """Between requests of a stride, and between regions, there may be a gap; a process takes its own in any order."""
    order = np.random.default_rng(seed).permutation(turns).tolist()
    rows = [
        (r, k * 10, (at * ranks + r) * (size + gap) if is_strided else (r * turns + at) * size + r * gap, size)
        for k, at in enumerate(order) for r in range(ranks)
    ]  # fmt: skip
    calls = only(records_of(rows))
    assert calls.processes == ranks and len(calls) == ranks * turns and calls.is_strided == is_strided
    assert calls.bytes == ranks * turns * size and calls.request_bytes == size
    assert is_strided or calls.region_bytes == turns * size
    assert (np.diff(calls.start_ns) >= 0).all()


@pytest.mark.parametrize(
    ("rows", "is_strided"),
    [
        # The first one writes a header, too; or two records where the other writes one.
        ([(0, 0, 0, KIB), *((r, 10 * k, KIB + (k * 2 + r) * KIB, KIB) for k in range(1, 9) for r in (0, 1))], True),
        ([(r, 10 * k, (k * 3 + at) * KIB, KIB) for k in range(8) for at, r in enumerate((0, 0, 1))], False),
        # One block each; all on one place, again and again; the own region backwards; one process.
        ([(r, 0, r * KIB, KIB) for r in range(4)], True),
        ([(r, 10 * k, 0, KIB) for k in range(4) for r in range(4)], True),
        ([(r, 10 * k, (r * 8 + 7 - k) * KIB, KIB) for k in range(8) for r in range(4)], False),
        ([(0, 10 * k, 4 * k * KIB, KIB) for k in range(8)], False),
        ([(0, 0, 0, KIB)], False),
        # Regions that overlap at their ends, and what is appended in turn.
        (
            [(r, 10 * k, (r * 8 + k) * KIB - 100 * (k == 0 and r > 0), KIB + 100) for k in range(8) for r in range(4)],
            False,
        ),
        ([(k % 4, 10 * k, k * KIB, KIB) for k in range(32)], True),
    ],
)
def test_odd_patterns(rows, is_strided):
    assert only(records_of(rows)).is_strided == is_strided


def test_ranges_of_a_call_are_one_call_and_kinds_of_calls_are_apart():
    rank = np.repeat([0, 1], 6)
    offset = np.concatenate([np.arange(6) * 200, np.arange(6) * 200 + 100])
    start = np.tile(np.repeat([0, 10], 3), 2)
    records = FileRecords(
        "/d/f", True, rank, rank.astype(np.uint64), np.zeros(12, dtype=np.uint32), (Kind("read"),), offset,
        np.full(12, 100), start, start + 5,
    )  # fmt: skip
    calls = only(records)
    assert np.diff(calls.first).tolist() == [3] * 4 and calls.is_strided and not calls.is_collective
    assert (calls.low.tolist(), calls.high.tolist()) == ([0, 100, 600, 700], [500, 600, 1100, 1200])
    kinds = (Kind("write"), Kind("write", flags=COLLECTIVE), Kind("read"), Kind("read", flags=SHARED))
    mixed = replace(records, kinds=kinds, kind=np.tile(np.array([0, 1, 2, 3], dtype=np.uint32), 3))
    assert [(each.write, each.is_collective, len(each.offset)) for each in calls_of(mixed)] == [
        (True, True, 3), (True, False, 3), (False, False, 3),
    ]  # fmt: skip


@pytest.mark.parametrize(("offset", "size"), [(-1, 1), ((1 << 63) - 10, 11), (1 << 62, 1 << 62)])
def test_calls_that_no_file_can_have_are_one_error(offset, size):
    with pytest.raises(WorkloadError, match="beyond any file's end"):
        list(calls_of(records_of([(0, 0, offset, size)])))


def test_a_run_of_calls_that_hints_do_not_change_is_one_error(tmp_path):
    trace = traced(tmp_path / "t", interleaved(2, 4, KIB), COLLECTIVE | SHARED)
    said = stripewise("engine", trace, "--file", "/d/f", "--export", tmp_path / "hints", code=1)
    assert said.stderr.count("\n") == 1 and "by the shared file pointer" in said.stderr
    assert not (tmp_path / "hints").exists()


def test_how_calls_were_carried_out(tmp_path):
    """Each turn takes 900 ns less 3 for the last arrival; below it a request of 300 ns, or one of each rank.

    A call that one rank makes alone before, and ranges of a call that its rank moves in one request, change neither.
    """
    one = [(0, "write", "/d/f", k * 4 * KIB, 4 * KIB) for k in range(3)]
    calls = interleaved(4, 3, KIB)
    rows = [row for k in range(3) for row in (*calls[4 * k : 4 * k + 4], one[k])]
    (advice,) = advices(traced(tmp_path / "joined", rows), Site(), ["/d/f"])
    how = advice.carried_out
    assert how is not None and (how.turns, how.movers, how.are_own) == (3, 1, False)
    assert how.turns_s == pytest.approx(3 * 897e-9) and how.io_s == pytest.approx(3 * 300e-9)
    assert how.exchange_s == pytest.approx(3 * 597e-9) and how.is_dear
    assert (
        "'romio_cb_write disable' in the file of hints"
        in stripewise("engine", tmp_path / "joined", "--file", "/d/f").stdout
    )
    own = [
        row for k in range(3)
        for row in (*calls[4 * k : 4 * k + 4], *((r, "write", f, at, n) for r, _, f, at, n in calls[4 * k : 4 * k + 4]))
    ]  # fmt: skip
    (advice,) = advices(traced(tmp_path / "own", own), Site(), ["/d/f"])
    assert advice.carried_out is not None and advice.carried_out.are_own and advice.carried_out.movers == 4
    assert not advice.carried_out.is_dear
    rows = [
        *((0, -900, 0, KIB),),
        *((r, 1000 * k + r, (k * 8 + at * 4 + r) * KIB, KIB) for k in range(3) for r in range(4) for at in (0, 1)),
    ]
    calls = only(records_of(rows, "read"))
    sieved = [(r, 1000 * k + r + 1, (k * 8 + r) * KIB, 5 * KIB) for k in range(3) for r in range(4)]
    how = carried_out(calls, records_of(sieved, "read", 0))
    assert how is not None and (how.turns, how.are_own, how.movers) == (4, True, 4) and not how.is_dear
    (alone,) = advices(traced(tmp_path / "independent", own, 0), Site(), ["/d/f"])
    assert alone.carried_out is None and not alone.is_collective


def test_turns_are_what_is_under_way_at_once():
    """The second process leaves the first turn late, when the next one has begun; the first one is early in it, and has
    done half of its request before the other comes.
    """
    rows = [(0, 0, 0, KIB), (1, 8, KIB, KIB), (0, 12, 2 * KIB, KIB), (1, 32, 3 * KIB, KIB)]
    calls = replace(only(records_of(rows)), end_ns=np.array([10, 30, 50, 50]))
    asked = records_of([(0, 9, 0, 2 * KIB), (0, 22, 2 * KIB, 2 * KIB)], flags=0)
    how = carried_out(calls, replace(asked, end_ns=np.array([10, 42])))
    assert how is not None and (how.turns, how.movers, how.are_own) == (2, 1, False)
    assert how.turns_s == pytest.approx((30 - 8 + 50 - 32) / 1e9) and how.io_s == pytest.approx((1 + 10) / 1e9)


def test_numbers_come_from_hints_in_force_and_from_who_asks(tmp_path):
    hints = {"striping_factor": "13", "striping_unit": "65536", "cb_nodes": "2", "cb_buffer_size": "16777216"}
    told = [{"path": "/d/f", "processes": 4, "given": {}, "in_force": hints}]
    trace = traced(tmp_path / "t", interleaved(4, 4, 64 * KIB), hints=told)
    (advice,) = advices(trace, Site(lustre=True), ["/d/f"])
    inputs = advice.ruled.inputs
    assert (inputs.stripes, inputs.stripe_bytes, inputs.nodes, inputs.is_aligned) == (13, 64 * KIB, 2, True)
    assert advice.ruled.why == "strided write" and advice.ruled.aggregators == 1
    (other,) = advices(trace, Site(nodes=3, stripes=8, stripe_bytes=MIB), ["/d/f"])
    assert (other.ruled.inputs.nodes, other.ruled.inputs.cb_nodes, other.ruled.inputs.stripes) == (3, None, 8)
    assert other.ruled.inputs.stripe_bytes == MIB and not other.ruled.inputs.is_aligned


def test_one_set_of_hints_goes_by_bytes_and_says_what_it_leaves_out(tmp_path):
    rows = interleaved(4, 8, 64 * KIB, file="/d/large") + interleaved(4, 8, 32 * KIB, file="/d/small")
    rows += interleaved(4, 8, KIB, "mpi_read", "/d/small")
    given = {"romio_cb_read": "enable", "cb_buffer_size": "262144"}
    told = [{"path": "/d/small", "processes": 4, "given": given, "in_force": {"romio_ds_read": "automatic", **given}}]
    found = advise(traced(tmp_path / "t", rows, hints=told), Site(), ["/d/large", "/d/small"])
    hints, otherwise = found.hints()
    assert not found.is_ompio
    assert hints == {"romio_cb_write": "enable", "cb_buffer_size": "262144", "romio_cb_read": "disable"}
    own = "itself, which counts more than a file of hints"
    assert otherwise == [
        "cb_buffer_size = 131072 for writes of /d/small: 262144 is in its place",
        f"cb_buffer_size = 131072 for writes of /d/small: the program gives 262144 {own}",
        f"romio_cb_read = disable for reads of /d/small: the program gives enable {own}",
    ]
    assert romio_hints(hints) == "romio_cb_write enable\ncb_buffer_size 262144\nromio_cb_read disable\n"
    assert ompio_parameters(hints) == ["--mca", "fcoll", "vulcan", "--mca", "io_ompio_bytes_per_agg", "262144"]
    assert ompio_parameters({"romio_cb_read": "disable"}) == ["--mca", "fcoll", "individual"]


def test_hints_are_for_collective_calls_alone(tmp_path):
    """However many bytes independent ones move."""
    trace = traced(tmp_path / "t", interleaved(4, 8, 64 * KIB), 0)
    found = advise(trace, Site(), ["/d/f"])
    hints, (only_line,) = found.hints()
    assert hints == {} and only_line.startswith("the 32 independent writes of /d/f should be collective")
    assert "hints: none, for no call is collective" in stripewise("engine", trace, "--file", "/d/f").stdout
    said = stripewise("engine", trace, "--file", "/d/f", "--export", tmp_path / "hints", code=1)
    assert said.stderr.count("\n") == 1 and "no call is collective" in said.stderr
    assert not (tmp_path / "hints").exists()
    together = advise(traced(tmp_path / "c", interleaved(4, 2, KIB)), Site(), ["/d/f"])
    mixed = replace(found, advices=(*found.advices, *together.advices))
    assert mixed.hints()[0] == together.hints()[0] == {"romio_cb_write": "enable", "cb_buffer_size": "4096"}


def test_a_trace_without_mpi_io_is_one_error(tmp_path):
    trace = write_rows(tmp_path / "t", [(0, "write", "/d/f", 0, KIB)])
    with pytest.raises(NoRequestsError, match="by MPI-IO"):
        advise(trace, Site(), ["/d/f"])
    said = stripewise("engine", trace, "--file", "/d/f", code=1)
    assert said.stderr.count("\n") == 1 and "Traceback" not in said.stderr


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--nodes", "0"), "--nodes: 0 is not from 1"),
        (("--stripes", "-3"), "--stripes: -3 is not from 1"),
        (("--stripe-size", "0"), "--stripe-size: 0 bytes are not from 1"),
        (("--export", "/nowhere/h"), "--export: /nowhere/h cannot be a file"),
    ],
)
def test_bad_options_are_one_line(words, fault, tmp_path):
    trace = traced(tmp_path / "t", interleaved(2, 2, KIB))
    said = stripewise("engine", trace, *words, code=2)
    assert said.stderr.count("\n") == 1 and fault in said.stderr


def test_the_verb_tells_and_exports(tmp_path):
    trace, out = traced(tmp_path / "t", interleaved(4, 8, 64 * KIB)), tmp_path / "hints"
    for part in ("trace.parquet", "meta.json"):
        assert "is a part of the trace" in stripewise("engine", trace, "--export", trace / part, code=2).stderr
    told = stripewise("engine", trace, "--file", "/d/f", "--export", out).stdout
    assert "32 collective writes of 64.0 KiB by 4 process(es), interleaved; 1 stripe(s) of 1.0 MiB" in told
    assert out.read_text() == "romio_cb_write enable\ncb_buffer_size 262144\n"
    assert f"ROMIO_HINTS={out}" in told
    said = json.loads(stripewise("engine", trace, "--file", "/d/f", "--json").stdout)
    assert said["hints"] == {"romio_cb_write": "enable", "cb_buffer_size": "262144"}
    assert [(each["file"], each["op"]) for each in said["calls"]] == [("/d/f", "write")]


def test_nothing_but_a_regular_file_is_replaced(tmp_path):
    trace = traced(tmp_path / "t", interleaved(2, 2, KIB))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to("file")
    for name, fault in (("pipe", "is no regular file"), ("link", "is a link")):
        said = stripewise("engine", trace, "--file", "/d/f", "--export", tmp_path / name, code=2)
        assert said.stderr.count("\n") == 1 and fault in said.stderr
    assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode) and (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "kept"
