"""Causes: each is named where it is, and nothing is where there is none; any trace gives some page."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stripewise.errors import WorkloadError
from stripewise.findings import DEFAULT_CLUSTER, facts_of, findings_of, summary_of_run
from support import KIB, MIB
from test_cli import cluster_toml as cluster_toml
from test_cli import stripewise


def write_rows(place, rows):
    """A trace of (rank, op, file, offset, bytes), a microsecond each, and its directory."""
    place.mkdir(exist_ok=True)
    columns = list(zip(*rows, strict=True))
    start = np.arange(len(rows), dtype=np.int64) * 1000
    made = {
        "process": pa.array(columns[0], pa.int32()), "pid": pa.array(columns[0], pa.int32()),
        "rank": pa.array(columns[0], pa.int32()), "world": pa.array([max(columns[0]) + 1] * len(rows), pa.int32()),
        "op": pa.array(columns[1], pa.string()), "file": pa.array(columns[2], pa.string()),
        "offset": pa.array(columns[3], pa.int64()), "done": pa.array(columns[4], pa.int64()),
        "start_ns": start, "end_ns": start + 1000,
    }  # fmt: skip
    pq.write_table(pa.table(made), place / "trace.parquet")
    return place


def causes(place, rows):
    return [each.cause for each in findings_of(facts_of(write_rows(place, rows)), DEFAULT_CLUSTER)]


def rng(seed):
    return np.random.default_rng(seed)


def opens(ranks, file="/d/f"):
    return [(rank, "open", file, None, 3) for rank in range(ranks)]


def zipf_reads(count, size, places):
    chance = rng(1)
    weights = 1 / np.arange(1, places + 1) ** 1.2
    at = chance.permutation(places)[chance.choice(places, count, p=weights / weights.sum())]
    return [(int(k) % 4, "read", "/d/f", int(place) * size, size) for k, place in enumerate(at)]


RUNS = {
    "none, large requests in order": (
        [(r, "write", "/d/f", (r * 8 + k) * 4 * MIB, 4 * MIB) for k in range(8) for r in range(4)], [],
    ),
    "none, strided by 1 MiB": ([(r, "write", "/d/f", (k * 4 + r) * MIB, MIB) for k in range(64) for r in range(4)], []),
    "small, interleaved": (
        [(r, "write", "/d/f", (k * 4 + r) * 2 * KIB, 2 * KIB) for k in range(100) for r in range(4)], ["interleaved"],
    ),
    "a small collective buffer": (
        opens(4) + [(0, "write", "/d/f", k * 64 * KIB, 64 * KIB) for k in range(200)], ["collective_buffer"],
    ),
    "the first process writes, and nobody else opens": (
        opens(1) + [(0, "write", "/d/f", k * 4 * KIB, 4 * KIB) for k in range(200)], ["small_requests"],
    ),
    "a hot region": (zipf_reads(4000, 16 * KIB, 16384), ["hot_region"]),
    "no order, no preferred place": (
        [(0, "read", "/d/f", int(k) * 16 * KIB, 16 * KIB) for k in rng(2).permutation(2000)],
        ["scattered"],
    ),
    "writes in no order": (
        [(k % 2, "write", "/d/f", 16 * KIB * int(p), 9000) for k, p in enumerate(rng(3).permutation(900))],
        ["scattered"],
    ),
    "one rank of four": (
        opens(1) + [(0, "write", "/d/f", k * 4 * MIB, 4 * MIB) for k in range(16)] + [(3, "read", "/d/g", 0, 10)],
        ["uneven"],
    ),
    "names": (
        [(k % 4, "open", f"/d/{k}", None, 3) for k in range(600)] + [(0, "read", "/d/0", 0, 10)], ["metadata"],
    ),
}  # fmt: skip


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


def test_names_that_would_move_the_cursor_are_shown_as_text(tmp_path):
    trace = write_rows(tmp_path / "t", [(0, "write", "/d/\x1b[2Jx", 0, 10)])
    said = stripewise("show", trace).stdout
    assert "\x1b" not in said and "\\x1b" in said


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.sampled_from(["read", "write", "open", "stat"]), st.sampled_from(["/d/f", "/d/g"]),
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
