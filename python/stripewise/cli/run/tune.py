"""`stripewise tune`: the whole circle in one command, with a table of before and after."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...errors import StripewiseError, UsageError
from ...policy import policies_named, policy_named, refuse_foreign
from ...run.collect import trace_directory
from ...run.measure import ratio
from ...run.tune import Tuned, Tuner
from ...store import Store, plans
from ..arguments import flattened
from ..options import (
    CommandArgument,
    JsonOption,
    ManageOption,
    StoreOption,
)
from ..output import print_json, printable, progress, say, shown, stdout, table
from ..plan.options import SearchOptions, SeedOption, SizeOptions, plan_options


def _print(tuned: Tuned, emulated: bool) -> None:
    first, last = tuned.runs[0], tuned.runs[-1]
    note = " (emulated devices)" if emulated else ""
    made = table(f"measured{note}", "", *(row.policy for row in tuned.runs), "gain")

    def gain(before: float | None, after: float | None) -> str:
        return "-" if (times := ratio(before, after)) is None else f"{times:.2f} x"

    made.add_row("read MB/s", *(shown(row.read_mb_s) for row in tuned.runs), gain(first.read_mb_s, last.read_mb_s))
    made.add_row("write MB/s", *(shown(row.write_mb_s) for row in tuned.runs), gain(first.write_mb_s, last.write_mb_s))
    made.add_row(
        "I/O seconds", *(shown(row.io_seconds, 2) for row in tuned.runs), gain(last.io_seconds, first.io_seconds)
    )
    for name in first.busy_s:
        made.add_row(f"busy {name}, s", *(shown(row.busy_s.get(name), 2) for row in tuned.runs), "")
    made.add_row("imbalance", *(shown(row.imbalance, 3) for row in tuned.runs), "")
    made.add_row("bound ratio", *(shown(row.bound_ratio, 3) for row in tuned.runs), "")
    verified = ("-" if row.verified_bytes is None else f"{row.verified_bytes:,}" for row in tuned.runs)
    made.add_row("verified bytes", *verified, "")
    console = stdout()
    console.print(made)
    expected = tuned.plans[-1].expected
    simulated = "" if expected.simulated_gain is None else f", {expected.simulated_gain:.2f} in simulated runs"
    typer.echo(
        f"gain in I/O time: {shown(tuned.measured_gain, 2)} measured, {expected.bound_gain:.2f} expected by the bound"
        f"{simulated}, {expected.gain:.2f} by the request model"
    )


def _keep(store: Store, tuned: Tuned) -> None:
    """Keeps the plan whose layout stays applied, unless another was faster."""
    if (faster := tuned.faster) is not None:
        typer.echo(f"no plan is kept: {faster.policy} was faster than {tuned.runs[-1].policy}")
        return
    try:
        kept, remarks = plans.keep(store.root, tuned.plans[-1], "tune")
    except StripewiseError as error:
        say(f"stripewise: the plan is not kept: {printable(str(error))}")
        return
    for remark in remarks:
        say(f"stripewise: {printable(remark)}")
    typer.echo(f"kept the plan of {tuned.plans[-1].policy} for {printable(kept.title)}; 'run --store' follows it")


@dataclass(frozen=True, kw_only=True)
class TuneRequest:
    """What is tuned with and compared, and on which files."""

    policy: Annotated[
        str, typer.Option("--policy", help="The policy to tune with; of several with commas the last layout stays.")
    ] = "h2dp"
    baseline: Annotated[str, typer.Option("--baseline", help="The policy to compare with.")] = "def"
    manage: ManageOption = None
    trace: Annotated[Path | None, typer.Option("--trace", help="Keep the traces in this new directory.")] = None
    keep: Annotated[
        bool,
        typer.Option(
            "--keep/--no-keep", help="Keep the plan for CMD, unless a run was faster without it: later runs follow it."
        ),
    ] = True


@flattened
def tune(
    *,
    command: CommandArgument,
    store: StoreOption,
    asked: TuneRequest,
    sizes: SizeOptions,
    seed: SeedOption = 0,
    search: SearchOptions,
    json: JsonOption = False,
) -> None:
    """Run CMD, trace it, plan, apply, run it again; print before and after. The new layout stays."""
    options = plan_options(sizes, seed, search)
    compared, chosen = policy_named(asked.baseline), policies_named(asked.policy)
    if not chosen:
        raise UsageError("--policy: names no policy; give one, or several with commas")
    refuse_foreign([compared, *chosen], options)
    opened = Store(store)
    kept = None if asked.trace is None else trace_directory(asked.trace)
    # With --json the last line of stdout is ours alone; what the program says goes to stderr.
    out = sys.stderr.buffer if json else sys.stdout.buffer

    def line(text: bytes) -> None:
        out.write(text)
        out.flush()

    tuner = Tuner(opened, command, options, asked.manage or [], say, line, lambda: progress("moving"))
    tuned = tuner.tune(compared, chosen, kept)
    _print(tuned, any(target.kind == "emulated" for target in opened.config.cluster.targets))
    if asked.keep:
        _keep(opened, tuned)
    if json:
        print_json(tuned.as_json())
