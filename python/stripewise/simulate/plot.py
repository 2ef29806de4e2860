"""Pictures of simulated runs: bandwidth per policy, bandwidth over a sweep, or one run over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..report import new_figure, plot_lines, save_figure
from .run import Outcome

_BARS = (("read_mb_s", "read"), ("write_mb_s", "write"))
_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2", "#eeca3b", "#72b7b2", "#9d755d")
#: Letters of names that stand side by side; more of them are tilted.
_NAMES_MAX = 60
_NAME_MAX = 30
_TITLE = "simulated"
COLUMNS = ("policy", "MB/s", "read MB/s", "write MB/s", "bound ratio", "imbalance")


def _row(outcome: Outcome) -> list[object]:
    report = outcome.report
    keys = ("mb_s", "read_mb_s", "write_mb_s", "bound_ratio", "imbalance")
    return [outcome.name, *(f"{report[key]:.3g}" for key in keys)]


def _short(name: str) -> str:
    """A name, of a plan's the file's, that leaves room for the bars."""
    last = name if len(name) <= _NAME_MAX else Path(name).name
    return last if len(last) <= _NAME_MAX else f"...{last[3 - _NAME_MAX :]}"


def plot_comparison(outcomes: Sequence[Outcome], path: Path, workload: str) -> None:
    """Bars of read and write bandwidth, one group per policy, and a mark where the bound lies."""
    figure = new_figure()
    axes = figure.add_subplot()
    bars = [bar for bar in _BARS if any(o.report[bar[0]] for o in outcomes)]
    if len(bars) > 1:
        # The bound is one of all requests together, and so has a bar to stand on.
        bars.append(("mb_s", "all"))
    width = 0.8 / len(bars)
    for number, (key, label) in enumerate(bars):
        lefts = [place - 0.4 + number * width for place in range(len(outcomes))]
        axes.bar(lefts, [o.report[key] for o in outcomes], width, align="edge", label=label)
    for place, outcome in enumerate(outcomes):
        bound = outcome.report["mb_s"] / outcome.report["bound_ratio"] if outcome.report["bound_ratio"] else 0.0
        axes.hlines(
            bound, place + 0.4 - width, place + 0.4, colors="black", linewidth=2, label="" if place else "bound"
        )
    names = [_short(outcome.name) for outcome in outcomes]
    tilted = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if sum(map(len, names)) > _NAMES_MAX else {}
    axes.set_xticks(range(len(outcomes)), names, **tilted)
    axes.set_xlim(-0.6, len(outcomes) - 0.4)
    axes.set_ylabel("MB/s, simulated")
    axes.set_title(f"{workload}: bandwidth, {_TITLE}")
    figure.legend(loc="outside lower center", ncols=4)
    save_figure(figure, path, f"{workload}: bandwidth by policy, {_TITLE}", COLUMNS, [_row(o) for o in outcomes])


def plot_timeline(outcome: Outcome, path: Path, workload: str) -> None:
    """Read, write and copy bandwidth of one run over its time, and the requests in flight."""
    buckets: Sequence[dict[str, Any]] = outcome.report["timeline"]
    figure = new_figure()
    axes = figure.add_subplot()
    time_s = [bucket["start_s"] for bucket in buckets]
    for key, label in (("read_mb_s", "read"), ("write_mb_s", "write"), ("copy_mb_s", "copies of moves")):
        if any(bucket[key] for bucket in buckets):
            axes.plot(time_s, [bucket[key] for bucket in buckets], label=label, drawstyle="steps-post")
    axes.set_xlabel("seconds, simulated")
    axes.set_ylabel("MB/s, simulated")
    right = axes.twinx()
    in_flight = [bucket["in_flight"] for bucket in buckets]
    right.plot(time_s, in_flight, color="gray", linewidth=0.8, label="in flight", drawstyle="steps-post")
    right.set_ylabel("requests in flight")
    axes.set_title(f"{workload} under {outcome.name}, {_TITLE}")
    figure.legend(loc="outside lower center", ncols=4)
    columns = ("start s", "read MB/s", "write MB/s", "in flight", "copy MB/s")
    rows = [
        [f"{bucket[key]:.6g}" for key in ("start_s", "read_mb_s", "write_mb_s", "in_flight", "copy_mb_s")]
        for bucket in buckets
    ]
    save_figure(figure, path, f"{workload} under {outcome.name}, {_TITLE}", columns, rows)


def plot_sweep(key: str, points: Sequence[tuple[object, Sequence[Outcome]]], path: Path, workload: str) -> None:
    """Bandwidth over the swept key, one line per policy."""
    figure = new_figure()
    axes = figure.add_subplot()
    values = [value for value, _ in points]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    places: Sequence[Any] = values if numeric else list(range(len(values)))
    lines = {
        first.name: [outcomes[number].report["mb_s"] for _, outcomes in points]
        for number, first in enumerate(points[0][1])
    }
    plot_lines(axes, places, lines, {name: _COLOURS[n % len(_COLOURS)] for n, name in enumerate(lines)})
    if numeric and len(places) > 2 and places[0] > 0 and places[-1] >= 8 * places[0]:
        axes.set_xscale("log", base=2)
    axes.set_xticks(places, [str(value) for value in values])
    axes.set_xlabel(key)
    axes.set_ylabel("MB/s, simulated")
    axes.set_ylim(bottom=0)
    axes.set_title(f"{workload}: bandwidth over {key}, {_TITLE}")
    axes.legend()
    rows = [[str(value), *_row(outcome)] for value, outcomes in points for outcome in outcomes]
    save_figure(figure, path, f"{workload}: bandwidth over {key}, {_TITLE}", (key, *COLUMNS), rows)
