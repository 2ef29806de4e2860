"""Figures by matplotlib, saved as SVG or as one HTML page that holds the SVG and the numbers behind it.

The same data give the same bytes: no dates, fixed ids, text as text, so that figures can be kept under version control.
"""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..files.parts import check_output, write_durably

#: matplotlib's Figure; untyped here because the library is loaded only when a plot is asked for.
Figure = Any
SUFFIXES = (".svg", ".html")
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
