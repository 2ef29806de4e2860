"""`stripewise migrate`: the mover, which follows a plan while programs run; and how it is watched and steered."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import StoreError, UsageError
from ...moving.board import send, status
from ...moving.carrier import Carrier, Limits
from ...moving.migrate import Migrator, Result, clock_of_killed, plan_digest
from ...moving.schedule import Schedule, parse_windows
from ...plan import read_plan
from ...plan.check import check_plan
from ...store import Store
from ...units import format_size, parse_age
from ..options import SLOWDOWN, BandwidthOption, JsonOption, MinGainOption, PatienceOption, SlowdownOption, size
from ..output import print_json, printable, progress, say, shown


def migrate(
    plan: Annotated[Path | None, typer.Argument(help="plan.json.", metavar="[PLAN]")] = None,
    store: Annotated[Path | None, typer.Option("--store", help="The store's directory.")] = None,
    now: Annotated[bool, typer.Option("--now", help="Wait for no window: go to the last one's placement.")] = False,
    start_at: Annotated[
        float | None, typer.Option("--start-at", min=0, metavar="SECONDS", help="The run began so long ago.")
    ] = None,
    windows: Annotated[
        str | None, typer.Option("--windows", help="Follow only these windows of the plan, e.g. 0,2-4.")
    ] = None,
    bandwidth: BandwidthOption = None,
    max_slowdown: SlowdownOption = SLOWDOWN,
    min_gain: MinGainOption = None,
    patience: PatienceOption = "60s",
    status_of: Annotated[
        Path | None, typer.Option("--status", metavar="STORE", help="Say how the mover of a store gets on.")
    ] = None,
    pause: Annotated[Path | None, typer.Option("--pause", metavar="STORE", help="Let it wait.")] = None,
    resume: Annotated[Path | None, typer.Option("--resume", metavar="STORE", help="Let it go on.")] = None,
    stop: Annotated[Path | None, typer.Option("--stop", metavar="STORE", help="End it, all files whole.")] = None,
    json: JsonOption = False,
) -> None:
    """Move files' regions as a plan wants them, window by window, while programs use them."""
    orders = {"status": status_of, "pause": pause, "resume": resume, "stop": stop}
    given = {name: root for name, root in orders.items() if root is not None}
    if given:
        if len(given) > 1 or plan is not None:
            raise UsageError("migrate: give a plan, or one of --status, --pause, --resume and --stop")
        for name, root in given.items():
            _print_status(status(root) if name == "status" else send(root.resolve(), name), json)
        return
    if plan is None or store is None:
        raise UsageError("migrate: give a plan and --store, or --status, --pause, --resume or --stop with a store")
    limits = Limits(0 if bandwidth is None else size(bandwidth, "--bandwidth"), max_slowdown)
    chosen = None if windows is None else parse_windows(windows)
    result = _follow(plan, Store(store), chosen, min_gain, limits, now, start_at, parse_age(patience, "--patience"))
    _report(result, store, json)


def _follow(
    path: Path,
    store: Store,
    windows: frozenset[int] | None,
    min_gain: float | None,
    limits: Limits,
    now: bool,
    start_at: float | None,
    patience_s: float,
) -> Result:
    decided = read_plan(path)
    for remark in check_plan(decided, store.config.cluster, path):
        say(f"stripewise: {remark}")
    limited = frozenset(t.name for t in store.config.cluster.targets if t.capacity_bytes)
    schedule = Schedule(decided, limited, windows, min_gain)
    digest = plan_digest(path)
    begun = time.time() - (start_at or 0.0)
    if start_at is None and not now and (before := clock_of_killed(store.root, digest)) is not None:
        say(f"stripewise: goes on for a mover that was killed, {time.time() - before:.1f} s after the run began")
        begun = before
    head = {"verb": "migrate", "plan": str(path.absolute()), "plan_sha256": digest, "begun_unix": begun}
    with progress("moving") as step:
        carrier = Carrier(store, head, limits, step)
        with carrier:
            return Migrator(store, decided, schedule, carrier, _complain, begun, now, patience_s).run()


def _complain(text: str) -> None:
    say(f"stripewise: {text}")


def _report(result: Result, store: Path, json: bool) -> None:
    if json:
        print_json(
            {
                "moves": result.moves,
                "moved_bytes": result.moved_bytes,
                "seconds": result.seconds,
                "left": result.left,
                "stopped": result.stopped,
            }
        )
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
