"""`stripewise simulate`: what plans would do to a workload on a cluster, without either."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..cluster import Cluster, read_cluster
from ..errors import StripewiseError, UsageError
from ..plan import read_plan
from ..policy import POLICIES, PlanOptions, Policy, policies_named, refuse_foreign
from ..report.figure import check_plot_path
from ..simulate import Load, Outcome, Settings, load_description, load_trace, simulate_plan
from ..simulate.plot import plot_comparison, plot_sweep, plot_timeline
from ..simulate.run import LOOPS
from ..simulate.sweep import Sweep, Value, changed_cluster, parse_sweep
from ..workload.describe import read_description
from .options import (
    FileOption,
    JsonOption,
    MinGainOption,
    RegionOption,
    ServersOption,
    SigmaOption,
    SmoothOption,
    StepOption,
    StripeOption,
    TimeLimitOption,
    WindowOption,
    size,
)
from .output import print_json, progress, say, shown, stdout, table
from .plan.plan import options_from


class Job:
    """What the command line asks for, and one run of it after another."""

    def __init__(self, policies: Sequence[Policy], plans: Sequence[Path], options: PlanOptions) -> None:
        self.policies = policies
        self.plans = [(str(path), read_plan(path)) for path in plans]
        self.options = options
        self.is_sampled = False

    def run(self, load: Load, cluster: Cluster, settings: Settings, where: str) -> list[Outcome]:
        """One run under each policy and each plan."""
        outcomes = []
        for policy in self.policies:
            with progress(f"planning with {policy.name}{where}"):
                plan = policy.plan(load.workload, cluster, self.options)
            self._say_sample(load)
            with progress(f"simulating {policy.name}{where}") as step:
                outcomes.append(simulate_plan(load, cluster, plan, settings, policy.name, True, step))
        for name, plan in self.plans:
            with progress(f"simulating {name}{where}") as step:
                outcomes.append(simulate_plan(load, cluster, plan, settings, name, bool(self.policies), step))
        return outcomes

    def _say_sample(self, load: Load) -> None:
        if load.workload.weight > 1 and not self.is_sampled:
            self.is_sampled = True
            say(
                f"stripewise: planned from a sample of {load.workload.requests:,} requests, one in "
                f"{load.workload.weight:,}, counts scaled; all are simulated"
            )


def row_json(outcome: Outcome, baseline: Outcome | None, details: bool) -> dict[str, Any]:
    """A run as `--json` prints it; `details` are the engine's lists of servers, moves and the timeline."""
    report = dict(outcome.report)
    if not details:
        for key in ("servers", "timeline", "moves"):
            report.pop(key, None)
    return {"policy": outcome.name, "times_def": times_def(outcome, baseline), **report}


def times_def(outcome: Outcome, baseline: Outcome | None) -> float | None:
    """How many times DEF's bandwidth the run has; None without a run under DEF."""
    if baseline is None or not baseline.report["mb_s"]:
        return None
    return float(outcome.report["mb_s"] / baseline.report["mb_s"])


def _baseline(outcomes: Sequence[Outcome]) -> Outcome | None:
    return next((outcome for outcome in outcomes if outcome.plan.policy == "def"), None)


def _cells(outcome: Outcome, baseline: Outcome | None) -> list[str]:
    report = outcome.report

    def ms(operation: str, quantile: str) -> str:
        seconds = outcome.latency_s(operation, quantile)
        return shown(None if seconds is None else seconds * 1e3, 2)

    return [
        outcome.name,
        shown(report["mb_s"]),
        shown(report["read_mb_s"] if report["bytes_read"] else None),
        shown(report["write_mb_s"] if report["bytes_written"] else None),
        shown(report["bound_ratio"], 3),
        shown(report["imbalance"], 3),
        f"{ms('read', 'p50')} / {ms('read', 'p99')}",
        f"{ms('write', 'p50')} / {ms('write', 'p99')}",
        shown(times_def(outcome, baseline), 2),
    ]


_COLUMNS = ("policy", "MB/s", "read", "write", "of bound", "imbalance", "read p50/p99 ms",
            "write p50/p99 ms", "times def")  # fmt: skip


def print_outcomes(source: str, cluster: Cluster, points: Sequence[tuple[object, Sequence[Outcome]]], key: str) -> None:
    """The comparison for people; one block of rows per value of `key`, where something is swept."""
    # A sweep may change their number.
    servers = "" if key else f"{len(cluster.active)} servers of "
    made = table(f"simulated: {source} on {servers}{cluster.source}", *([key] if key else []), *_COLUMNS)
    for value, outcomes in points:
        baseline = _baseline(outcomes)
        for outcome in outcomes:
            made.add_row(*([str(value)] if key else []), *_cells(outcome, baseline))
        if key:
            made.add_section()
    stdout().print(made)


@contextlib.contextmanager
def _point_in_errors(sweep: Sweep | None, value: Value | None) -> Iterator[None]:
    """Errors within say at which point of the sweep they came: the files do not show its value."""
    try:
        yield
    except StripewiseError as error:
        if sweep is None:
            raise
        raise type(error)(f"{error} (with --sweep {sweep.key}={value})") from error


