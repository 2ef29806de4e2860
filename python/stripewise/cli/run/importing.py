"""`stripewise import`: a trace of another program's becomes trace.parquet and meta.json, as `collect` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...files.parts import check_output_directory
from ...importing.formats import FORMATS, import_trace
from ...units import quoted
from ..options import JsonOption
from ..output import print_json, say, say_partial

_FORMATS = "; ".join(f"{name}: {chosen.what}" for name, chosen in FORMATS.items())


def import_(
    name: Annotated[str, typer.Argument(help=f"{_FORMATS}.", metavar="FORMAT")],
    files: Annotated[list[Path], typer.Argument(help="Files of one run.", metavar="FILE...")],
    out: Annotated[Path, typer.Option("-o", "--output", help="Output directory.", metavar="DIR")],
    lenient: Annotated[bool, typer.Option("--lenient", help="Skip and count bad lines and records.")] = False,
    cwd: Annotated[
        Path | None, typer.Option("--cwd", help="Working directory of the program, for relative names.", metavar="DIR")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Convert a trace of another tool, as 'collect' does its own.

    docs/traces/importing.md tells what each format holds.
    """
    place = out.absolute()
    check_output_directory(place)
    meta = import_trace(name, files, place, lenient, cwd)
    if json:
        print_json(meta)
        return
    typer.echo(f"{place}/trace.parquet: {meta['records']:,} records of {len(meta['processes']):,} process(es)")
    for skipped in meta["skipped"]:
        say(f"stripewise: {skipped['file']}: {skipped['why']} skipped")
    say_partial(str(place / "trace.parquet"), meta["partial"])
    typer.echo(f"next: stripewise plan {quoted(place)} --cluster CLUSTER -o plan.json")
