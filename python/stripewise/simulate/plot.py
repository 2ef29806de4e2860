"""Pictures of simulated runs: bandwidth per policy, bandwidth over a sweep, or one run over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..report import new_figure, save_figure
from .run import Outcome

_TITLE = "simulated"
COLUMNS = ("policy", "MB/s", "read MB/s", "write MB/s", "bound ratio", "imbalance")


def _row(outcome: Outcome) -> list[object]:
    report = outcome.report
    keys = ("mb_s", "read_mb_s", "write_mb_s", "bound_ratio", "imbalance")
    return [outcome.name, *(f"{report[key]:.3g}" for key in keys)]


def plot_comparison(outcomes: Sequence[Outcome], path: Path, workload: str) -> None:
    """Bars of read and write bandwidth, one group per policy, and a mark where the bound lies."""
    figure = new_figure()
    axes = figure.add_subplot()
    places = list(range(len(outcomes)))
    for shift, key, label in ((-0.2, "read_mb_s", "read"), (0.2, "write_mb_s", "write")):
        axes.bar([place + shift for place in places], [o.report[key] for o in outcomes], 0.4, label=label)
    bounds = [o.report["mb_s"] / o.report["bound_ratio"] if o.report["bound_ratio"] else 0.0 for o in outcomes]
    axes.plot(places, bounds, "k_", markersize=24, label="bound")
    axes.set_xticks(places, [outcome.name for outcome in outcomes])
    axes.set_ylabel("MB/s, simulated")
    axes.set_title(f"{workload}: bandwidth, {_TITLE}")
    axes.legend()
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
    for number, first in enumerate(points[0][1]):
        axes.plot(places, [outcomes[number].report["mb_s"] for _, outcomes in points], marker="o", label=first.name)
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