def _loads(
    workload: Path | None, trace: Path | None, files: Sequence[str], loop: str | None, seed: int | None,
    sweep: Sweep | None,
) -> Iterator[tuple[Value | None, Load, Mapping[str, Value]]]:  # fmt: skip
    """(value, load, changes of the cluster) of every point, one load at a time."""
    values: Sequence[Value | None] = [None] if sweep is None else sweep.values
    of_servers = sweep is not None and sweep.is_of_servers
    key = "" if sweep is None else sweep.key
    if trace is not None:
        if sweep is not None and not of_servers:
            raise UsageError(f"--sweep: {key} is a key of a --workload; of a trace sweep hservers or sservers")
        with progress("reading the trace") as step:
            load = load_trace(trace, files, loop or "closed", step)
        for value in values:
            yield value, load, {} if value is None else {key: value}
        return
    assert workload is not None  # one of the two was given
    for value in values:
        changed: dict[str, Value] = {} if value is None else {key: value}
        seeded: dict[str, Value] = {} if seed is None else {"seed": seed}
        with _point_in_errors(sweep, value):
            load = load_description(read_description(workload, seeded if of_servers else {**seeded, **changed}))
        yield value, load, changed if of_servers else {}


def _plot(path: Path, source: str, points: Sequence[tuple[object, Sequence[Outcome]]], sweep: Sweep | None) -> None:
    name = Path(source).name
    if sweep is not None:
        plot_sweep(sweep.key, points, path, name)
    elif len(points[0][1]) == 1:
        plot_timeline(points[0][1][0], path, name)
    else:
        plot_comparison(points[0][1], path, name)


def simulate(
    cluster: Annotated[Path, typer.Option("--cluster", help="cluster.toml, store.toml or a store.")],
    workload: Annotated[
        Path | None, typer.Option("--workload", help="A workload description in TOML (docs/formats.md).")
    ] = None,
    trace: Annotated[Path | None, typer.Option("--trace", help="A collected trace instead.")] = None,
    policy: Annotated[
        str | None,
        typer.Option("--policy", help=f"Of {', '.join(sorted(POLICIES))}, or Python files; several with commas "
                     "(default: def,h2dp)."),
    ] = None,
    plan: Annotated[list[Path] | None, typer.Option("--plan", help="A plan.json; repeatable.")] = None,
    sweep: Annotated[
        str | None,
        typer.Option("--sweep", help="key=8..512 (doubling), key=a..b:step or key=a,b,c; a key of the workload, "
                     "hservers or sservers."),
    ] = None,
    loop: Annotated[
        str | None, typer.Option("--loop", help="Of a trace: closed (keep think times) or open (keep times).")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the result: out.svg or out.html.")] = None,
    file: FileOption = None,
    region_size: RegionOption = "64MiB",
    stripe_size: StripeOption = "64KiB",
    step_size: StepOption = "4KiB",
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed of workload, devices and random orders.")
    ] = None,
    window: WindowOption = None,
    min_gain: MinGainOption = None,
    sigma: SigmaOption = None,
    servers: ServersOption = None,
    time_limit: TimeLimitOption = None,
    smooth: SmoothOption = False,
    read_ahead: Annotated[str, typer.Option("--read-ahead", help="Bytes fetched ahead of a sequential reader.")] = "0",
    bandwidth: Annotated[
        str, typer.Option("--bandwidth", help="Moves copy so much per second at most, e.g. 100MiB; 0: no limit.")
    ] = "0",
    json: JsonOption = False,
) -> None:  # fmt: skip
    """Simulate a workload on a cluster under policies or plans, and compare them."""
    if (workload is None) == (trace is None):
        raise UsageError("simulate: give either --workload W.toml or --trace DIR")
    if loop is not None and (trace is None or loop not in LOOPS):
        raise UsageError(f"--loop: '{loop}' does not fit; give closed or open with --trace")
    if workload is not None and file:
        raise UsageError("--file: chooses files of a trace; a workload description has the key path")
    if plot is not None:
        check_plot_path(plot)
    chosen = policies_named(policy if policy is not None else "" if plan else "def,h2dp")
    if not chosen and not plan:
        raise UsageError("--policy: names no policy; give one, or --plan plan.json")
    options = options_from(
        region_size, stripe_size, step_size, seed or 0, window, min_gain, sigma, servers, time_limit, smooth
    )
    refuse_foreign(chosen, options)
    if min_gain is not None and window is None:
        raise UsageError("--min-gain: is about moves between windows; give --window too")
    settings = Settings(1 if seed is None else seed, size(read_ahead, "--read-ahead"), size(bandwidth, "--bandwidth"))
    swept = None if sweep is None else parse_sweep(sweep)
    described = read_cluster(cluster)
    job = Job(chosen, plan or [], options)
    points: list[tuple[object, Sequence[Outcome]]] = []
    source = ""
    for value, load, changes in _loads(workload, trace, file or [], loop, seed, swept):
        where = "" if swept is None else f" ({swept.key}={value})"
        source = load.source
        with _point_in_errors(swept, value):
            points.append((value, job.run(load, changed_cluster(described, changes), settings, where)))
    if plot is not None:
        _plot(plot, source, points, swept)
    if json:
        details = swept is None
        rows = [
            {**({swept.key: value} if swept else {}), **row_json(outcome, _baseline(outcomes), details)}
            for value, outcomes in points
            for outcome in outcomes
        ]
        print_json({"simulated": True, "workload": source, "cluster": str(described.source), "rows": rows})
        return
    print_outcomes(source, described, points, swept.key if swept else "")
    if plot is not None:
        typer.echo(f"{plot}: written")
