"""`stripewise doctor`: what would keep a program's files from working, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...doctor import Examined, Level, examine
from ..options import JsonOption
from ..output import print_json, printable


def doctor(
    command: Annotated[list[str] | None, typer.Argument(metavar="[-- CMD...]", help="Command to check.")] = None,
    store: Annotated[Path | None, typer.Option("--store", metavar="STORE", help="Store to check.")] = None,
    json: JsonOption = False,
) -> None:
    """Check library, programs, machine and store.

    CMD is inspected, not run. The exit status is 1 if a finding would keep files from working.
    """
    found = examine(Examined(store, tuple(command or ())))
    if json:
        print_json({"findings": [{"name": name, **finding.as_json()} for name, finding in found]})
    else:
        for name, finding in found:
            cure = f"; cure: {finding.cure}" if finding.cure else ""
            typer.echo(printable(f"{finding.level.value:<5}{name}: {finding.what}{cure}"))
    raise typer.Exit(1 if any(finding.level is Level.BAD for _, finding in found) else 0)
