"""`stripewise tune`: the whole circle in one command, with a table of before and after."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError
from ...policy import policies_named, policy_named, refuse_foreign
from ...run.tune import Tuned, Tuner
from ...store import Store
from ..options import (
    CommandArgument,
    JsonOption,
    ManageOption,
    RegionOption,
    SeedOption,
    ServersOption,
    SigmaOption,
    SmoothOption,
    StepOption,
    StoreOption,
    StripeOption,
    TimeLimitOption,
)
from ..output import print_json, progress, say, shown, stdout, table
from ..plan.plan import options_from
from .run import trace_directory


def _print(tuned: Tuned, emulated: bool) -> None:
    first, last = tuned.runs[0], tuned.runs[-1]
    note = " (emulated devices)" if emulated else ""
    made = table(f"measured{note}", "", *(row.policy for row in tuned.runs), "gain")

    def gain(before: float | None, after: float | None) -> str:
        return f"{after / before:.2f} x" if before and after else "-"

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


def tune(
    command: CommandArgument,
    store: StoreOption,
    policy: Annotated[
        str, typer.Option("--policy", help="The policy to tune with; of several with commas the last layout stays.")
    ] = "h2dp",
    baseline: Annotated[str, typer.Option("--baseline", help="The policy to compare with.")] = "def",
    manage: ManageOption = None,
    trace: Annotated[Path | None, typer.Option("--trace", help="Keep the traces in this new directory.")] = None,
    region_size: RegionOption = "64MiB",
    stripe_size: StripeOption = "64KiB",
    step_size: StepOption = "4KiB",
    seed: SeedOption = 0,
    sigma: SigmaOption = None,
    servers: ServersOption = None,
    time_limit: TimeLimitOption = None,
    smooth: SmoothOption = False,
    json: JsonOption = False,
) -> None:
    """Run CMD, trace it, plan, apply, run it again; print before and after. The new layout stays."""
    options = options_from(
        region_size, stripe_size, step_size, seed, sigma=sigma, servers=servers, time_limit=time_limit, smooth=smooth
    )
    compared, chosen = policy_named(baseline), policies_named(policy)
    if not chosen:
        raise UsageError("--policy: names no policy; give one, or several with commas")
    refuse_foreign([compared, *chosen], options)
    opened = Store(store)
    kept = None if trace is None else trace_directory(trace)
    # With --json the last line of stdout is ours alone; what the program says goes to stderr.
    out = sys.stderr.buffer if json else sys.stdout.buffer

    def line(text: bytes) -> None:
        out.write(text)
        out.flush()

    tuner = Tuner(opened, command, options, manage or [], say, line, lambda: progress("moving"))
    tuned = tuner.tune(compared, chosen, kept)
    _print(tuned, any(target.kind == "emulated" for target in opened.config.cluster.targets))
    if json:
        print_json(
            {
                "runs": [row.as_json() for row in tuned.runs],
                "expected_gain": tuned.expected_gain,
                "measured_gain": tuned.measured_gain,
            }
        )
