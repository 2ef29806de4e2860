"""`stripewise simulate`: what plans would do to a workload on a cluster, without either."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from ..cluster import Cluster, read_cluster
from ..errors import StripewiseError, UsageError
from ..layout import Layout
from ..plan import Plan, read_plan
from ..policy import POLICIES, PlanOptions, Policy, plan_by, policies_named, refuse_foreign
from ..policy.best.trial import Trials
from ..report.figure import check_plot_path
from ..run.baseline import baselines, files_of
from ..simulate import Load, Outcome, Settings, load_description, load_trace, simulate_plan
from ..simulate.plot import plot_comparison, plot_sweep, plot_timeline
from ..simulate.run import LOOPS, Compared, compared, paths_of
from ..simulate.sweep import Sweep, Value, changed_cluster, parse_sweep
from ..store import Store
from ..store.config import read_store
from ..store.placed import with_room
from ..store.traced import with_sizes
from ..units import parse_size
from ..workload import Workload
from ..workload.describe import read_description
from ..workload.layouts import read_layouts
from ..workload.trace import is_profile, run_end
from .arguments import flattened
from .options import JsonOption, names_completed
from .output import print_json, printable, progress, say, say_partial, shown, stdout, table, targets_text, wrapped
from .plan.options import (
    FileOptions,
    SearchOptions,
    SimulatedSizeOptions,
    WindowOptions,
    plan_options,
    require_window,
    say_of_trace,
)
from .simulate_replicas import compare_replicas


@dataclass(frozen=True, kw_only=True)
class SimulateRequest:
    """What is simulated: the cluster, the workload or trace, policies and plans, and how the result is shown."""

    cluster: Annotated[
        Path | None,
        typer.Option("--cluster", metavar="CLUSTER", help="cluster.toml, store.toml or store directory."),
    ] = None
    store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            metavar="STORE",
            help="Store on whose devices to simulate, with the room left there; in place of --cluster.",
        ),
    ] = None
    workload: Annotated[
        Path | None,
        typer.Option("--workload", metavar="WORKLOAD", help="Workload description (TOML) or profile (profile.json)."),
    ] = None
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="TRACE", help="Collected trace, in place of --workload.")
    ] = None
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="POLICY,...",
            help=f"Policies, separated by commas: {', '.join(sorted(POLICIES))}, or Python files (default: def,best).",
            autocompletion=names_completed(sorted(POLICIES), with_commas=True),
        ),
    ] = None
    plan: Annotated[
        list[Path] | None, typer.Option("--plan", metavar="PLAN", help="Plan (plan.json) to simulate; repeatable.")
    ] = None
    sweep: Annotated[
        str | None,
        typer.Option(
            "--sweep",
            metavar="KEY=VALUES",
            help="Values of a workload key, hservers or sservers: key=8..512 (doubling), key=a..b:step, key=a,b,c.",
        ),
    ] = None
    loop: Annotated[
        str | None,
        typer.Option(
            "--loop", metavar="LOOP", help="Arrivals of a trace: closed (keep think times) or open (keep start times)."
        ),
    ] = None
    replicas: Annotated[
        Path | None,
        typer.Option(
            "--replicas",
            metavar="FILE",
            help="Replicas to serve a trace from: what 'replicate --what-if --json' printed; in place of policies.",
        ),
    ] = None
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Plot of the result: out.svg or out.html.")
    ] = None

    @property
    def devices(self) -> Path:
        """What names them. UsageError where nothing does, or both options."""
        if self.cluster is not None and self.store is not None:
            raise UsageError("--store: names the devices, and so does --cluster; give one of them")
        if self.store is not None:
            return read_store(self.store).path
        if self.cluster is None:
            raise UsageError(
                "simulate: give the devices: --cluster CLUSTER (cluster.toml, store.toml), or --store STORE"
            )
        return self.cluster


@dataclass(frozen=True, kw_only=True)
class CopyOptions:
    """What simulated programs and movers copy beside the requests."""

    read_ahead: Annotated[
        str, typer.Option("--read-ahead", metavar="SIZE", help="Read-ahead of a sequential reader, in bytes.")
    ] = "0"
    bandwidth: Annotated[
        str,
        typer.Option(
            "--bandwidth",
            metavar="SIZE",
            help="Maximum copy bandwidth of moves in bytes per second, e.g. 100MiB; 0: unlimited.",
        ),
    ] = "0"

    def settings(self, seed: int) -> Settings:
        """The settings of a run."""
        return Settings(seed, parse_size(self.read_ahead, "--read-ahead"), parse_size(self.bandwidth, "--bandwidth"))


class Job:
    """What the command line asks for, and one run of it after another.

    With `tells_io` the I/O time of every run is told, which needs what policies plan from: requests of a closed loop.
    Plans without a policy beside them are compared with DEF and, as `layouts` has them, with how their files lay.
    """

    def __init__(
        self,
        policies: Sequence[Policy],
        plans: Sequence[tuple[str, Plan]],
        options: PlanOptions,
        tells_io: bool,
        layouts: Mapping[str, Layout],
        store: Store | None,
    ) -> None:
        self.policies = policies
        self.store = store
        self.tells_io = tells_io
        self.layouts = layouts
        self.plans = plans
        self.options = options
        self.is_said = False
        for name, plan in self.plans:
            if (copies := plan.replicas) is not None:
                count = "1 copy" if len(copies.all) == 1 else f"{len(copies.all):,} copies"
                gain = "" if copies.gain is None else f"; with them {copies.gain:.2f} times def in I/O, says the plan"
                say(f"stripewise: {printable(name)}: is simulated without its {count}{gain}")

    def run(
        self, load: Load, cluster: Cluster, changes: Mapping[str, Value], settings: Settings, where: str
    ) -> list[Outcome]:
        """One run under each policy and each plan, on the changed cluster; of a store with the room that is left."""
        options = self.options
        if self.store is not None:
            lying = with_sizes(load.workload, self.store)
            load = replace(load, plan_from=lambda: lying)
            sizes = {file.path: file.size_bytes for file in lying.files}
            cluster, reserved = with_room(self.store, cluster, sizes)
            options = replace(options, reserved_bytes=reserved)
        cluster = changed_cluster(cluster, changes)
        outcomes = []
        workload = load.workload if self.policies else self._planned(load)
        beside = [] if self.policies or workload is None else baselines(workload, cluster, options, self.layouts)
        for name, plan in beside:
            with progress(f"simulating {name}{where}") as step:
                outcomes.append(simulate_plan(load, cluster, plan, settings, name, False, step))
        for policy in self.policies:
            with progress(f"planning with {policy.name}{where}"):
                plan = plan_by(policy, load.workload, cluster, options)
            self._say_what_is_left(load)
            with progress(f"simulating {policy.name}{where}") as step:
                outcomes.append(simulate_plan(load, cluster, plan, settings, policy.name, True, step))
        for name, plan in self.plans:
            with progress(f"simulating {name}{where}") as step:
                outcomes.append(simulate_plan(load, cluster, plan, settings, name, bool(self.policies), step))
        return outcomes if workload is None or not self.tells_io else _with_io(outcomes, workload, cluster)

    def _planned(self, load: Load) -> Workload | None:
        """What the load asks of the files of the plans; None where these are of different files, or of no such ones."""
        first, *others = ({file.path for file in plan.files} for _, plan in self.plans)
        if any(paths != first for paths in others):
            return None
        # The files of a description are all planned, or the run says which one is not.
        paths = set(paths_of(load, self.plans[0][1], False)) & first
        found = files_of(load.workload, paths)
        return found if found.files else None

    def _say_what_is_left(self, load: Load) -> None:
        """Once, what of the load policies did not plan from."""
        if self.is_said:
            return
        self.is_said = True
        if load.workload.weight > 1:
            say(
                f"stripewise: planned from a sample of {load.workload.requests:,} requests, one in "
                f"{load.workload.weight:,}, counts scaled; all are simulated"
            )


def _with_io(outcomes: Sequence[Outcome], workload: Workload, cluster: Cluster) -> list[Outcome]:
    """The runs with their I/O time, and the whole run's, from the very runs that `plan` makes for them.

    These know the targets that plans may use, so a plan for others has none.
    """
    active = {target.name for target in cluster.active}
    trials = Trials([workload], cluster)

    def told(outcome: Outcome) -> Outcome:
        plan = outcome.plan
        cycles = [region.stripes for file in plan.files for region in file.regions]
        cycles += [move.stripes for migration in plan.migrations for move in migration.moves]
        if gone := {name for cycle in cycles for name, _ in cycle} - active:
            say(
                f"stripewise: {printable(outcome.name)}: names {targets_text(gone)}, where {cluster.source} takes no "
                f"new data, so it cannot be applied, and its I/O seconds are not told; plan anew"
            )
            return outcome
        (run,) = trials.run(plan)
        return replace(outcome, io_s=trials.in_flight_s(plan), run_s=run.seconds)

    return list(map(told, outcomes))


def _cells(row: Compared, has_io: bool) -> list[str]:
    outcome, report = row.outcome, row.outcome.report

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
        *([shown(outcome.io_s, 3), shown(row.io_times_def, 2)] if has_io else []),
        shown(row.times_def, 2),
    ]


_COLUMNS = ("policy", "MB/s", "read MB/s", "write MB/s", "of bound", "imbalance", "read p50/p99 ms",
            "write p50/p99 ms")  # fmt: skip
#: Below the table; `tune` has rates of reads and writes by another definition.
_RATES = "MB/s: over the whole run; of reads and of writes from first to last, pauses included, which tune leaves out"
_IO_TIMES = "I/O times def: by the time with reads under way and that with writes, added, as plan and tune tell it"
_RUN_TIMES = "run times def: by the whole run, in which reads beside writes count once, and pauses count"
#: Where it is of the runs that plans are made by.
_AS_PLAN = ", processes begun at once or in turns, as plan tells it; MB/s has them begin as traced or in turns"

#: Rates of neighbouring points of a sweep that differ by more than this factor jump.
JUMP = 5.0
_JUMPS = (
    "rates jump where processes that keep their order for ever ask a disk for its bytes in order, and no access but "
    "the first pays a startup; real processes overtake each other: docs/simulator.md, No jitter"
)


def _jumps(points: Sequence[Sequence[Outcome]]) -> bool:
    """Whether the rate of a policy differs by a multiple between neighbouring points of a sweep."""
    rates = [[float(outcome.report["mb_s"]) for outcome in of_point] for of_point in points]
    pairs = [pair for one, other in itertools.pairwise(rates) for pair in zip(one, other, strict=False)]
    return any(max(pair) > JUMP * min(pair) for pair in pairs)


def print_outcomes(source: str, cluster: Cluster, points: Sequence[tuple[object, Sequence[Outcome]]], key: str) -> None:
    """The comparison for people; one block of rows per value of `key`, where something is swept."""
    # A sweep may change their number.
    servers = "" if key else f"{len(cluster.active)} servers of "
    rows = [(value, compared(outcomes)) for value, outcomes in points]
    has_io = any(row.io_times_def is not None for _, of_point in rows for row in of_point)
    has_def = any(row.times_def is not None for _, of_point in rows for row in of_point)
    columns = (
        *([key] if key else []),
        *_COLUMNS,
        *(["I/O seconds", "I/O times def"] if has_io else []),
        "run times def",
    )
    made = table(f"simulated: {source} on {servers}{cluster.source}", *columns, keys=2 if key else 1)
    for value, of_point in rows:
        for row in of_point:
            made.add_row(*([str(value)] if key else []), *_cells(row, has_io))
        if key:
            made.add_section()
    stdout().print(made)
    for note in (_RATES, *([_IO_TIMES] if has_io else []), *([_RUN_TIMES + _AS_PLAN * has_io] if has_def else [])):
        typer.echo(wrapped(note))
    if key == "processes" and _jumps([outcomes for _, outcomes in points]):
        typer.echo(wrapped(_JUMPS))


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
    asked: SimulateRequest, files: FileOptions, seed: int | None, sweep: Sweep | None
) -> Iterator[tuple[Value | None, Load, Mapping[str, Value]]]:
    """(value, load, changes of the cluster) of every point, one load at a time."""
    values: Sequence[Value | None] = [None] if sweep is None else sweep.values
    of_servers = sweep is not None and sweep.is_of_servers
    key = "" if sweep is None else sweep.key
    if asked.trace is not None:
        with progress("reading the trace") as step:
            load = load_trace(asked.trace, files.choice(), asked.loop or "closed", step)
        say_partial(load.source, load.partial)
        say_of_trace(load.source, ended=run_end(asked.trace).text)
        for value in values:
            yield value, load, {} if value is None else {key: value}
        return
    assert asked.workload is not None  # one of the two was given
    for value in values:
        changed: dict[str, Value] = {} if value is None else {key: value}
        seeded: dict[str, Value] = {} if seed is None else {"seed": seed}
        with _point_in_errors(sweep, value):
            load = load_description(read_description(asked.workload, seeded if of_servers else {**seeded, **changed}))
        yield value, load, changed if of_servers else {}


def _plot(path: Path, source: str, points: Sequence[tuple[object, Sequence[Outcome]]], sweep: Sweep | None) -> None:
    name = Path(source).name
    if sweep is not None:
        plot_sweep(sweep.key, points, path, name)
    elif len(points[0][1]) == 1:
        plot_timeline(points[0][1][0], path, name)
    else:
        plot_comparison(points[0][1], path, name)


def _with_trace(asked: SimulateRequest) -> SimulateRequest:
    """A profile, as --workload or --trace, is simulated as a trace of its synthetic path."""
    if asked.workload is not None and asked.trace is None and is_profile(asked.workload):
        asked = replace(asked, workload=None, trace=asked.workload)
    if asked.trace is None or not is_profile(asked.trace):
        return asked
    from ..pioneer.synthesis.requests import as_trace

    return replace(asked, trace=as_trace(asked.trace))


def _refuse_beside_replicas(asked: SimulateRequest, copying: CopyOptions) -> None:
    """UsageError for what does not go with --replicas."""
    given = {
        "--workload": asked.workload is not None,
        "--policy": asked.policy is not None,
        "--plan": bool(asked.plan),
        "--sweep": asked.sweep is not None,
        "--loop open": asked.loop == "open",
        "--plot": asked.plot is not None,
        "--bandwidth": copying.bandwidth != "0",
    }
    for option in (name for name, is_given in given.items() if is_given):
        raise UsageError(
            f"{option}: does not go with --replicas, which simulates the run of a trace as it was; leave one out"
        )


@flattened
def simulate(
    *,
    asked: SimulateRequest,
    files: FileOptions,
    sizes: SimulatedSizeOptions,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", min=0, help="Seed of workload, devices and random target orders."),
    ] = None,
    windows: WindowOptions,
    search: SearchOptions,
    copying: CopyOptions,
    json: JsonOption = False,
) -> None:
    """Compare policies or plans by simulating a workload."""
    devices = asked.devices
    asked = _with_trace(asked)
    if (asked.workload is None) == (asked.trace is None):
        raise UsageError("simulate: give either --workload W.toml or --trace DIR")
    if asked.loop is not None and (asked.trace is None or asked.loop not in LOOPS):
        raise UsageError(f"--loop: '{asked.loop}' does not fit; give closed or open with --trace")
    if asked.workload is not None and files.flags:
        raise UsageError(f"{files.flags[0]}: chooses files of a trace; in a workload description set the key path")
    swept = None if asked.sweep is None else parse_sweep(asked.sweep)
    if asked.trace is not None and swept is not None and not swept.is_of_servers:
        raise UsageError(f"--sweep: {swept.key} is a key of a --workload; of a trace sweep hservers or sservers")
    if asked.replicas is not None:
        _refuse_beside_replicas(asked, copying)
        assert asked.trace is not None  # or it was refused
        settings = copying.settings(1 if seed is None else seed)
        compare_replicas(asked.trace, devices, asked.replicas, files, settings, json)
        return
    if asked.plot is not None:
        check_plot_path(asked.plot)
    chosen = policies_named(asked.policy if asked.policy is not None else "" if asked.plan else "def,best")
    if not chosen and not asked.plan:
        raise UsageError("--policy: no policy given; give one, or --plan plan.json")
    options = plan_options(sizes.with_default_of(()), seed or 0, search, windows)
    refuse_foreign(chosen, options)
    require_window(windows)
    plans = [(str(path), read_plan(path)) for path in asked.plan or []]
    if not chosen:
        own = sizes.with_default_of([plan.options for _, plan in plans])
        options = plan_options(own, seed or 0, search, windows)
    settings = copying.settings(1 if seed is None else seed)
    described = read_cluster(devices)
    # Those that `plan` makes know neither read-ahead nor a limit of copies.
    tells_io = asked.trace is not None and asked.loop != "open" and settings == Settings(settings.seed)
    traced = () if asked.trace is None else read_layouts(asked.trace)
    layouts = {path: layout for store in traced for path, layout in store.layouts.items()}
    opened = None if asked.store is None else Store(asked.store)
    job = Job(chosen, plans, options, tells_io, layouts, opened)
    points: list[tuple[object, Sequence[Outcome]]] = []
    source = ""
    for value, load, changes in _loads(asked, files, seed, swept):
        where = "" if swept is None else f" ({swept.key}={value})"
        source = load.source
        with _point_in_errors(swept, value):
            points.append((value, job.run(load, described, changes, settings, where)))
    if asked.plot is not None:
        _plot(asked.plot, source, points, swept)
    if json:
        rows = [
            {**({swept.key: value} if swept else {}), **row.as_json(details=swept is None)}
            for value, outcomes in points
            for row in compared(outcomes)
        ]
        print_json({"simulated": True, "workload": source, "cluster": str(described.source), "rows": rows})
        return
    print_outcomes(source, described, points, swept.key if swept else "")
    if asked.plot is not None:
        typer.echo(f"{asked.plot}: written")
