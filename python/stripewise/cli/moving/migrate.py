"""`stripewise migrate`: the mover, which follows a plan while programs run (`stripewise mover` steers it)."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...errors import PlanError, StoreError
from ...moving.mover_session import MoverSession
from ...moving.plan_follower import NOT_THERE, PlanFollower, Result, clock_of, plan_digest
from ...moving.schedule import Schedule, limited_targets, parse_windows
from ...moving.strangers import check_no_strangers
from ...plan import Plan, read_plan
from ...plan.check import check_plan
from ...store import Store
from ...units import format_size, parse_age
from ..arguments import flattened
from ..options import JsonOption, MinGainOption, MoverOptions, PatienceOption, StoreOption
from ..output import print_json, printable, progress, say
from ..signals import ENDED_BY
from .mover import moves_text


@dataclass(frozen=True, kw_only=True)
class ClockOptions:
    """Which windows of the plan are followed, and on which clock."""

    now: Annotated[bool, typer.Option("--now", help="Go to the placement of the last window at once.")] = False
    start_at: Annotated[
        float | None, typer.Option("--start-at", min=0, metavar="SECONDS", help="Seconds since the program started.")
    ] = None
    windows: Annotated[
        str | None,
        typer.Option(
            "--windows", metavar="N,N-M,...", help="Windows of the plan to follow, e.g. 0,2-4 (default: all)."
        ),
    ] = None
    missing_ok: Annotated[
        bool, typer.Option("--missing-ok", help="Wait for missing files; no error if they never appear.")
    ] = False


@flattened
def migrate(
    *,
    plan: Annotated[Path, typer.Argument(help="Plan (plan.json).", metavar="PLAN")],
    store: StoreOption,
    clock: ClockOptions,
    mover: MoverOptions,
    min_gain: MinGainOption = None,
    patience: PatienceOption = "60s",
    json: JsonOption = False,
) -> None:
    """Move regions to their planned targets, window by window.

    Programs may run meanwhile; 'stripewise mover' shows and steers the moves.
    """
    chosen = None if clock.windows is None else parse_windows(clock.windows)
    opened, patience_s = Store(store), parse_age(patience, "--patience")
    decided = read_plan(plan)
    for remark in _checked(decided, opened, plan, clock.missing_ok):
        _complain(remark)
    if not clock.missing_ok:
        check_no_strangers(opened, decided, plan)
    schedule = Schedule(decided, limited_targets(opened.config.cluster), chosen, min_gain)
    digest = plan_digest(plan)
    begun, resumed_after_s = clock_of(opened.root, digest, clock.start_at, clock.now)
    if resumed_after_s is not None:
        _complain(f"resuming a killed mover, {resumed_after_s:.1f} s after the program started")
    head = {"verb": "migrate", "plan": str(plan.absolute()), "plan_sha256": digest, "begun_unix": begun}
    with progress("moving") as step, MoverSession(opened, head, mover.limits, step) as session:
        result = PlanFollower(
            opened, decided, schedule, session, _complain, begun, clock.now, patience_s, clock.missing_ok
        ).run()
    _report(result, store, json)


def _checked(plan: Plan, store: Store, source: Path, missing_ok: bool) -> list[str]:
    """Remarks on the plan. What is wrong with a plan of another store is first of all that."""
    try:
        return check_plan(plan, store.config.cluster, source)
    except PlanError:
        if not missing_ok or plan.cluster_digest not in ("", store.config.cluster.digest()):
            store.identities(plan, source)
        raise


def _complain(text: str) -> None:
    say(f"stripewise: {text}")


def _report(result: Result, store: Path, json: bool) -> None:
    if json:
        print_json(result.as_json())
    else:
        typer.echo(
            f"{moves_text(result.moves, result.first_moves)}, {format_size(result.moved_bytes)} in "
            f"{result.seconds:.2f} s"
            + ("" if not result.stopped else ", all moves made" if result.is_complete else ", stopped before the end")
        )
        for left in result.left:
            where = f" from offset {left['start']} on" if left["len"] else ""
            typer.echo(f"not moved: {printable(left['file'])}{where}: {left['why']}")
    if result.signal is not None:
        # SIGTERM is how 'run' ends its mover: that is no news.
        if result.signal == signal.SIGINT:
            again = "the same command again moves the rest, what was under way from its first byte"
            clock = "on a clock that begins anew (--start-at, --now)"
            _complain(f"{ENDED_BY[signal.SIGINT]}; what has moved stays, every file is whole; {again}, {clock}")
        raise typer.Exit(128 + result.signal)
    if result.stopped and not result.is_complete:
        raise StoreError(f"{store}: was stopped; the same command again moves the rest")
    if result.left and not result.stopped:
        if all(left["why"] == NOT_THERE for left in result.left):
            cure = "check their paths, or give --missing-ok where they need not be there"
            raise StoreError(f"{store}: {len(result.left)} file(s) of the plan are not in this store; {cure}")
        raise StoreError(f"{store}: {len(result.left)} move(s) failed; run the same command again for the rest")
