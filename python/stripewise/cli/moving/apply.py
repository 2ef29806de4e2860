"""`stripewise apply`: moves a store's files to where a plan puts them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...errors import PlanError
from ...moving.mover_session import Limits
from ...moving.plan_applier import apply_plan
from ...plan import read_plan
from ...plan.check import check_plan
from ...store import Store
from ...units import format_size
from ..arguments import flattened
from ..options import JsonOption, MoverOptions, StoreOption
from ..output import print_json, progress, say

#: A plan below this factor over DEF is expected to lose: rounding, or a tie, is no loss.
LOSES = 0.99


@flattened
def apply(
    *,
    plan: Annotated[Path, typer.Argument(help="plan.json.", metavar="PLAN")],
    store: StoreOption,
    mover: MoverOptions,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Apply a plan that is expected to be slower than DEF, too.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Apply a plan to the files of a store. Programs may go on using them; only mapped files stay where they are."""
    limits = Limits(mover.bytes_per_s, mover.max_slowdown)
    decided = read_plan(plan)
    if not anyway and (gain := decided.expected.likely_gain) < LOSES:
        raise PlanError(
            f"{plan}: is expected to be {gain:.2f} times as fast as def, which is slower; plan with another policy "
            f"(best), or apply it --anyway"
        )
    opened = Store(store)
    for remark in check_plan(decided, opened.config.cluster, plan):
        say(f"stripewise: {remark}")
    ids = opened.identities(decided, plan)
    with progress("moving") as step:
        result = apply_plan(opened, decided, ids, limits, step)
    if json:
        print_json(result.as_json())
    else:
        typer.echo(
            f"{result.files} file(s) laid out anew: {format_size(result.moved_bytes)} moved in {result.seconds:.2f} s"
            + (", stopped before the end" if result.signal is not None else "")
        )
    if result.signal is not None:
        raise typer.Exit(128 + result.signal)
