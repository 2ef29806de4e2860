"""`stripewise store layout`: where the bytes of files lie."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ...errors import StoreError
from ...layout import DRAINED, GIVEN
from ...store import Store
from ...store.placed import PlacedFile, placed, placed_at
from ...units import format_size
from ..options import JsonOption
from ..output import print_json, printable, regions_drawn, regions_text, say, wrapped

#: So many rows of regions are shown of a file; the rest is counted (--json has all).
ROWS_SHOWN = 12
#: By origin, who laid a file out where it was not the store; what that means for the file.
SOMEBODY = "set-layout, a template, a plan or hints of MPI"
GIVEN_BY = {
    GIVEN: f"laid out by {SOMEBODY}; 'store rebalance' leaves it so",
    DRAINED: f"laid out by {SOMEBODY}, and moved off a drained target since; 'store rebalance' leaves it so",
}


def layout(
    files: Annotated[list[Path], typer.Argument(help="Managed files.", metavar="FILE...")],
    json: JsonOption = False,
) -> None:
    """Show the layout of managed files.

    Offset, length, stripe widths and targets of each region, and the data on each target. The JSON of one file is
    valid for 'store template add --layout' and 'store set-layout --layout'.
    """
    if json:
        print_json({"files": [file.as_json() for file in placed(files)]})
        return
    stores: dict[str, Store] = {}
    failed: list[str] = []
    for number, path in enumerate(files):
        try:
            _, file = placed_at(path, stores)
        except StoreError as error:
            failed.append(str(error))
            continue
        if number > len(failed):
            typer.echo()
        show(file)
    # Files that are managed are shown whatever the others are.
    for why in failed[:-1]:
        say(f"stripewise: {printable(why)}")
    if failed:
        raise StoreError(failed[-1])


def show(file: PlacedFile) -> None:
    """One file, for people."""
    counted = regions_text(file.layout.regions, file.size)
    typer.echo(f"{printable(file.path)}: {format_size(file.size)}, {counted}")
    typer.echo(f"  file {file.id} of {printable(file.store)}")
    if file.layout.origin in GIVEN_BY:
        typer.echo(f"  {GIVEN_BY[file.layout.origin]}")
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
