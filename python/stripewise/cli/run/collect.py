"""`stripewise collect`: raw logs of a traced run become one Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ... import native
from ...errors import WorkloadError
from ..options import JsonOption
from ..output import print_json, say

#: What meta.json counts that is not in the table; said when it is not zero.
LOSSES = ("dropped", "incomplete", "missing", "damaged", "empty_logs", "names_lost", "unnamed")


def collected_directory(logs: Path, out: Path | None) -> Path:
    """Where the collected trace goes: beside the raw logs when not said."""
    return out.absolute() if out is not None else logs.absolute()


def collect_logs(logs: Path, out: Path, lenient: bool = False) -> dict[str, Any]:
    """Collects the raw logs in `logs` into `out`/trace.parquet; returns the native module's account."""
    if not logs.is_dir():
        raise WorkloadError(f"{logs}: is not a directory; give the one that 'stripewise run --trace' filled")
    return dict(native.call("trace_collect", str(logs.absolute()), str(out), lenient) or {})


def collect(
    tracedir: Annotated[Path, typer.Argument(help="The directory that 'run --trace' filled.", metavar="TRACEDIR")],
    out: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the trace here (default: TRACEDIR).")
    ] = None,
    lenient: Annotated[bool, typer.Option("--lenient", help="Skip and count damaged parts.")] = False,
    json: JsonOption = False,
) -> None:
    """Turn the raw logs of a traced run into trace.parquet and meta.json."""
    place = collected_directory(tracedir, out)
    account = collect_logs(tracedir, place, lenient)
    if json:
        print_json(account)
        return
    typer.echo(f"{place}/trace.parquet: {account.get('records', 0):,} records")
    for key in LOSSES:
        if account.get(key):
            say(f"stripewise: {place}/trace.parquet: {key.replace('_', ' ')}: {account[key]:,}")
    typer.echo(f"go on with: stripewise plan {place} --cluster CLUSTER --policy h2dp -o plan.json")
