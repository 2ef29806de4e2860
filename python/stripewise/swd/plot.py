"""Pictures of simulated shingled disks: response times over fills, where write time goes, and what the tracks hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ..report import new_figure, save_figure
from .results import Row

#: Points of a strip at most: of more tracks, shares are drawn.
BINS = 1000
#: Shades of a share.
LEVELS = 40
STATES = ("used", "hot", "gap", "free")
_COLOURS = {"used": "#4878a8", "hot": "#d1495b", "gap": "#c9c9c9", "free": "#f4f1e8"}
#: Parts of the response time of writes in the order in which they are stacked.
PARTS = ("own", "amplification", "collection", "upkeep", "waiting")


def plot_runs(rows: Sequence[Row], path: Path, title: str) -> None:
    """Mean response times over fills (figures 4.3 and 5.3), or of one fill where write time goes (figure 5.4)."""
    fills = list(dict.fromkeys(row.used for row in rows))
    figure = new_figure()
    axes = figure.add_subplot()
    if len(fills) > 1:
        for scheme in dict.fromkeys(row.scheme for row in rows):
            of_scheme = {row.used: row.mean_ms() for row in rows if row.scheme == scheme}
            points = [(fills.index(used), ms) for used, ms in of_scheme.items() if ms is not None]
            axes.plot([at for at, _ in points], [ms for _, ms in points], marker="o", label=scheme)
        axes.set_xticks(range(len(fills)), fills)
        axes.set_xlabel("space in use")
        axes.set_ylabel("mean response time, ms, simulated")
        axes.set_yscale("log")
    else:
        under = np.zeros(len(rows))
        for part in PARTS:
            heights = np.array([row.write_part_ms(part) or 0.0 for row in rows])
            axes.bar(range(len(rows)), heights, bottom=under, label=part)
            under += heights
        axes.set_xticks(range(len(rows)), [row.scheme for row in rows])
        axes.set_ylabel("mean response time of writes, ms, simulated")
    axes.set_title(title)
    axes.legend()
    columns = ("scheme", "used", "mean ms", *(f"writes: {part} ms" for part in PARTS), "amplification")
    table = [
        [
            row.scheme,
            row.used,
            f"{row.mean_ms() or 0:.4g}",
            *(f"{row.write_part_ms(part) or 0:.4g}" for part in PARTS),
            f"{row.report['amplification']:.4g}",
        ]
        for row in rows
    ]
    save_figure(figure, path, title, columns, table)


def track_counts(report: Mapping[str, Any], first: int = 0, tracks: int | None = None) -> dict[str, int]:
    """How many tracks of `tracks` from `first` on are in each state."""
    shares = shares_of(report, first, last_track(report, first, tracks), 1)
    return {state: round(float(shares[state][0]) * (last_track(report, first, tracks) - first)) for state in STATES}


def last_track(report: Mapping[str, Any], first: int, tracks: int | None) -> int:
    last = int(report["tracks"])
    return last if tracks is None else min(last, first + tracks)


def shares_of(report: Mapping[str, Any], first: int, until: int, bins: int) -> dict[str, np.ndarray]:
    """Share of each state in `bins` equal parts of the tracks `first` to `until`."""
    edges = np.linspace(first, until, bins + 1)
    ends = np.array([0, *accumulate(int(count) for _, count in report["runs"])], dtype=float)
    shares = {}
    for state in STATES:
        held = np.array([int(count) if name == state else 0 for name, count in report["runs"]], dtype=float)
        up_to = np.interp(edges, ends, np.concatenate([[0.0], np.cumsum(held)]))
        shares[state] = np.diff(up_to) / np.diff(edges)
    return shares


def plot_maps(rows: Sequence[Row], path: Path, title: str, first: int = 0, tracks: int | None = None) -> None:
    """A strip per scheme and fill: along it the tracks in the order of shingling, in it the shares of their states.

    `tracks` from `first` on are drawn; up to `BINS` of them, each is a cell of its own.
    """
    figure = new_figure(9.0, 1.0 + 0.7 * len(rows))
    # Loaded with the figure, and not before one is asked for.
    from matplotlib.patches import Patch

    colours = np.array(
        [[int(_COLOURS[state][at : at + 2], 16) for at in (1, 3, 5)] for state in STATES], dtype=np.uint8
    )
    strips = figure.subplots(len(rows), 1, squeeze=False)[:, 0]
    for axes, row in zip(strips, rows, strict=True):
        until = last_track(row.report, first, tracks)
        bins = min(BINS, until - first)
        shares = shares_of(row.report, first, until, bins)
        # A column is a bin: its states from below in the order of STATES, each as high as its share.
        levels = (np.arange(LEVELS) + 0.5) / LEVELS
        tops = np.cumsum([shares[state] for state in STATES[:-1]], axis=0)
        cells = (levels[:, None, None] >= tops[None]).sum(axis=1)
        axes.imshow(colours[cells], origin="lower", aspect="auto", interpolation="nearest", extent=(first, until, 0, 1))
        axes.set_yticks([])
        axes.set_ylabel(f"{row.scheme}\n{row.used}", rotation=0, ha="right", va="center", fontsize=8)
        axes.tick_params(labelbottom=axes is strips[-1])
    strips[-1].set_xlabel("track, in the order of shingling")
    figure.suptitle(title)
    handles = [Patch(facecolor=_COLOURS[state], edgecolor="gray", label=state) for state in STATES]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(STATES))
    table = [[row.scheme, row.used, *track_counts(row.report, first, tracks).values()] for row in rows]
    save_figure(figure, path, title, ("scheme", "used", *STATES), table)
