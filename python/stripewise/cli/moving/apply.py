"""`stripewise apply`: moves a store's files to where a plan puts them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...moving.mover_session import Limits
from ...moving.plan_applier import apply_plan
from ...plan import read_plan
from ...plan.check import check_plan
from ...store import Store
from ...units import format_size
from ..arguments import flattened
from ..options import JsonOption, MoverOptions, StoreOption
from ..output import print_json, progress, say


@flattened
def apply(
    *,
    plan: Annotated[Path, typer.Argument(help="plan.json.", metavar="PLAN")],
    store: StoreOption,
    mover: MoverOptions,
    json: JsonOption = False,
) -> None:
    """Apply a plan to the files of a store. Programs may go on using them; only mapped files stay where they are."""
    limits = Limits(mover.bytes_per_s, mover.max_slowdown)
    decided = read_plan(plan)
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
