"""Pictures of price lists: the parts of every price, prices along a sweep, and maps of who wins where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..report.figure import Figure, new_figure, plot_lines
from ..units import format_size
from .pricelist import VIEWS, PriceList

PARTS = ("connections", "network", "startup", "storage")
_PART_COLOURS = ("#8c8c8c", "#4c78a8", "#e45756", "#72b7b2")
_COLOURS = (
    "#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2", "#eeca3b", "#72b7b2", "#9d755d", "#ff9da6", "#8c8c8c",
    "#1f3b57", "#7a4004", "#245022", "#7d1f20", "#59304f", "#8a7106",
)  # fmt: skip


def price_figure(prices: PriceList, title: str) -> Figure:
    """Bars of one price list, a panel per view, the four parts stacked; milliseconds."""
    views = [view for view in VIEWS if any(row.model.view == view for row in prices.rows)]
    heights = [sum(row.model.view == view for row in prices.rows) for view in views]
    figure = new_figure(9.0, 1.6 + 0.3 * sum(heights))
    figure.suptitle(title)
    axes = figure.subplots(len(views), 1, squeeze=False, height_ratios=heights)[:, 0]
    for view, axis in zip(views, axes, strict=True):
        rows = [row for row in prices.rows if row.model.view == view]
        left = np.zeros(len(rows))
        for part, colour, values in zip(PARTS, _PART_COLOURS, _parts(rows), strict=True):
            axis.barh(np.arange(len(rows)), values, left=left, color=colour, label=part)
            left += values
        axis.set_yticks(np.arange(len(rows)), [row.label for row in rows])
        axis.invert_yaxis()
        axis.set_title(VIEWS[view], loc="left", fontsize="medium")
        axis.set_xlabel("milliseconds")
    axes[0].legend(fontsize="small")
    return figure


def _parts(rows: Sequence[Any]) -> Any:
    return (
        1e3
        * np.array(
            [[row.terms.establish_s, row.terms.transfer_s, row.terms.startup_s, row.terms.storage_s] for row in rows]
        ).T
    )


def sweep_figure(variable: str, values: Sequence[int], series: dict[str, dict[str, list[float | None]]]) -> Figure:
    """Lines along a sweep: a panel per key of `series`, a line per layout in it; both axes logarithmic."""
    figure = new_figure(9.0, 3.4 * len(series))
    axes = figure.subplots(len(series), 1, squeeze=False)[:, 0]
    names = dict.fromkeys(name for lines in series.values() for name in lines)
    colours = {name: _COLOURS[number % len(_COLOURS)] for number, name in enumerate(names)}
    for axis, (title, lines) in zip(axes, series.items(), strict=True):
        known = {name: [math.nan if point is None else point for point in points] for name, points in lines.items()}
        plot_lines(axis, values, known, colours)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xticks(values, [axis_text(variable, value) for value in values], rotation=45, ha="right")
        axis.minorticks_off()
        axis.set_title(title, loc="left", fontsize="medium")
        axis.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes[-1].set_xlabel(variable)
    return figure


def axis_text(variable: str, value: int) -> str:
    """A swept value as words."""
    return format_size(value).replace(".0 ", " ") if variable == "request" else str(value)


def map_figure(
    requests: Sequence[int], processes: Sequence[int], winners: dict[str, list[list[str | None]]], width_in: float = 9.0
) -> Figure:
    """Who wins for every request size (row) and number of processes (column): a panel per key of `winners`."""
    names = sorted({name for grid in winners.values() for row in grid for name in row if name is not None})
    figure = new_figure(width_in, (1.0 + 0.24 * len(requests)) * len(winners) + 0.4)
    axes = figure.subplots(len(winners), 1, squeeze=False)[:, 0]
    patches = _matplotlib_patches()
    for axis, (title, grid) in zip(axes, winners.items(), strict=True):
        for y, row in enumerate(grid):
            for x, name in enumerate(row):
                if name is not None:
                    colour = _COLOURS[names.index(name) % len(_COLOURS)]
                    axis.add_patch(patches.Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white"))
        axis.set_xlim(-0.5, len(processes) - 0.5)
        axis.set_ylim(-0.5, len(requests) - 0.5)
        axis.set_xticks(range(len(processes)), [str(p) for p in processes])
        axis.set_yticks(range(len(requests)), [axis_text("request", r) for r in requests])
        axis.set_ylabel("request")
        axis.set_title(title, loc="left", fontsize="medium")
    axes[-1].set_xlabel("processes")
    handles = [patches.Patch(color=_COLOURS[n % len(_COLOURS)], label=name) for n, name in enumerate(names)]
    figure.legend(handles=handles, loc="outside right upper", fontsize="small")
    return figure


def _matplotlib_patches() -> Any:
    from matplotlib import patches

    return patches
