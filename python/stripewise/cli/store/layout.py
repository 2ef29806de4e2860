"""`stripewise store layout`: where the bytes of files lie."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...store.placed import placed
from ...units import format_size
from ..options import JsonOption
from ..output import print_json, printable, stdout, table


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("layout")(layout)


def layout(
    files: Annotated[list[Path], typer.Argument(help="Managed files.", metavar="FILE...")],
    json: JsonOption = False,
) -> None:
    """Show where managed files lie: their regions, and what each target holds of them.

    The JSON of one file is what 'store template add --layout' takes.
    """
    found = placed(files)
    if json:
        print_json({"files": [file.as_json() for file in found]})
        return
    for file in found:
        typer.echo(f"{printable(file.path)}: {format_size(file.size)}, {file.id} in {printable(file.store)}")
        made = table("", "from", "bytes", "stripes")
        for region in file.layout.regions:
            stripes = ", ".join(f"{name} {format_size(width)}" for name, width in region.stripes)
            made.add_row(f"{region.start:,}", format_size(region.len), stripes)
        stdout().print(made)
        held = ", ".join(f"{name} {format_size(count)}" for name, count in file.target_bytes.items() if count)
        typer.echo(f"held by {held or 'no target: it has no byte'}; what lies behind the last region goes on like it")
