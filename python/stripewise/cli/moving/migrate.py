"""`stripewise migrate`: the mover, which follows a plan while programs run; and how it is watched and steered."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import StoreError, UsageError
from ...moving.mover_session import Limits, MoverSession
from ...moving.mover_status import read_status, send_command
from ...moving.plan_follower import PlanFollower, Result, clock_of, plan_digest
from ...moving.schedule import Schedule, limited_targets, parse_windows
from ...plan import read_plan
from ...plan.check import check_plan
from ...store import Store
from ...units import format_size, parse_age
from ..arguments import flattened
from ..options import JsonOption, MinGainOption, MoverOptions, PatienceOption
from ..output import print_json, printable, progress, say, shown


@dataclass(frozen=True, kw_only=True)
class ClockOptions:
    """Which windows of the plan are followed, and on which clock."""

    now: Annotated[bool, typer.Option("--now", help="Wait for no window: go to the last one's placement.")] = False
    start_at: Annotated[
        float | None, typer.Option("--start-at", min=0, metavar="SECONDS", help="The run began so long ago.")
    ] = None
    windows: Annotated[
        str | None, typer.Option("--windows", help="Follow only these windows of the plan, e.g. 0,2-4.")
    ] = None
    missing_ok: Annotated[
        bool, typer.Option("--missing-ok", help="Wait for files that are not there; one that never comes is no error.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class OrderOptions:
    """What a mover that is at work is asked or told."""

    status_of: Annotated[
        Path | None, typer.Option("--status", metavar="STORE", help="Say how the mover of a store gets on.")
    ] = None
    pause: Annotated[Path | None, typer.Option("--pause", metavar="STORE", help="Let it wait.")] = None
    resume: Annotated[Path | None, typer.Option("--resume", metavar="STORE", help="Let it go on.")] = None
    stop: Annotated[Path | None, typer.Option("--stop", metavar="STORE", help="End it, all files whole.")] = None

    def given(self) -> dict[str, Path]:
        """The orders by name, each with its store."""
        orders = {"status": self.status_of, "pause": self.pause, "resume": self.resume, "stop": self.stop}
        return {name: root for name, root in orders.items() if root is not None}


@flattened
def migrate(
    *,
    plan: Annotated[Path | None, typer.Argument(help="plan.json.", metavar="[PLAN]")] = None,
    store: Annotated[Path | None, typer.Option("--store", help="The store's directory.")] = None,
    clock: ClockOptions,
    mover: MoverOptions,
    min_gain: MinGainOption = None,
    patience: PatienceOption = "60s",
    orders: OrderOptions,
    json: JsonOption = False,
) -> None:
    """Move files' regions as a plan wants them, window by window, while programs use them."""
    given = orders.given()
    if given:
        if len(given) > 1 or plan is not None:
            raise UsageError("migrate: give a plan, or one of --status, --pause, --resume and --stop")
        for name, root in given.items():
            _print_status(read_status(root) if name == "status" else send_command(root.resolve(), name), json)
        return
    if plan is None or store is None:
        raise UsageError("migrate: give a plan and --store, or --status, --pause, --resume or --stop with a store")
    limits = Limits(mover.bytes_per_s, mover.max_slowdown)
    chosen = None if clock.windows is None else parse_windows(clock.windows)
    opened, patience_s = Store(store), parse_age(patience, "--patience")
    decided = read_plan(plan)
    for remark in check_plan(decided, opened.config.cluster, plan):
        _complain(remark)
    schedule = Schedule(decided, limited_targets(opened.config.cluster), chosen, min_gain)
    digest = plan_digest(plan)
    begun, resumed_after_s = clock_of(opened.root, digest, clock.start_at, clock.now)
    if resumed_after_s is not None:
        _complain(f"goes on for a mover that was killed, {resumed_after_s:.1f} s after the run began")
    head = {"verb": "migrate", "plan": str(plan.absolute()), "plan_sha256": digest, "begun_unix": begun}
    with progress("moving") as step, MoverSession(opened, head, limits, step) as session:
        result = PlanFollower(
            opened, decided, schedule, session, _complain, begun, clock.now, patience_s, clock.missing_ok
        ).run()
    _report(result, store, json)


def _complain(text: str) -> None:
    say(f"stripewise: {text}")


def _report(result: Result, store: Path, json: bool) -> None:
    if json:
        print_json(result.as_json())
    else:
        typer.echo(
            f"{result.moves} move(s), {format_size(result.moved_bytes)} in {result.seconds:.2f} s"
            + (", stopped before the end" if result.stopped else "")
        )
        for left in result.left:
            where = f", bytes {left['start']} on" if left["len"] else ""
            typer.echo(f"not moved: {printable(left['file'])}{where}: {left['why']}")
    if result.signal is not None:
        raise typer.Exit(128 + result.signal)
    if result.left and not result.stopped:
        raise StoreError(f"{store}: {len(result.left)} move(s) could not be made; run the same again for the rest")


def _print_status(said: dict[str, Any], json: bool) -> None:
    if json:
        print_json(said)
        return
    left = said.get("seconds_left")
    typer.echo(
        f"process {said['pid']}, {said['verb']}: {said['state']}"
        + (f", window {said['window']}" if said.get("window") is not None else "")
        + f"; {format_size(said.get('done_bytes', 0))} of {format_size(said.get('total_bytes', 0))}"
        + (f", {left:.0f} s left" if left and said["alive"] else "")
    )
    if (moving := said.get("moving")) is not None and said["alive"]:
        typer.echo(f"moving {printable(moving['file'])}, {format_size(moving['bytes'])} from byte {moving['start']} on")
    if said.get("baseline_s"):
        typer.echo(
            f"the programs' I/O takes {shown(1e3 * said['latency_s'], 3)} ms, without the mover "
            f"{shown(1e3 * said['baseline_s'], 3)} ms; it copies {100 * said['duty']:.0f} % of the time"
        )
    with contextlib.suppress(KeyError):
        typer.echo(f"writers were kept out for {1e3 * said['frozen_max_s']:.1f} ms at most")
