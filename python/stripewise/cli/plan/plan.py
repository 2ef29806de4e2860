"""`stripewise plan`: from a trace to plan.json, and the check of a plan."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from ...cluster import read_cluster
from ...errors import UsageError
from ...plan import Plan, read_plan, write_plan
from ...plan.check import check_plan
from ...policy import POLICIES, PlanOptions, policy_named, refuse_foreign
from ...store import Store
from ...units import format_size, parse_span
from ...workload import Workload
from ...workload.trace import read_trace
from ..options import (
    FileOption,
    JsonOption,
    MinGainOption,
    RegionOption,
    SeedOption,
    ServersOption,
    SigmaOption,
    SmoothOption,
    StepOption,
    StripeOption,
    TimeLimitOption,
    WindowOption,
    size,
)
from ..output import check_output, print_json, progress, say, stdout, table
from .windows import print_windows, rmt_json, windows_json


def options_from(
    region: str,
    stripe: str,
    step: str,
    seed: int,
    window: str | None = None,
    min_gain: float | None = None,
    sigma: float | None = None,
    servers: str | None = None,
    time_limit: str | None = None,
    smooth: bool = False,
) -> PlanOptions:
    """The plan options of the command line; UsageError for a bad one."""
    return PlanOptions(
        region_bytes=size(region, "--region-size"),
        stripe_bytes=size(stripe, "--stripe-size"),
        step_bytes=size(step, "--step-size"),
        seed=seed,
        window_ns=None if window is None else parse_span(window, "--window"),
        min_gain=min_gain,
        sigma=sigma,
        servers=servers,
        time_limit_s=None if time_limit is None else parse_span(time_limit, "--time-limit") / 1e9,
        smooth=smooth or None,
    )


def summary(plan: Plan) -> dict[str, object]:
    """A plan in figures."""
    expected = plan.expected
    return {
        "policy": plan.policy,
        "files": len(plan.files),
        "regions": sum(len(file.regions) for file in plan.files),
        "target_bytes": plan.bytes_per_target(),
        "expected": {
            **dataclasses.asdict(expected),
            "gain": expected.gain,
            "bound_gain": expected.bound_gain,
        },
        "windows": windows_json(plan),
        "rmt": rmt_json(plan),
    }


def print_plan(plan: Plan, title: str) -> None:
    """A plan for people."""
    made = table(title, "target", "bytes")
    for name, count in plan.bytes_per_target().items():
        made.add_row(name, format_size(count))
    stdout().print(made)
    expected = plan.expected
    typer.echo(
        f"expected against def: {expected.gain:.2f} times cheaper by the request model, "
        f"{expected.bound_gain:.2f} times faster by the bound"
    )
    if expected.gap is not None and expected.gain_low is not None and expected.gain_high is not None:
        typer.echo(
            f"by the bound {expected.gain_low:.2f} to {expected.gain_high:.2f} times with nine chances in ten, "
            f"as far as the targets' figures are known; the best bound is within {expected.gap:.1%} of what is proven"
        )
    if expected.simulated_gain is not None:
        typer.echo(f"{expected.simulated_gain:.2f} times faster in simulated runs of these requests")
    if plan.comment:
        typer.echo(plan.comment)
    print_windows(plan)


def _of_store(workload: Workload, store: Store) -> Workload:
    """The files of the workload that the store holds, with ids and sizes."""
    known = {file.id: file for file in store.files()}
    files = []
    for file in workload.files:
        identity = store.resolve(file.path)
        if identity is not None:
            held = known[identity].size if identity in known else 0
            files.append(dataclasses.replace(file, id=identity, size_bytes=max(file.size_bytes, held)))
    if not files:
        raise UsageError(
            f"--store: {store.root} holds none of the files in {workload.source}; drop --store or trace anew"
        )
    return dataclasses.replace(workload, files=tuple(files))


def _check(path: Path, cluster: Path | None, json: bool) -> None:
    plan = read_plan(path)
    remarks = check_plan(plan, read_cluster(cluster), path) if cluster is not None else []
    if json:
        print_json({"ok": True, "remarks": remarks, **summary(plan)})
        return
    for remark in remarks:
        say(f"stripewise: {remark}")
    print_plan(plan, f"{path}: sound")


def plan(
    trace: Annotated[Path | None, typer.Argument(help="A collected trace.", metavar="TRACE")] = None,
    check: Annotated[Path | None, typer.Option("--check", help="Validate this plan instead.")] = None,
    cluster: Annotated[Path | None, typer.Option("--cluster", help="cluster.toml, store.toml or a store.")] = None,
    policy: Annotated[
        str, typer.Option("--policy", help=f"One of {', '.join(sorted(POLICIES))}, or your own: a Python file.")
    ] = "h2dp",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the plan here.")] = None,
    store: Annotated[
        Path | None, typer.Option("--store", help="Plan only this store's files, around what its other files hold.")
    ] = None,
    file: FileOption = None,
    region_size: RegionOption = "64MiB",
    stripe_size: StripeOption = "64KiB",
    step_size: StepOption = "4KiB",
    seed: SeedOption = 0,
    window: WindowOption = None,
    min_gain: MinGainOption = None,
    sigma: SigmaOption = None,
    servers: ServersOption = None,
    time_limit: TimeLimitOption = None,
    smooth: SmoothOption = False,
    json: JsonOption = False,
) -> None:
    """Price layouts for the files of a trace and write the best as plan.json, or check one with --check."""
    if check is not None:
        if trace is not None or output is not None:
            raise UsageError("--check: takes a plan and at most a --cluster; leave out the trace and -o")
        _check(check, cluster, json)
        return
    if trace is None:
        raise UsageError("plan: give a collected TRACE, or --check plan.json")
    if cluster is None and store is None:
        raise UsageError("plan: give --cluster cluster.toml, or --store")
    chosen = policy_named(policy)
    options = options_from(
        region_size, stripe_size, step_size, seed, window, min_gain, sigma, servers, time_limit, smooth
    )
    refuse_foreign([chosen], options)
    if min_gain is not None and window is None:
        raise UsageError("--min-gain: is about moves between windows; give --window too")
    if output is not None:
        check_output(output)
    opened = None if store is None else Store(store)
    described = read_cluster(cluster) if cluster is not None else opened.config.cluster if opened else None
    assert described is not None  # one of the two was given
    with progress("reading the trace") as step:
        workload = read_trace(trace, file or [], step)
    if opened is not None:
        workload = _of_store(workload, opened)
        reserved = opened.used_by_others([each.path for each in workload.files])
        options = dataclasses.replace(options, reserved_bytes=reserved)
    with progress(f"planning with {chosen.name}"):
        made = chosen.plan(workload, described, options)
    if output is not None:
        write_plan(made, output)
    if json:
        print_json(summary(made))
        return
    print_plan(made, f"{chosen.name}: {len(made.files)} file(s)")
    if output is not None:
        typer.echo(f"{output}: written; go on with: stripewise apply {output} --store STORE")
