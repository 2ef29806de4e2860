"""The load of targets over a run: byte by byte against the layout, and what is in a page of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs import runs_of, write_rows
from stripewise.errors import WorkloadError
from stripewise.layout import Layout, Region, target_bytes
from stripewise.view import read_requests
from stripewise.view.targets import loads_of
from stripewise.workload.layouts import NAME, TracedStore, TracedTarget, read_layouts, write_layouts
from stripewise.workload.served import parts
from test_cli import stripewise

NAMES = ["a", "b", "c"]
GRANULE = 4096
TARGETS = tuple(
    TracedTarget(name, klass, channels, 1e-3, 2e-3, 1e-8, 2e-8)
    for name, klass, channels in [("a", "hdd", 1), ("b", "hdd", 1), ("c", "ssd", 4)]
)
#: 4 KiB on a, 8 KiB on b; from 64 KiB on all on c.
TWO = Layout((Region(0, 65536, (("a", 4096), ("b", 8192))), Region(65536, 65536, (("c", 65536),))))


@st.composite
def layouts(draw) -> Layout:
    regions, at = [], 0
    for _ in range(draw(st.integers(1, 4))):
        names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
        stripes = tuple((name, GRANULE * draw(st.integers(1, 3))) for name in names)
        length = GRANULE * draw(st.integers(1, 6))
        regions.append(Region(at, length, stripes))
        at += length
    return Layout(tuple(regions))


def holder(layout: Layout, at: int) -> tuple[str, int, int]:
    """The target of one byte, its place in the target's object, and where its region begins, by definition."""
    last = layout.regions[-1]
    region = next((each for each in layout.regions if each.start <= at < each.start + each.len), last)
    base = at - (at - region.start) % region.len
    cycle, place = divmod(at - base, sum(width for _, width in region.stripes))
    for name, width in region.stripes:
        if place < width:
            return name, base + cycle * width + place, base
        place -= width
    raise AssertionError


@settings(deadline=None)
@given(layouts(), st.lists(st.tuples(st.integers(0, 80_000), st.integers(1, 30_000)), min_size=1, max_size=6))
def test_each_byte_of_a_request_is_its_targets(layout: Layout, requests: list[tuple[int, int]]) -> None:
    offset, size = (np.array(column, dtype=np.int64) for column in zip(*requests, strict=True))
    found: dict[tuple[int, str], int] = {}
    accesses: dict[tuple[int, str], int] = {}
    for row, target, count, some in zip(
        *(column.tolist() for column in parts(layout, NAMES, offset, size)), strict=True
    ):
        key = (row, NAMES[target])
        found[key] = found.get(key, 0) + count
        accesses[key] = accesses.get(key, 0) + some
    wanted: dict[tuple[int, str], int] = {}
    runs: dict[tuple[int, str], int] = {}
    for number, (at, length) in enumerate(requests):
        held = [holder(layout, byte) for byte in range(at, at + length)]
        for name, _, _ in held:
            wanted[number, name] = wanted.get((number, name), 0) + 1
        first = held[0]
        if all(each[:2] == (first[0], first[1] + byte) for byte, each in enumerate(held)):
            runs[number, first[0]] = 1
        else:
            for name, _ in {(name, region) for name, _, region in held}:
                runs[number, name] = runs.get((number, name), 0) + 1
    assert found == wanted
    assert accesses == runs


def placed(place: Path, rows, layouts=None) -> Path:
    trace = write_rows(place, rows)
    write_layouts(trace, [TracedStore("/s", TARGETS, layouts or {"/d/f": TWO})])
    return trace


def test_loads_have_the_requests_bytes_accesses_and_the_models_seconds(tmp_path: Path) -> None:
    rows = [(0, "read", "/d/f", 0, 12288), (1, "write", "/d/f", 61440, 8192), (1, "write", "/d/elsewhere", 0, 9)]
    trace = placed(tmp_path / "t", [*rows, (0, "read", "/d/f", None, 7)])
    requests = read_requests(trace)
    end = int(requests.end_ns.max())
    (load,) = loads_of(requests, trace, end, 64)
    # 61,440 is byte 0 of a cycle of 12,288.
    assert load.bytes.tolist() == [[4096, 4096], [8192, 0], [0, 4096]]
    assert load.accesses.tolist() == [[1, 1], [1, 0], [0, 1]]
    work = [1e-3 + 4096e-8 + 2e-3 + 4096 * 2e-8, 1e-3 + 8192e-8, (2e-3 + 4096 * 2e-8) / 4]
    assert load.work_s.tolist() == pytest.approx(work)
    assert load.without == 2, "one in a file that is not there, one at an unknown offset"
    layers = load.cells.sum(axis=2)
    assert layers[1:].T.tolist() == load.bytes.tolist()
    assert (layers[0] / 1e9).tolist() == pytest.approx(work, rel=1e-6)


