"""What the experiments share: runs of policies over several seeds, the result file, the picture.

An experiment is a folder: README.md, workload.toml, cluster.toml, run.py, and what run.py writes, result.json and
result.svg. Everything here is simulated.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from stripewise.cluster import Cluster
from stripewise.durable import write_durably
from stripewise.policy import PlanOptions, Policy
from stripewise.report import new_figure, save_figure
from stripewise.simulate import Settings, load_description, simulate_plan
from stripewise.workload.describe import read_description

MIB = 1 << 20


@dataclass(frozen=True)
class Series:
    """One policy at one point: MB/s of every seed's run, and the MB/s that no schedule of its layout beats."""

    mb_s: tuple[float, ...]
    bound_mb_s: tuple[float, ...]

    @property
    def mean(self) -> float:
        """MB/s, the mean over the seeds."""
        return fmean(self.mb_s)

    @property
    def bound(self) -> float:
        """The bound's MB/s (cost-models section 7), the mean over the seeds."""
        return fmean(self.bound_mb_s)

    @property
    def error(self) -> float:
        """The standard error of the mean as a share of it: what is left of chance after all seeds."""
        return stdev(self.mb_s) / len(self.mb_s) ** 0.5 / self.mean if len(self.mb_s) > 1 else 0.0

    @property
    def spread(self) -> float:
        """The best seed less the worst, as a share of the mean."""
        return (max(self.mb_s) - min(self.mb_s)) / self.mean


def run_seeds(
    workload: Path,
    changes: Mapping[str, Any],
    cluster: Cluster,
    policies: Mapping[str, Policy],
    seeds: Sequence[int],
    options: Mapping[str, Any] | None = None,
) -> dict[str, Series]:
    """Simulates the workload under every policy once per seed, which draws requests, random orders and devices.

    `changes` replace keys of the description. A policy plans from the requests that are then run, as in the papers: the
    traced run is repeated.
    """
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in policies}
    for seed in seeds:
        load = load_description(read_description(workload, {**changes, "seed": seed}))
        for name, policy in policies.items():
            plan = policy.plan(load.workload, cluster, PlanOptions(seed=seed, **(options or {})))
            report = simulate_plan(load, cluster, plan, Settings(seed=seed)).report
            moved = report["bytes_read"] + report["bytes_written"]
            runs[name].append((report["mb_s"], moved / report["bound_s"] / 1e6))
    return {name: Series(*zip(*points, strict=True)) for name, points in runs.items()}


def gain(of: float, over: float) -> float:
    """By what share `of` is faster than `over`: 1.43 is the papers' "143 percent"."""
    return of / over - 1


def rounded(value: Any) -> Any:
    """Floats to five digits: more would only tell machines apart."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value


def write_result(folder: Path, result: Mapping[str, Any]) -> None:
    """Writes result.json, the rows one a line so that results can be compared."""
    rows = ",\n  ".join(json.dumps(row) for row in rounded(result["rows"]))
    others = {key: value for key, value in result.items() if key != "rows"}
    rest = "".join(f',\n "{key}": {json.dumps(rounded(value))}' for key, value in others.items())
    write_durably(folder / "result.json", f'{{"rows": [\n  {rows}\n ]{rest}\n}}\n')


def progress(text: str) -> None:
    """A line on stderr: what is being run."""
    print(text, file=sys.stderr, flush=True)


def arguments(what: str, seeds: int, requests: int) -> argparse.Namespace:
    """The options of every run.py: a shorter or longer run, written elsewhere."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--seeds", type=int, default=seeds, help=f"runs per point (default {seeds})")
    parser.add_argument("--requests", type=int, default=requests, help=f"per process (default {requests})")
    parser.add_argument("--out", type=Path, help="where result.json and result.svg go (default: the experiment)")
    given = parser.parse_args()
    if given.seeds < 1 or given.requests < 1:
        parser.error("--seeds and --requests are at least 1")
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
    return given


def draw_lines(
    path: Path, title: str, label: str, ticks: Sequence[str], lines: Mapping[str, Sequence[float]],
    published: Mapping[str, Sequence[float]] | None = None, bound: Sequence[float] | None = None,
    unit: str = "MB/s, simulated",
) -> None:  # fmt: skip
    """One line per name over the ticks; what was published is dashed in the same colour, the bound dotted."""
    figure = new_figure(8.0, 5.0)
    axes = figure.add_subplot()
    places = range(len(ticks))
    for name, values in lines.items():
        (drawn,) = axes.plot(places, values, marker="o", label=name)
        if published and name in published:
            axes.plot(places, published[name], "--", marker="x", color=drawn.get_color(), label=f"{name}, published")
    if bound:
        axes.plot(places, bound, "k:", label="bound")
    axes.set_xticks(places, ticks)
    axes.set_xlabel(label)
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.legend(fontsize="small")
    save_figure(figure, path, title, (label, *lines), [])
