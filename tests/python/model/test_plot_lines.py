"""Lines and bars of pictures: none is hidden behind another, and bars stand at their names."""

from __future__ import annotations

import math
from itertools import pairwise
from types import SimpleNamespace

import pytest

pytest.importorskip("matplotlib")
from stripewise.report import new_figure, plot_lines
from stripewise.simulate import plot


def drawn(lines):
    axes = new_figure().add_subplot()
    plot_lines(axes, range(4), lines, dict.fromkeys(lines, "black"))
    return axes.get_lines()


def test_lines_that_are_the_same_are_one_with_all_names():
    lines = drawn({"a": [1, 2, 3, 4], "b": [1, 2, 3, 5], "c": [1, 2, 3, 4 + 1e-9], "d": [1, math.nan, 3, 5]})
    assert [line.get_label() for line in lines] == ["a = c", "b", "d"]


def test_a_line_that_runs_along_others_is_dashed_and_each_has_a_marker_of_its_own():
    lines = drawn({"a": [1, 2, 3, 4], "b": [1, 2, 9, 9], "c": [9, 9, 3, 4], "d": [1, 2, 3, 5], "e": [9, 8, 7, 6]})
    assert [line.is_dashed() for line in lines] == [False, True, True, True, False]
    assert len({line.get_marker() for line in lines}) == 5


def outcome(name, read, write):
    report = {"read_mb_s": read, "write_mb_s": write, "mb_s": read + write, "bound_ratio": 0.5, "imbalance": 0.0}
    return SimpleNamespace(name=name, report=report)


@pytest.mark.parametrize("count", [1, 3, 8])
@pytest.mark.parametrize(("read", "write", "bars"), [(10, 20, 3), (10, 0, 1), (0, 20, 1)])
def test_bars_stand_side_by_side_at_their_names_and_the_bound_over_that_of_all(
    count, read, write, bars, tmp_path, monkeypatch
):
    made = []
    monkeypatch.setattr(plot, "save_figure", lambda figure, *_: made.append(figure))
    plot.plot_comparison([outcome(f"policy {n}", read, write) for n in range(count)], tmp_path / "a.svg", "w")
    (axes,) = made[0].axes
    spans = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)
    assert len(spans) == count * bars and all(a[1] <= b[0] + 1e-9 for a, b in pairwise(spans))
    for place in axes.get_xticks():
        mine = [span for span in spans if place - 0.5 < span[0] < place + 0.5]
        assert len(mine) == bars and mine[0][0] + mine[-1][1] == pytest.approx(2 * place)
    bounds = [lines.get_segments()[0] for lines in axes.collections]
    tallest = {bar.get_x(): bar.get_height() for bar in axes.patches}
    for (left, height), _ in bounds:
        assert height == 2 * next(tall for x, tall in tallest.items() if x == pytest.approx(left))


def test_a_long_name_of_a_plan_leaves_room_for_bars():
    assert plot._short("best") == "best" and plot._short("/a/long/way/to/the/directory/p.json") == "p.json"
    assert len(plot._short("x" * 99)) == 30
