"""`stripewise store layout`: where the bytes of files lie."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ...store.placed import PlacedFile, placed
from ...units import format_size
from ..options import JsonOption
from ..output import print_json, printable, regions_drawn, regions_text, wrapped

#: So many rows of regions are shown of a file; the rest is counted (--json has all).
ROWS_SHOWN = 12


def layout(
    files: Annotated[list[Path], typer.Argument(help="Managed files.", metavar="FILE...")],
    json: JsonOption = False,
) -> None:
    """Show the layout of managed files.

    Offset, length, stripe widths and targets of each region, and the data on each target. The JSON of one file is
    valid for 'store template add --layout' and 'store set-layout --layout'.
    """
    found = placed(files)
    if json:
        print_json({"files": [file.as_json() for file in found]})
        return
    for number, file in enumerate(found):
        if number:
            typer.echo()
        show(file)


def show(file: PlacedFile) -> None:
    """One file, for people."""
    counted = regions_text(file.layout.regions, file.size)
    typer.echo(f"{printable(file.path)}: {format_size(file.size)}, {counted}")
    typer.echo(f"  file {file.id} of {printable(file.store)}")
    lines = list(regions_drawn(file.layout.regions, ROWS_SHOWN, file.size))
    for line in lines:
        typer.echo(line)
    if lines[-1].endswith(" more region(s)"):
        typer.echo("  all regions: --json")
    amounts = _amounts({name: count for name, count in file.target_bytes.items() if count})
    said = f"held by {amounts}" if amounts else "held by no target: it has no byte"
    if file.replica_bytes:
        typer.echo(wrapped(f"replicas on {_amounts(file.replica_bytes)}"))
    typer.echo(wrapped(said))


def _amounts(counts: Mapping[str, int]) -> str:
    """Targets with their bytes, each pair in one line."""
    return ", ".join(f"{name} {format_size(count)}".replace(" ", "\xa0") for name, count in counts.items())
