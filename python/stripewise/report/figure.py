"""Figures by matplotlib, saved as SVG or as one HTML page that holds the SVG and the numbers behind it.

The same data give the same bytes: no dates, fixed ids, text as text, so that figures can be kept under version control.
"""

from __future__ import annotations

import html
import io
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..files.parts import check_output, write_durably

#: matplotlib's Figure; untyped here because the library is loaded only when a plot is asked for.
Figure = Any
SUFFIXES = (".svg", ".html")
#: Values that differ by less are one place of a picture.
_SAME = 1e-3
_MARKERS = "os^Dv<>ph*"
_STYLE = "body{font:15px sans-serif;margin:2em}table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:right}"


def check_plot_path(path: Path, flag: str = "--plot") -> None:
    """UsageError when a figure cannot be saved under this name, or matplotlib is missing; before the work is done."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{flag}: {path} ends neither in .svg nor in .html; name one of them")
    check_output(path, flag)
    require_matplotlib()


def require_matplotlib() -> Any:
    """The library, loaded; UsageError when it is missing."""
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError as error:
        raise UsageError(
            f"--plot: needs matplotlib ({error}); install it with: pip install 'stripewise[plot]'"
        ) from error
    return matplotlib


def new_figure(width_in: float = 8.0, height_in: float = 4.5) -> Figure:
    """An empty figure that needs no screen."""
    return require_matplotlib().figure.Figure(figsize=(width_in, height_in), layout="constrained")


def plot_lines(
    axes: Any, places: Sequence[Any], lines: Mapping[str, Sequence[float]], colours: Mapping[str, str]
) -> None:
    """A line per name, none of them hidden: those that are the same are one line with all their names, and one that
    runs along another for a part of its way is dashed there, over it, with a marker of its own.
    """
    drawn: list[tuple[list[str], Sequence[float]]] = []
    for name, values in lines.items():
        same = next((names for names, other in drawn if _all_same(values, other)), None)
        if same is None:
            drawn.append(([name], values))
        else:
            same.append(name)
    for number, (names, values) in enumerate(drawn):
        over = sum(_run_together(values, other) for _, other in drawn[:number])
        dashes = (0, (4, 4 * over)) if over else "-"
        axes.plot(
            places, values, linestyle=dashes, marker=_MARKERS[number % len(_MARKERS)], markersize=5, fillstyle="none",
            color=colours[names[0]], label=" = ".join(names),
        )  # fmt: skip


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_SAME) or (math.isnan(one) and math.isnan(other))


def _all_same(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(map(_same, one, other))


def _run_together(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two neighbouring points of both are the same."""
    same = [math.isclose(a, b, rel_tol=_SAME) for a, b in zip(one, other, strict=True)]
    return any(a and b for a, b in pairwise(same))


def save_figure(
    figure: Figure, path: Path, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> None:
    """Writes `figure` as SVG or HTML by the suffix of `path`; the HTML page has `rows` as a table under it.

    Raises UsageError for another suffix.
    """
    check_plot_path(path)
    buffer = io.StringIO()
    with require_matplotlib().rc_context({"svg.hashsalt": "stripewise", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Title": title, "Creator": "stripewise"})
    svg = buffer.getvalue()
    if path.suffix == ".svg":
        write_durably(path, svg)
        return
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>\n" for row in rows)
    write_durably(
        path,
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{html.escape(title)}</h1>\n{svg[svg.index('<svg') :]}\n"
        f"<table><tr>{head}</tr>\n{body}</table></body></html>\n",
    )