def test_a_page_tells_of_targets_only_where_layouts_are_known(tmp_path: Path) -> None:
    rows = [(rank, "write", "/d/f", (k * 2 + rank) * 8192, 8192) for k in range(40) for rank in range(2)]
    stripewise("show", placed(tmp_path / "t", rows), "--html", tmp_path / "out.html")
    (run,) = runs_of((tmp_path / "out.html").read_text())
    (load,) = run["targets"]
    assert [each["name"] for each in load["targets"]] == NAMES and load["without"] == 0
    assert sum(sum(each["bytes"]) for each in load["targets"]) == 80 * 8192
    told = stripewise("show", tmp_path / "t").stdout
    assert "targets of /s, as its files lay when the trace was first collected" in told
    assert "at work by the model" in told
    # A microsecond each: no time of a device fits.
    assert "\n-: by the model longer than first to last request took." in told
    assert "; upper limits, for the run was faster than the model (" in told or "findings: none" in told
    shown = json.loads(stripewise("show", tmp_path / "t", "--json").stdout)["targets"]
    assert [row["name"] for row in shown] == NAMES and sum(row["written"] for row in shown) == 80 * 8192
    (tmp_path / "t" / NAME).unlink()
    stripewise("show", tmp_path / "t", "--html", tmp_path / "out.html")
    assert runs_of((tmp_path / "out.html").read_text())[0]["targets"] == []
    assert "targets of" not in stripewise("show", tmp_path / "t").stdout


def test_thousands_of_targets_and_regions_fit_a_page(tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(256)]
    targets = tuple(TracedTarget(name, "hdd", 1, 1e-3, 1e-3, 1e-8, 1e-8) for name in names)
    cycle = tuple((name, 4096) for name in names)
    regions = tuple(Region(at << 20, 1 << 20, cycle[at % 20 :]) for at in range(2000))
    rows = [(0, "write", "/d/f", at * 600_000, 600_000) for at in range(3000)]
    trace = write_rows(tmp_path / "t", rows)
    write_layouts(trace, [TracedStore("/s", targets, {"/d/f": Layout(regions)})])
    stripewise("show", trace, "--html", tmp_path / "out.html")
    text = (tmp_path / "out.html").read_text()
    assert len(text) < 3_000_000
    (load,) = runs_of(text)[0]["targets"]
    assert len(load["targets"]) == 64 and load["more"] == 192
    # Those with most bytes: every byte of the file is asked for once.
    held = target_bytes(regions, 3000 * 600_000)
    shown = {each["name"] for each in load["targets"]}
    assert min(held[name] for name in shown) >= max(held[name] for name in names if name not in shown) - 4096


def test_layouts_read_back_as_they_were_written(tmp_path: Path) -> None:
    store = TracedStore("/s", TARGETS, {"/d/f": TWO, "/d/g": TWO})
    write_layouts(tmp_path, [store])
    assert read_layouts(tmp_path) == (store,)
    write_layouts(tmp_path, [])
    assert read_layouts(tmp_path) == () and not (tmp_path / NAME).exists()


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_whatever_is_in_the_file_is_an_error_or_a_store(tmp_path_factory, data) -> None:
    place = tmp_path_factory.mktemp("l")
    write_layouts(place, [TracedStore("/s", TARGETS, {"/d/f": TWO})])
    said = json.loads((place / NAME).read_text())
    store = said["stores"][0]
    where = data.draw(
        st.sampled_from([said, store, store["targets"][0], store["files"][0], store["files"][0]["regions"][0]])
    )
    key = data.draw(st.sampled_from([*where, "other"]))
    where[key] = data.draw(
        st.one_of(st.none(), st.integers(), st.floats(), st.text(), st.lists(st.integers()), st.just([[]]))
    )
    text = json.dumps(said)
    (place / NAME).write_text(text[: data.draw(st.sampled_from([len(text), len(text) // 2, 0]))])
    try:
        read_layouts(place)
    except WorkloadError as error:
        assert NAME in str(error)
