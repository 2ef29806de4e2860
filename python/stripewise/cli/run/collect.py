"""`stripewise collect`: raw logs of a traced run become one Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...run.collect import collect_logs
from ..options import JsonOption
from ..output import print_json, say_partial


def collect(
    tracedir: Annotated[Path, typer.Argument(help="The directory that 'run --trace' filled.", metavar="TRACEDIR")],
    out: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the trace here (default: TRACEDIR).")
    ] = None,
    lenient: Annotated[bool, typer.Option("--lenient", help="Skip and count damaged parts.")] = False,
    json: JsonOption = False,
) -> None:
    """Turn the raw logs of a traced run into trace.parquet and meta.json."""
    place = (out if out is not None else tracedir).absolute()
    account = collect_logs(tracedir, place, lenient)
    if json:
        print_json(account)
        return
    typer.echo(f"{place}/trace.parquet: {account.get('records', 0):,} records")
    # Brings pyarrow, which the verbs that run programs do without.
    from ...workload.trace import partial_reasons

    say_partial(f"{place}/trace.parquet", partial_reasons(place))
    typer.echo(f"go on with: stripewise plan {place} --cluster CLUSTER -o plan.json")
