"""`stripewise store trust`: whose stores programs and verbs follow when a link names them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError
from ...store import trust
from ..options import JsonOption
from ..output import print_json, printable


def trust_store(
    store: Annotated[
        str | None, typer.Argument(metavar="[DIR]", help="Store, or DIR/* for all stores below DIR.")
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List trusted stores.")] = False,
    forget: Annotated[str | None, typer.Option("--remove", metavar="DIR", help="Stop trusting DIR.")] = None,
    json: JsonOption = False,
) -> None:
    """Trust links into another user's store."""
    if sum((store is not None, show, forget is not None)) != 1:
        raise UsageError("store trust: give one of DIR, --list and --remove DIR")
    if store is not None:
        entry = trust.add(store)
        typer.echo(f"{printable(entry)}: listed in {printable(str(trust.list_path()))}")
        if entry.endswith(trust.BELOW):
            typer.echo("programs and verbs that you start follow links into every store below it, whoever owns them")
        else:
            owner = trust.verdict(Path(entry)).owner
            typer.echo(
                f"its owner is {owner}: where the bytes of its files go, and whether they can be had, is up to them"
            )
            typer.echo("programs and verbs that you start with 'stripewise' follow links into it from now on")
        return
    if forget is not None:
        entry = trust.remove(forget)
        typer.echo(f"{printable(entry)}: not listed any more")
        return
    if json:
        print_json(trust.entries())
        return
    for entry in trust.entries():
        typer.echo(printable(entry))
