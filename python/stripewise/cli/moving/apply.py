"""`stripewise apply`: moves a store's files to where a plan puts them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...plan import read_plan
from ...plan.check import check_plan
from ...store import Store
from ...units import format_size
from ..options import JsonOption, StoreOption
from ..output import print_json, progress, say


def apply(
    plan: Annotated[Path, typer.Argument(help="plan.json.", metavar="PLAN")],
    store: StoreOption,
    json: JsonOption = False,
) -> None:
    """Apply a plan to the files of a store. Programs may go on using them; only mapped files stay where they are."""
    decided = read_plan(plan)
    opened = Store(store)
    for remark in check_plan(decided, opened.config.cluster, plan):
        say(f"stripewise: {remark}")
    ids = opened.identities(decided, plan)
    with progress("moving") as step:
        result = opened.apply(decided, ids, step)
    if json:
        print_json(result)
        return
    typer.echo(
        f"{result['files']} file(s) laid out anew: {format_size(result['moved_bytes'])} moved "
        f"in {result['seconds']:.2f} s"
    )
