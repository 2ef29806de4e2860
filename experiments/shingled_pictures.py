"""The pictures of the experiments with shingled disks: a grid of panels that share their lines' names and colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from stripewise.report import new_figure, save_figure

#: Okabe and Ito's colours; the HDD, which all are measured by, is black.
COLOURS = {
    "hdd": "#000000", "1234": "#7f7f7f", "R(4123)": "#E69F00", "124R(3)": "#56B4E9", "14R(23)": "#009E73",
    "tstl-greedy": "#0072B2", "tstl-smart": "#D55E00", "tstl-smart, cold mode": "#F0A080", "is": "#CC79A7",
}  # fmt: skip
#: Broken where lines lie on one another.
STYLES = {"124R(3)": "-.", "14R(23)": "--", "tstl-smart": "--", "tstl-smart, cold mode": ":"}
Panel = tuple[str, Sequence[str], Mapping[str, Sequence[float]]]
COLUMNS = 3


#: From this ratio of its largest to its smallest value on, a panel's axis is logarithmic.
LOG_FROM = 6.0


def _colours(panels: Sequence[Panel]) -> dict[str, str]:
    """A colour for every name, the same in all panels."""
    names = dict.fromkeys(name for _, _, lines in panels for name in lines)
    others = [name for name in names if name not in COLOURS]
    return COLOURS | {name: f"C{number % 10}" for number, name in enumerate(others)}


def _grid(count: int) -> tuple[Any, list[Any]]:
    """A figure and its panels, of which the last row's unused ones are taken away."""
    columns = min(count, COLUMNS)
    lines = -(-count // columns)
    figure = new_figure(3.6 * columns + 1.8, 3.0 * lines + 0.4)
    axes = list(figure.subplots(lines, columns, squeeze=False).flat)
    for unused in axes[count:]:
        unused.remove()
    return figure, axes[:count]


def _legend(figure: Any, panels: Sequence[Any]) -> None:
    found: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        found |= {label: handle for label, handle in zip(labels, handles, strict=True) if label not in found}
    figure.legend(found.values(), found.keys(), loc="outside right center", fontsize="small")


def _log(axis: Any) -> None:
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(NullLocator())


def draw_grid(path: Path, title: str, label: str, unit: str, panels: Sequence[Panel]) -> None:
    """A panel per (heading, ticks, lines): a line per name over the ticks; a line that is shorter ends earlier."""
    figure, grid = _grid(len(panels))
    colours = _colours(panels)
    for axes, (heading, ticks, lines) in zip(grid, panels, strict=True):
        for name, values in lines.items():
            style = STYLES.get(name, "-")
            axes.plot(range(len(values)), values, style, marker="o", markersize=4, label=name, color=colours[name])
        axes.set_xticks(range(len(ticks)), ticks)
        _finish(axes, heading, label, unit)
        found = [value for values in lines.values() for value in values]
        if max(found) > LOG_FROM * min(found) > 0:
            axes.set_yscale("log")
            _log(axes.yaxis)
        else:
            axes.set_ylim(bottom=0)
    _legend(figure, grid)
    figure.suptitle(title)
    save_figure(figure, path, title, (label,), [])


def draw_groups(path: Path, title: str, unit: str, panels: Sequence[Panel]) -> None:
    """A panel per (heading, ticks, bars), a group of bars per tick."""
    figure, grid = _grid(len(panels))
    colours = _colours(panels)
    for axes, (heading, ticks, bars) in zip(grid, panels, strict=True):
        width = 0.8 / len(bars)
        for number, (name, values) in enumerate(bars.items()):
            at = [place - 0.4 + (number + 0.5) * width for place in range(len(ticks))]
            axes.bar(at, values, width, label=name, color=colours[name])
        axes.set_xticks(range(len(ticks)), ticks)
        _finish(axes, heading, "", unit)
        axes.set_ylim(bottom=0)
    _legend(figure, grid)
    figure.suptitle(title)
    save_figure(figure, path, title, (unit,), [])


def draw_stacks(
    path: Path, title: str, unit: str, panels: Sequence[tuple[str, Mapping[str, Mapping[str, float]]]]
) -> None:
    """A panel per (heading, {bar: {part: value}}), the parts on top of one another."""
    figure, grid = _grid(len(panels))
    for axes, (heading, bars) in zip(grid, panels, strict=True):
        parts = list(dict.fromkeys(part for bar in bars.values() for part in bar))
        bottom = [0.0] * len(bars)
        for part in parts:
            values = [bar.get(part, 0.0) for bar in bars.values()]
            axes.bar(range(len(bars)), values, 0.7, bottom=bottom, label=part)
            bottom = [low + value for low, value in zip(bottom, values, strict=True)]
        axes.set_xticks(range(len(bars)), list(bars), rotation=30, ha="right", fontsize="small")
        _finish(axes, heading, "", unit)
    _legend(figure, grid)
    figure.suptitle(title)
    save_figure(figure, path, title, (unit,), [])


def draw_shares(
    path: Path, title: str, panels: Sequence[tuple[str, Mapping[str, tuple[list[float], list[float]]]]]
) -> None:
    """A panel per (what is measured, {name: (values, share below)}) over a logarithmic axis."""
    figure, grid = _grid(len(panels))
    for axes, (label, lines) in zip(grid, panels, strict=True):
        for name, (values, shares) in lines.items():
            axes.plot(values, shares, "--" if " trace" in name else "-", label=name)
        axes.set_xscale("symlog", linthresh=1)
        axes.set_ylim(0, 1.02)
        _finish(axes, "", label, "share of them, up to")
    _legend(figure, grid)
    figure.suptitle(title)
    save_figure(figure, path, title, ("share",), [])


def _finish(axes: Any, heading: str, label: str, unit: str) -> None:
    axes.set_xlabel(label, fontsize="small")
    axes.set_ylabel(unit, fontsize="small")
    axes.set_title(heading, fontsize="medium")
    axes.tick_params(labelsize="small")
    axes.grid(axis="y", alpha=0.3)
