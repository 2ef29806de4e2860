"""The pictures of the experiments: lines over an axis, bars in groups. Colours stand for policies everywhere alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from stripewise.report import new_figure, save_figure

#: Okabe and Ito's colours, which colour-blind readers tell apart.
COLOURS = {
    "def": "#7f7f7f", "padp": "#E69F00", "psa": "#56B4E9", "h2dp": "#0072B2", "slal": "#CC79A7", "best": "#D55E00",
    "best, for repeats": "#882255", "whole_region": "#009E73", "h2dp, no moves": "#009E73", "w/o": "#E69F00",
}  # fmt: skip
Panel = tuple[str, Mapping[str, Sequence[float]]]


def _colour(name: str) -> dict[str, str]:
    return {"color": COLOURS[name]} if name in COLOURS else {}


def _axes(figure: Any, count: int) -> list[Any]:
    return list(figure.subplots(1, count, squeeze=False)[0])


def draw_lines(
    path: Path,
    title: str,
    label: str,
    ticks: Sequence[str],
    panels: Sequence[Panel],
    reference: Mapping[str, Sequence[float]] | None = None,
    bound: Sequence[float] | None = None,
    unit: str = "MB/s, simulated",
    log: bool = False,
) -> None:
    """A panel per (heading, lines), a line per name over the ticks; a reference is dashed alike, the bound dotted."""
    figure = new_figure(7.0 * len(panels) if len(panels) < 3 else 13.0, 4.6)
    for axes, (heading, lines) in zip(_axes(figure, len(panels)), panels, strict=True):
        places = range(len(ticks))
        for name, values in lines.items():
            (drawn,) = axes.plot(places, values, marker="o", label=name, **_colour(name))
            if reference and name in reference:
                label_of = f"{name}, reference simulation"
                axes.plot(places, reference[name], "--x", color=drawn.get_color(), label=label_of)
        if bound:
            axes.plot(places, bound, "k:", label="bound")
        axes.set_xticks(places, ticks)
        _finish(axes, heading, label, unit, log)
    _legend(figure, axes)
    figure.suptitle(title)
    save_figure(figure, path, title, (label,), [])


def draw_bars(
    path: Path,
    title: str,
    label: str,
    ticks: Sequence[str],
    panels: Sequence[Panel],
    unit: str = "MB/s, simulated",
    ranges: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> None:
    """A panel per (heading, bars), a group per tick; `ranges` are (lowest, highest) drawn over bars."""
    figure = new_figure(6.5 * len(panels), 4.6)
    for axes, (heading, bars) in zip(_axes(figure, len(panels)), panels, strict=True):
        width = 0.8 / len(bars)
        for number, (name, values) in enumerate(bars.items()):
            at = [place - 0.4 + (number + 0.5) * width for place in range(len(ticks))]
            axes.bar(at, values, width, label=name, **_colour(name))
            if ranges and name in ranges:
                low = [value - each[0] for value, each in zip(values, ranges[name], strict=True)]
                high = [each[1] - value for value, each in zip(values, ranges[name], strict=True)]
                axes.errorbar(at, values, [low, high], fmt="none", ecolor="black", capsize=3)
        axes.set_xticks(range(len(ticks)), ticks)
        _finish(axes, heading, label, unit)
    _legend(figure, axes)
    figure.suptitle(title)
    save_figure(figure, path, title, (label,), [])


def _finish(axes: Any, heading: str, label: str, unit: str, log: bool = False) -> None:
    axes.set_xlabel(label)
    axes.set_ylabel(unit)
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(bottom=0)
    axes.set_title(heading, fontsize="medium")
    axes.grid(axis="y", alpha=0.3)


def _legend(figure: Any, axes: Any) -> None:
    """Beside the panels, which all show the same names."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="small")
