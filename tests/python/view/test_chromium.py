"""The page in a real Chromium: pictures have pixels, answer wheel, keys and mouse, and nothing leaves the page."""

from __future__ import annotations

import numpy as np
import pytest

from browser import Browser, missing
from runs import RUNS, write_rows
from test_cli import stripewise
from test_page_targets import placed

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")
NAME = "/d/</script><img src=x onerror=document.title=1>"


@pytest.fixture(scope="module")
def browser():
    """One for all."""
    made = Browser()
    yield made
    made.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A hot region, a second file with a hostile name; timeline, places and heat of each: five canvases."""
    place = tmp_path_factory.mktemp("page")
    rows = [(rank, op, "/d/f", at, size) for rank, op, _, at, size in RUNS["a hot region"][0]]
    rows += [(rank, "write", NAME, (k * 4 + rank) * 65536, 65536) for k in range(32) for rank in range(4)]
    trace = write_rows(place / "t", rows)
    stripewise("show", trace, "--html", place / "out.html")
    return place / "out.html"


def drawn(pixels):
    """Pixels that are neither background nor transparent."""
    flat = pixels.reshape(-1, 4)
    colours, counts = np.unique(flat, axis=0, return_counts=True)
    return len(flat) - int(counts.max()), len(colours)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_have_pixels_in_both_schemes(browser, page, scheme):
    browser.emulate(scheme)
    browser.open(page)
    assert browser.run("return document.documentElement.dataset.theme") == scheme
    assert browser.run("return document.querySelectorAll('canvas.view').length") == 5
    for canvas in range(5):
        count, colours = drawn(browser.pixels(canvas))
        assert count > 2000 and colours > 3, (canvas, count, colours)
    assert browser.run("return document.querySelectorAll('#distributions canvas').length") == 2
    dark = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(255, 255, 255)") == (scheme == "light")


def test_wheel_keys_and_buttons_change_what_is_drawn(browser, page):
    browser.emulate("light")
    browser.open(page)
    for canvas in range(5):
        whole = browser.pixels(canvas)
        browser.point(canvas, 0.5, 0.5, wheel=-400)
        near = browser.pixels(canvas)
        assert not np.array_equal(whole, near), canvas
        browser.keys(canvas, "ArrowRight ArrowRight")
        moved = browser.pixels(canvas)
        assert not np.array_equal(near, moved), canvas
        browser.keys(canvas, "0")
        assert np.array_equal(whole, browser.pixels(canvas)), canvas
    browser.keys(0, "t")
    assert browser.run("return document.querySelectorAll('#timeline tbody tr').length") == 4
    browser.run("document.getElementById('theme').click()")
    browser.settle()
    assert browser.run("return document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("end", ["pointerup", "pointercancel"])
def test_a_drag_ends_where_the_pointer_is_let_go_or_taken_away(browser, page, end):
    browser.emulate("light")
    browser.open(page)
    ranges = "return [views[1].x[0], views[1].x[1]]"
    browser.point(1, 0.5, 0.5, wheel=-400)
    near = browser.run(ranges)
    browser.pointer(1, "pointerdown", 0.5)
    browser.pointer(1, "pointermove", 0.4)
    dragged = browser.run(ranges)
    assert dragged[0] > near[0] and dragged[1] - dragged[0] == pytest.approx(near[1] - near[0])
    browser.pointer(1, end, 0.4)
    browser.pointer(1, "pointermove", 0.6)
    assert browser.run(ranges) == dragged


def test_a_wheel_draws_nearer_about_the_place_below_it(browser, page):
    browser.emulate("light")
    browser.open(page)
    ranges = "return [views[1].x, views[1].y].flat()"
    whole = browser.run(ranges)
    quarter = browser.run("const v = views[1]; return (v.box.x + v.box.w / 4) / v.canvas.clientWidth")
    browser.point(1, quarter, 0.5, wheel=-400)
    from_, to, low, high = browser.run(ranges)
    assert (to - from_) == pytest.approx(0.8 * whole[1]) and [low, high] == whole[2:]
    # What was a quarter of the way stays there.
    assert from_ + (to - from_) * 0.25 == pytest.approx(0.25 * whole[1], rel=0.01)
    browser.keys(1, "-")
    assert browser.run(ranges) == whole


def test_zoom_and_moves_end_at_the_bounds(browser, page):
    browser.emulate("light")
    browser.open(page)
    across, upright = "return views[1].x", "return views[1].y"
    _, end = browser.run(across)
    browser.keys(1, "+ + " + "ArrowRight " * 20)
    low, high = browser.run(across)
    assert high == end and high - low == pytest.approx(0.49 * end)
    browser.keys(1, "ArrowLeft " * 20)
    assert browser.run(across) == [0, pytest.approx(0.49 * end)]
    # A microsecond is the least that is shown of a run.
    browser.keys(1, "+ " * 30)
    low, high = browser.run(across)
    assert high - low == pytest.approx(1000)
    whole = browser.run(upright)
    browser.run(
        "views[1].canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: -9, shiftKey: true, cancelable: true}))"
    )
    low, high = browser.run(upright)
    assert high - low == pytest.approx(0.8 * whole[1]) and browser.run(across)[1] - browser.run(across)[0] < 1001


def test_the_mouse_is_told_what_is_below_it(browser, page):
    browser.emulate("light")
    browser.open(page)
    script = "return document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent"
    browser.point(0, 0.3, 0.4)
    assert "rank " in browser.run(script) and "in requests" in browser.run(script)
    browser.point(2, 0.5, 0.5)
    assert " B" in browser.run(script)


def test_nothing_leaves_the_page_and_nothing_is_wrong_in_it(browser, page):
    browser.requests()
    browser.console()
    browser.open(page)
    browser.point(1, 0.5, 0.5, wheel=-400)
    assert [each for each in browser.requests() if not each.startswith("file://")] == []
    assert browser.console() == []
    assert (
        browser.run("return [document.title, document.images.length, document.querySelector('h1').textContent]")[1] == 0
    )
    assert NAME in browser.run("return [...document.querySelectorAll('h3')].map((each) => each.textContent)")


def test_two_runs_stand_side_by_side_on_the_same_scales(browser, page, tmp_path):
    slow = [(rank, op, "/d/f", at * 2, size) for rank, op, _, at, size in RUNS["small, interleaved"][0] * 12]
    other = write_rows(tmp_path / "other", slow)
    stripewise("show", page.parent / "t", "--html", tmp_path / "two.html", "--beside", other)
    browser.console()
    browser.open(tmp_path / "two.html")
    assert browser.console() == []
    # Timelines of both, places and heat of /d/f in both, of the other file in one.
    assert browser.run("return document.querySelectorAll('canvas.view').length") == 8
    assert browser.run("return [...new Set(views.map((each) => each.picture.x.end))].length") == 3
    assert browser.run("return views[0].picture.x.end === views[1].picture.x.end")
    for canvas in range(8):
        assert drawn(browser.pixels(canvas))[0] > 500, canvas
    assert "not in this run" in browser.run("return document.getElementById('files').textContent")


def test_the_load_of_targets_is_drawn_and_tabled(browser, tmp_path):
    rows = [
        (rank, op, "/d/f", (k * 4 + rank) * 12288, 12288)
        for k in range(60)
        for rank in range(4)
        for op in ("write", "read")
    ]
    stripewise("show", placed(tmp_path / "t", rows), "--html", tmp_path / "out.html")
    for scheme in ("light", "dark"):
        browser.emulate(scheme)
        browser.open(tmp_path / "out.html")
        assert browser.run("return document.querySelectorAll('#targets canvas.view').length") == 1
        count, colours = drawn(browser.pixels(1))
        assert count > 2000 and colours > 3
    whole = browser.pixels(1)
    browser.keys(1, "+")
    assert not np.array_equal(whole, browser.pixels(1))
    browser.keys(1, "0 t")
    rows = browser.run("return [...document.querySelectorAll('#targets tbody tr')].map(r => r.cells[0].textContent)")
    assert rows == ["a (hdd)", "b (hdd)", "c (ssd)"]
    assert "as its files lay when the trace was first collected" in browser.run(
        "return document.getElementById('targets').textContent"
    )
