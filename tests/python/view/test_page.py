"""The page of `show --html`: what is in it, what is not, and how large it gets."""

from __future__ import annotations

import html
import json
import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs import RUNS, runs_of, write_rows
from stripewise.errors import WorkloadError
from stripewise.view import picture_of, read_requests
from test_cli import stripewise

HOSTILE = "/d/</script><img src=x onerror=alert(1)>&\udcff.dat"


def page_of(trace, tmp_path, *words):
    out = tmp_path / "out.html"
    stripewise("show", trace, "--html", out, *words)
    return out.read_text()


def data_of(text):
    (run,) = runs_of(text)
    return run


def test_a_page_loads_nothing_and_has_all_in_it(tmp_path):
    rows, _ = RUNS["a hot region"]
    text = page_of(write_rows(tmp_path / "t", rows), tmp_path)
    assert "default-src 'none'" in text and not re.search(r"(src|href)\s*=|url\(|@import|fetch\(|XMLHttp", text)
    data = data_of(text)
    assert sum(data["total"]["requests"]) == len(rows)
    assert [each["title"] for each in data["findings"]] == ["random reads of a hot region in /d/f"]
    assert data["files"][0]["patterns"][0]["sentence"].startswith("Each of 4 ranks reads 1,000 small requests")


def test_the_time_of_the_requests_has_one_name_on_all_pages_and_the_time_before_them_another(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    rows, _ = RUNS["a hot region"]
    place = write_rows(tmp_path / "t", rows)
    table = pq.read_table(place / "trace.parquet")
    for column in ("start_ns", "end_ns"):
        late = pa.array(table[column].to_numpy() + 2_000_000_000)
        table = table.set_column(table.column_names.index(column), column, late)
    pq.write_table(table, place / "trace.parquet")
    text = page_of(place, tmp_path)
    data, span_s = data_of(text), len(rows) * 1e-6
    assert data["total"]["end_ns"] - data["total"]["begin_ns"] == round(span_s * 1e9)
    assert data["end_ns"] == 2_000_000_000 + round(span_s * 1e9)
    assert '["first to last request", timeText(total.end_ns - total.begin_ns)]' in text
    assert '["start of the run to its last request", timeText(data.end_ns)]' in text and '"the run"' not in text
    assert f"first to last request of this run: {span_s:.3g} s" in data["prices"]
    page = stripewise("show", place).stdout
    assert f"requests; first to last request: {span_s:.3g} s" in page and data["prices"] in page
    assert "furthest byte" in page and '"furthest byte"' in text


def test_names_of_files_are_never_markup(tmp_path):
    name = HOSTILE.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    text = page_of(write_rows(tmp_path / "t", [(0, "write", name, 0, 10)]), tmp_path)
    assert "<img" not in text and data_of(text)["files"][0]["path"] == name
    assert text.count("</script>") == 2


@pytest.mark.parametrize("command", [["</title><img src=x onerror=alert(1)>", "a & b", "\udcff"], []])
def test_what_the_page_is_called_is_never_markup(tmp_path, command):
    place = write_rows(tmp_path / "<img src=y> & z", [(0, "write", "/d/f", 0, 10)])
    (place / "meta.json").write_text(json.dumps({"command": command}))
    text = page_of(place, tmp_path)
    title = re.search(r"<title>(.*?) - Stripewise</title>", text)[1]
    told = "</title><img src=x onerror=alert(1)> a & b ?" if command else str(place)
    assert "<img" not in text and html.unescape(title) == told


def test_ten_thousand_files_and_random_requests_stay_below_three_megabytes(tmp_path):
    rng = np.random.default_rng(1)
    rows = 400_000
    place = tmp_path / "t"
    place.mkdir()
    number = np.arange(rows)
    file = np.where(number < 10_000, number, rng.integers(0, 12, rows))
    names = np.array([f"/d/{each}" for each in range(10_000)])
    table = {
        "process": pa.array(number * 300 // rows, pa.int32()), "rank": pa.array(number * 300 // rows, pa.int32()),
        "op": np.where(rng.random(rows) < 0.5, "read", "write"), "file": names[file],
        "offset": rng.integers(0, 1 << 40, rows), "done": rng.integers(1, 1 << 20, rows),
        "start_ns": number * 1000, "end_ns": number * 1000 + rng.integers(1, 1 << 20, rows),
    }  # fmt: skip
    pq.write_table(pa.table(table), place / "trace.parquet")
    requests = read_requests(place)
    document = picture_of(requests, place).document
    assert len(json.dumps(document)) < 3_000_000 - 120_000
    assert sum(document["total"]["bytes"]) == int(table["done"].sum())


@pytest.mark.parametrize("flag", ["--html", "--perfetto"])
def test_no_input_and_nothing_behind_a_link_is_replaced(tmp_path, flag):
    trace = write_rows(tmp_path / "t", [(0, "write", "/d/f", 0, 10)])
    kept = (trace / "trace.parquet").read_bytes()
    assert "part of the trace" in stripewise("show", trace, flag, trace / "trace.parquet", code=2).stderr
    (tmp_path / "own").write_text("mine")
    os.symlink(tmp_path / "own", tmp_path / "link")
    assert "is a link" in stripewise("show", trace, flag, tmp_path / "link", code=2).stderr
    assert flag in stripewise("show", trace, flag, tmp_path / "none" / "x", code=2).stderr
    assert (trace / "trace.parquet").read_bytes() == kept and (tmp_path / "own").read_text() == "mine"


def test_a_second_run_belongs_to_a_page(tmp_path):
    trace = write_rows(tmp_path / "t", [(0, "write", "/d/f", 0, 10)])
    alone = stripewise("show", trace, "--beside", trace, code=2).stderr
    assert "--beside: puts two runs on one page; give --html FILE too" in alone
    assert "none" in stripewise("show", trace, "--html", tmp_path / "x", "--beside", tmp_path / "none", code=1).stderr
    assert not (tmp_path / "x").exists()


def test_a_page_of_two_runs_has_both_in_their_order(tmp_path):
    traces = [write_rows(tmp_path / name, [(0, "write", f"/d/{name}", 0, 10)]) for name in "tu"]
    runs = runs_of(page_of(traces[0], tmp_path, "--beside", traces[1]))
    assert [run["files"][0]["path"] for run in runs] == ["/d/t", "/d/u"]


def test_a_name_that_is_a_shell_pattern_has_its_own_patterns(tmp_path):
    rows = [(0, "write", name, k * 10, 10) for name in ("/d/part[1]", "/d/part1", "/d/*") for k in range(20)]
    shown = data_of(page_of(write_rows(tmp_path / "t", rows), tmp_path))["files"]
    assert [len(each["patterns"]) for each in shown] == [1, 1, 1]


def test_requests_at_unknown_offsets_alone_have_a_page(tmp_path):
    shown = data_of(page_of(write_rows(tmp_path / "t", [(0, "write", "/d/f", None, 10)] * 5), tmp_path))
    assert shown["total"]["without_offset"] == 5 and shown["findings"] == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.sampled_from(["read", "write", "stat"]), st.sampled_from(["/d/f", "/d/g"]),
            st.one_of(st.none(), st.integers(0, 100), st.integers(0, 2**63 - 1)), st.integers(-1, 1 << 62),
        ),
        min_size=1, max_size=60,
    )
)  # fmt: skip
def test_any_trace_gives_a_page_with_all_its_bytes_or_one_error(tmp_path, rows):
    place = write_rows(tmp_path / "t", rows)
    moved = [each for each in rows if each[1] != "stat" and each[4] > 0]
    try:
        requests = read_requests(place)
    except WorkloadError as error:
        assert not moved and "trace.parquet" in str(error)
        return
    document = picture_of(requests, place).document
    text = json.dumps(document, allow_nan=False)
    assert sum(document["total"]["requests"]) == len(moved) and len(text) < 1_000_000
    if sum(each[4] for each in moved) < 1 << 63:
        assert sum(document["total"]["bytes"]) == sum(each[4] for each in moved)


