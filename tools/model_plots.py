"""Draws the pictures of docs/models.md from the models themselves: tools/model_plots.py [DIRECTORY] [NAME...].

The same code gives the same bytes, so that a picture that no longer fits the models shows as a difference.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stripewise.model import CostParameters, DeviceFigures, OpFigures
from stripewise.model.plot import map_figure
from stripewise.model.pricelist import Question, price_list
from stripewise.model.radar import RadarFigures, coarse
from stripewise.model.segment import even_stripe, optimal_stripe, segment_cost, stationary_stripe
from stripewise.report import new_figure, save_figure
from stripewise.units import KIB, MIB, format_size

M, N = 12, 4
HDD = DeviceFigures(OpFigures(0.003, 1e-8), OpFigures(0.003, 1e-8))
SSD = DeviceFigures(OpFigures(1e-4, 2.5e-9), OpFigures(1e-4, 2.5e-9))
#: The golden calibration of section 3 and a nearer one, where the stationary stripe lies inside.
SPREADS_S = (60e-3, 25e-3, 12e-3)
#: Seed 004, Table II.
RADAR = RadarFigures(8, 32.9e-6, 0.00112e-6, 6.20e-3, 0.0212e-6)


def question(request_bytes: int, processes: int) -> Question:
    """A request on the devices of section 7, without a network."""
    return Question(CostParameters(processes, 1, 0.0, 0.0, HDD, SSD), M, N, request_bytes)


def winners() -> tuple[Any, list[str], list[list[object]]]:
    """Which layout wins on HServers, by the process models and by the bound."""
    requests = [4 * KIB << n for n in range(13)]
    processes = [1, 2, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 128, 256]
    found: dict[str, list[list[str | None]]] = {"process models": [], "bound": []}
    rows: list[list[object]] = []
    for r in requests:
        lists = [price_list(question(r, p), "hservers") for p in processes]
        for title, view in (("process models", "spread"), ("bound", "bound")):
            best = [prices.cheapest(view) for prices in lists]
            found[title].append([None if row is None else row.label.removesuffix("/H") for row in best])
        rows += [[r, p, *(grid[-1][n] for grid in found.values())] for n, p in enumerate(processes)]
    return map_figure(requests, processes, found), ["request_bytes", "processes", *found], rows


def concurrency() -> tuple[Any, list[str], list[list[object]]]:
    """What the request model prefers and what 32 processes get of it at best: HServers, split or whole, and DEF."""
    requests = [4 * KIB << n for n in range(13)]
    names = {"r/M": "split over the HServers (published)", "whole/H": "whole on one HServer", "def": "def"}
    rows: list[list[object]] = []
    for r in requests:
        by_label = {row.label: row for row in price_list(question(r, 32)).rows}
        pairs = [(by_label[n].total_s, r / by_label[n].bound_s / 1e6) for n in names]
        rows.append([r, *(number for pair in pairs for number in pair)])
    figure = new_figure(9.0, 3.6)
    cost, bound = figure.subplots(1, 2)
    for number, words in enumerate(names.values()):
        cost.plot(requests, [1e3 * row[1 + 2 * number] for row in rows], marker=".", label=words)  # type: ignore[operator]
        bound.plot(requests, [row[2 + 2 * number] for row in rows], marker=".", label=words)
    for axis, title in ((cost, "request model, milliseconds"), (bound, "bound with 32 processes, MB/s")):
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xticks(requests[::3], [format_size(r).replace(".0", "") for r in requests[::3]])
        axis.set_title(title, loc="left", fontsize="medium")
        axis.set_xlabel("request")
    cost.legend(fontsize="small")
    return figure, ["request_bytes", *(f"{n} {what}" for n in names for what in ("seconds", "MB/s"))], rows


def segment() -> tuple[Any, list[str], list[list[object]]]:
    """Eq. 3 along the stripe for requests of 1 MiB on 8 servers, with the stripe of eq. 4 and the best even one."""
    r, n, per_byte = MIB, 8, 1e-8
    stripes = np.geomspace(64 * KIB, 4 * MIB, 241)
    figure = new_figure(9.0, 3.6)
    axis = figure.subplots()
    rows: list[list[object]] = []
    for spread in SPREADS_S:
        calibration = (n, 1e-3, 1e-3 + spread, per_byte)
        (line,) = axis.plot(stripes, 1e3 * segment_cost(r, stripes, *calibration), label=f"spread {1e3 * spread:g} ms")
        chosen = optimal_stripe(r, *calibration)
        even = even_stripe(r, *calibration)
        inside = stationary_stripe(r, 1e-3, 1e-3 + spread, per_byte)
        cost, least = (float(segment_cost(r, s, *calibration)) for s in (chosen, even))
        axis.plot([chosen], [1e3 * cost], "o", color=line.get_color(), label=f"chosen: {format_size(chosen)}")
        axis.plot([even], [1e3 * least], "x", color=line.get_color(), markersize=9)
        rows.append([spread, inside, chosen, cost, even, least])
    axis.set_xscale("log", base=2)
    ticks = [64 * KIB << k for k in range(7)]
    axis.set_xticks(ticks, [format_size(s).replace(".0", "") for s in ticks])
    axis.set_xlabel("stripe (a cross: the least of eq. 3)")
    axis.set_ylabel("milliseconds")
    axis.legend(fontsize="small", ncols=3)
    return figure, ["spread_s", "stationary_bytes", "chosen_bytes", "chosen_s", "even_bytes", "even_s"], rows


def radar() -> tuple[Any, list[str], list[list[object]]]:
    """The coarse cost of 64 MiB per client along n_p, relative to the best, for RADAR's own figures."""
    figure = new_figure(9.0, 3.6)
    axis = figure.subplots()
    n_p = np.arange(1, RADAR.n + 1)
    rows: list[list[object]] = []
    for p in (1, 2, 3, 4, 8, 16):
        total = coarse(RADAR, p, 1, p * 64 * MIB, n_p).total_s
        axis.plot(n_p, total / total.min(), marker=".", label=f"{p} client{'s' if p > 1 else ''}")
        rows.append([p, *total.tolist()])
    axis.set_xlabel("servers per client")
    axis.set_ylabel("cost over the best")
    axis.set_ylim(0.9, 3)
    axis.legend(fontsize="small", ncols=2)
    return figure, ["p", *(str(each) for each in n_p)], rows


PLOTS: dict[str, Callable[[], tuple[Any, list[str], list[list[object]]]]] = {
    "winners": winners, "concurrency": concurrency, "segment": segment, "radar": radar,
}  # fmt: skip


def draw(directory: Path, names: list[str]) -> None:
    """Writes the named pictures, or all."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in names or PLOTS:
        figure, columns, rows = PLOTS[name]()
        save_figure(figure, directory / f"{name}.svg", name, columns, rows)


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/models"), sys.argv[2:])
