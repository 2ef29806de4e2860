"""The picture of a comparison: both runs' curves over time, and how often which value occurs, on one page.

The page has the numbers behind the picture as a table and loads nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...report import Figure, new_figure, save_figure
from .compare import Compared
from .timeline import Timeline

#: Okabe and Ito's colours, which colour-blind readers tell apart.
_COLOURS = ("#0072B2", "#D55E00")
_METRICS: tuple[tuple[str, Callable[[Timeline], NDArray[Any]]], ...] = (
    ("throughput, MB/s", lambda line: line.bytes * (1e3 / line.width_ns)),
    ("data operations over all", lambda line: line.ratio),
    ("operations per second", lambda line: line.operations * (1e9 / line.width_ns)),
)
_HEADINGS = (
    "bin", "from, s", "bytes, original", "bytes, synthetic", "operations, original", "operations, synthetic",
    "data operations, original", "data operations, synthetic",
)  # fmt: skip


def write_comparison_page(compared: Compared, path: Path) -> None:
    """Writes the page as HTML, or the picture alone as SVG, by the suffix. Raises UsageError for any other suffix."""
    lines = compared.timelines()
    save_figure(draw(lines, compared), path, title_of(compared), _HEADINGS, rows_of(lines))


def title_of(compared: Compared) -> str:
    """Whose runs they are; `$` is no mathematics here."""
    one, other = compared.comparison.original, compared.comparison.synthetic
    return f"{Path(one.source).name} (original) and {Path(other.source).name}"


def draw(lines: tuple[Timeline, Timeline], compared: Compared) -> Figure:
    """Curves over time above, the distributions of their values below, the cumulative bytes at the right."""
    figure = new_figure(17.0, 7.0)
    axes = figure.subplots(2, len(_METRICS) + 1, squeeze=False)
    distances = compared.comparison.binned[0].distances
    names = ("original", "synthetic")
    for column, ((label, value), distance) in enumerate(
        zip(_METRICS, (distances.throughput, distances.ratio, distances.arrival), strict=True)
    ):
        over, below = axes[0][column], axes[1][column]
        for name, line, colour in zip(names, lines, _COLOURS, strict=True):
            values = value(line)
            edges = np.arange(len(values) + 1) * (line.width_ns / 1e9)
            over.stairs(values, edges, color=colour, label=name, alpha=0.8)
            below.ecdf(values, color=colour, label=name)
        over.set_title(label)
        over.set_xlabel("s")
        below.set_title(f"K-S {distance:.3f}")
        below.set_xlabel(label)
        below.set_ylabel(f"share of {len(lines[0].bytes)} and {len(lines[1].bytes)} bins")
    for row, (gap, heading) in enumerate(
        (
            (compared.comparison.gap, "bytes moved, MB"),
            (compared.comparison.gap_normalised, "shares of bytes and time"),
        )
    ):
        for name, line, colour in zip(names, lines, _COLOURS, strict=True):
            moved = np.concatenate([[0], line.cumulative])
            times = np.arange(len(moved)) * (line.width_ns / 1e9)
            over = axes[row][-1]
            if row:
                over.plot(times / max(times[-1], 1e-9), moved / max(1, moved[-1]), color=colour, label=name)
            else:
                over.plot(times, moved / 1e6, color=colour, label=name)
        over.set_title(f"{heading}; largest gap {gap:.3f}")
    axes[0][0].legend()
    figure.suptitle(title_of(compared).replace("$", r"\$"))
    return figure


def rows_of(lines: tuple[Timeline, Timeline]) -> list[tuple[object, ...]]:
    """A row per bin; where one run is shorter, its cells stay empty."""
    one, other = lines

    def cell(column: Any, place: int) -> object:
        return int(column[place]) if place < len(column) else ""

    return [
        (
            place, f"{place * one.width_ns / 1e9:.6f}", cell(one.bytes, place), cell(other.bytes, place),
            cell(one.operations, place), cell(other.operations, place), cell(one.data, place), cell(other.data, place),
        )
        for place in range(max(len(one.bytes), len(other.bytes)))
    ]  # fmt: skip
