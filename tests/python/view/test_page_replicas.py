"""Which replica served which read, in a page: codes, cells and colours; and the toggle in a real Chromium."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from browser import Browser, missing
from runs import runs_of, write_rows
from stripewise.replicas.blocks import Standing, StridedBlocks
from stripewise.view import picture, picture_of, read_requests
from stripewise.view.page import ASSETS
from stripewise.view.replicas import COLOURS, OTHERS
from stripewise.workload.copied import ReplicaBlocks, are_those, copied_in
from test_cli import stripewise

COPIED = 1 << 13
SIZE = 4096


def served(place, by, writes=8):
    """A trace of a read for each of `by` (a replica's number; None: the file itself; -1: no number), then writes."""
    rows = [(k % 4, "read", "/d/f", k * SIZE, SIZE) for k in range(len(by))]
    rows += [(k % 4, "write", "/d/f", k * SIZE, SIZE) for k in range(writes)]
    write_rows(place, rows)
    table = pq.read_table(place / "trace.parquet")
    flags = [0 if number is None else COPIED for number in by] + [0] * writes
    aux = [0 if number is None else number + 1 for number in by] + [0] * writes
    table = table.append_column("flags", pa.array(flags, pa.int32())).append_column("aux", pa.array(aux, pa.int32()))
    pq.write_table(table, place / "trace.parquet")
    return place


def column(blob):
    planes = np.frombuffer(zlib.decompress(b64decode(blob["data"])), np.uint8).reshape(blob["planes"], blob["n"])
    return sum(plane.astype(np.int64) << 8 * k for k, plane in enumerate(planes)) * blob["unit"]


def shown(trace):
    (found,) = picture_of(read_requests(trace), trace).document["files"]
    return found


#: Replicas 0 to 6, each with as many reads as its number and two more; then the file itself.
MANY = [number for number in range(7) for _ in range(number + 2)] + [None] * 9


def test_each_request_has_the_code_of_who_served_it(tmp_path):
    found = shown(served(tmp_path / "t", MANY))
    codes = sorted(column(found["single"]["replica"]).tolist())
    assert codes == sorted([*(0 if number is None else number + 2 for number in MANY), *[0] * 8])
    assert found["replicas"]["served"] == [[n, n + 2, (n + 2) * SIZE] for n in range(6, -1, -1)]
    # Those with most bytes, by number, so that colours of two runs are alike.
    assert found["replicas"]["coloured"] == [3, 4, 5, 6]


def test_a_cell_has_the_slot_of_most_bytes_read_in_it(tmp_path, monkeypatch):
    monkeypatch.setattr(picture, "REQUESTS_MAX", 10)
    monkeypatch.setattr(picture, "RASTER_LEVELS", ((len(MANY), len(MANY)),))
    raster = shown(served(tmp_path / "t", MANY, writes=0))["raster"]
    cells = column(raster["slot"]).reshape(raster["time_count"], raster["count"])
    slots = [0 if n is None else [3, 4, 5, 6].index(n) + 1 if n >= 3 else OTHERS for n in MANY]
    assert cells.shape == (len(MANY), len(MANY)) and np.diag(cells).tolist() == slots
    assert np.count_nonzero(cells) == np.count_nonzero(slots)
    monkeypatch.setattr(picture, "RASTER_LEVELS", ((1, 1),))
    raster = shown(served(tmp_path / "t", MANY, writes=0))["raster"]
    # Replicas 0 to 2 together served as many reads as the file itself.
    assert column(raster["slot"]).tolist() == [0]


def test_a_trace_of_an_earlier_version_tells_only_that_copies_served(tmp_path):
    trace = served(tmp_path / "t", [-1] * 6 + [None] * 6)
    (known,) = copied_in(trace, {"/d/f"}).values()
    assert known.sentences == ("copies of it served 6 read(s), 24.0 KiB",)
    found = shown(trace)
    assert found["replicas"] == {"coloured": [], "served": [[None, 6, 6 * SIZE]]}
    table = pq.read_table(trace / "trace.parquet").drop_columns(["aux"])
    pq.write_table(table, trace / "trace.parquet")
    assert shown(trace)["replicas"] == found["replicas"] and copied_in(trace, {"/d/f"})["/d/f"] == known
    said = json.loads(stripewise("show", trace, "--json").stdout)["run"]["files"][0]["copied"]
    assert said["replicas"] == [{"number": None, "reads": 6, "bytes": 6 * SIZE, "blocks": None}]


def test_files_without_copies_have_nothing_of_them_in_a_page(tmp_path):
    found = shown(served(tmp_path / "t", [None] * 20))
    assert "replicas" not in found and "replica" not in found["single"]


def test_a_page_as_large_as_allowed_stays_so_with_replicas(tmp_path):
    rows = 300_000
    rng = np.random.default_rng(1)
    place = tmp_path / "t"
    place.mkdir()
    number = np.arange(rows)
    table = {
        "process": pa.array(number * 0, pa.int32()), "op": np.full(rows, "read"), "file": np.full(rows, "/d/f"),
        "offset": rng.integers(0, 1 << 40, rows), "done": rng.integers(1, 1 << 20, rows), "start_ns": number * 1000,
        "end_ns": number * 1000 + 900, "flags": pa.array(np.full(rows, COPIED), pa.int32()),
        "aux": pa.array(rng.integers(1, 4097, rows), pa.int32()),
    }  # fmt: skip
    pq.write_table(pa.table(table), place / "trace.parquet")
    document = picture_of(read_requests(place), place).document
    assert len(json.dumps(document)) < 3_000_000 - 120_000
    assert "slot" in document["files"][0]["raster"]


@pytest.mark.parametrize(("base", "dims"), [(0, ()), (8192, ((65536, 4),)), (4096, ((8192, 3), (65536, 4))),
                                            (0, ((65536, 4), (8192, 3)))])  # fmt: skip
def test_a_replica_has_the_requests_that_lie_in_one_of_its_blocks(base, dims):
    held = ReplicaBlocks(base, 4096, dims)
    starts = {base}
    for stride, count in dims:
        starts = {start + stride * k for start in starts for k in range(count)}
    offset = np.arange(0, 300_000, 1024)
    for size in (1024, 4096, 5120):
        mine = [any(start <= at and at + size <= start + 4096 for start in starts) for at in offset.tolist()]
        assert held.has(offset, np.full(len(offset), size)).tolist() == mine
    # The store has them one after another as the loops are written, and so does the model.
    at, size = StridedBlocks(base, 4096, dims).offsets(), np.full(len(starts), 4096)
    assert held.place(at).tolist() == list(range(0, 4096 * len(starts), 4096))
    standing = Standing([StridedBlocks(base, 4096, dims)])
    assert held.place(at + 100).tolist() == standing.find(at + 100, size - 100)[2].tolist()


def test_copies_with_other_blocks_are_not_those_of_the_run():
    blocks = [ReplicaBlocks(0, 4096, ()), ReplicaBlocks(8192, 4096, ())]
    replica, offset, size = np.array([0, 1, 0]), np.array([0, 8192, 1024]), np.array([4096, 100, 3072])
    assert are_those(blocks, replica, offset, size)
    assert not are_those(blocks[::-1], replica, offset, size)
    assert not are_those(blocks[:1], replica, offset, size)
    assert not are_those(blocks, np.array([0, -1, 0]), offset, size)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_told_apart_by_people_who_see_fewer(scheme):
    """CIE76 distances as Machado et al. (2009) simulate protanopia, deuteranopia and tritanopia."""
    css = (ASSETS / "page.css").read_text()
    rule = re.search(r':root\[data-theme="dark"\] \{(.*?)\}' if scheme == "dark" else r":root \{(.*?)\}", css)
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", rule[1]))
    drawn = [colours[name] for name in ("read", "write", "others", *(f"replica{n + 1}" for n in range(COLOURS)))]
    for sight in SIGHTS:
        seen = [lab(np.array(sight) @ linear(each)) for each in drawn]
        pairs = [np.linalg.norm(a - b) for k, a in enumerate(seen) for b in seen[:k]]
        assert min(pairs) > 14, (sight, drawn)


SIGHTS = [
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
]


def linear(colour):
    part = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.9505, 1, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.fixture(scope="module")
def browser():
    """One for all."""
    if missing() is not None:
        pytest.skip(missing() or "")
    made = Browser()
    yield made
    made.close()


def colours_in(pixels):
    return {tuple(each) for each in np.unique(pixels.reshape(-1, 4), axis=0)[:, :3].tolist()}


@pytest.mark.parametrize("is_binned", [False, True])
def test_the_toggle_shows_and_hides_who_served_what(browser, tmp_path, is_binned):
    by = [number for number in MANY for _ in range(500)] if is_binned else MANY
    stripewise("show", served(tmp_path / "t", by), "--html", tmp_path / "out.html")
    browser.emulate("light")
    browser.console()
    browser.open(tmp_path / "out.html")
    assert runs_of((tmp_path / "out.html").read_text())[0]["files"][0].keys() >= {"raster" if is_binned else "single"}
    keys = (
        "return [...document.querySelectorAll('#files figcaption .key')].filter(e => !e.hidden).map(e => e.textContent)"
    )
    told = [f"replica {number}" for number in (3, 4, 5, 6)] + ["3 other replicas"]
    assert [each for each in browser.run(keys) if "replica" in each] == told
    coloured = browser.pixels(1)
    browser.keys(1, "r")
    plain = browser.pixels(1)
    assert [each for each in browser.run(keys) if "replica" in each] == []
    pressed = "return document.querySelector('button.toggle').getAttribute('aria-pressed')"
    assert browser.run(pressed) == "false"
    # Of bins colours are mixed with what is behind them.
    of_replicas = {(0x00, 0x9E, 0x73), (0xE6, 0x9F, 0x00), (0x56, 0xB4, 0xE9), (0x4D, 0x3A, 0x00), (0xA8, 0xAD, 0xB4)}
    assert is_binned or colours_in(coloured) >= of_replicas
    assert not colours_in(plain) & of_replicas and len(colours_in(coloured) - colours_in(plain)) >= 5
    browser.keys(1, "r")
    assert np.array_equal(browser.pixels(1), coloured) and browser.run(pressed) == "true"
    words = browser.run(
        "const v = views[1], found = new Set();"
        "for (let x = 0; x < 1; x += .002) for (let y = 0; y < 1; y += .05)"
        "  found.add(v.picture.hover(v, x * v.picture.x.end, y * v.picture.y.end)?.split('\\n').pop());"
        "return [...found]"
    )
    assert any("from replica 6" in each for each in words if each)
    # Only that the test looks at pixels.
    assert [each for each in browser.console() if "getImageData" not in each] == []