def test_sizes_whose_sum_is_no_number_of_64_bits_leave_no_file_out(tmp_path):
    rows = [(0, "read", "/d/f", None, 1), *[(0, "read", "/d/g", None, 1 << 62)] * 2]
    assert sorted(read_requests(write_rows(tmp_path / "t", rows)).files) == ["/d/f", "/d/g"]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a protobuf message: a decoder of its own."""
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        elif key & 7 == 1:
            value, at = data[at : at + 8], at + 8
        else:
            raise AssertionError(f"wire type {key & 7}")
        found.append((key >> 3, value))
    return found


def test_a_perfetto_trace_has_a_slice_for_each_request(tmp_path):
    rows, _ = RUNS["small, interleaved"]
    trace = write_rows(tmp_path / "t", rows)
    stripewise("show", trace, "--perfetto", tmp_path / "out")
    packets = [fields(value) for number, value in fields((tmp_path / "out").read_bytes()) if number == 1]
    # TracePacket: timestamp 8, track_event 11 (type 9: 1 begins, 2 ends), track_descriptor 60 (process 3).
    events = [(dict(each)[8], dict(fields(dict(each)[11]))[9]) for each in packets if 11 in dict(each)]
    begins = sorted(time for time, kind in events if kind == 1)
    assert begins == [1000 * number for number in range(len(rows))] and len(events) == 2 * len(rows)
    tracks = [dict(fields(dict(each)[60])) for each in packets if 60 in dict(each)]
    assert sum(3 in each for each in tracks) == 4
