"""`stripewise store template`: layouts for new files by glob, kept in store.toml as rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...store import Store, templates
from ...store.config import read_store
from ..options import JsonOption, StoreArgument
from ..output import print_json, stdout, table

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
GlobArgument = Annotated[str, typer.Argument(metavar="GLOB", help="A glob over absolute paths; quote it.")]


@app.command("add")
def add(
    store: StoreArgument,
    glob: GlobArgument,
    layout: Annotated[Path, typer.Option("--layout", help="A layout JSON, or a plan of one file.")],
) -> None:
    """New files that match GLOB, or lie in it or below if it is a directory, get this layout.

    A path goes before globs, globs before directories, a directory before those that it lies in.
    """
    root = Store(store).root
    patterns, saved = templates.add(root, glob, layout)
    typer.echo(f"new files matching {' or '.join(patterns)} are laid out as {root / saved}")


@app.command("rm")
def rm(store: StoreArgument, glob: GlobArgument) -> None:
    """Forget the template of GLOB; files that exist keep their layout."""
    gone = templates.remove(store, glob)
    typer.echo(f"forgot the template of {' or '.join(rule.glob for rule in gone)}")


@app.command("ls")
def ls(store: StoreArgument, json: JsonOption = False) -> None:
    """List the templates of a store, in the order in which they are tried."""
    rules = templates.templates_in(read_store(store))
    if json:
        print_json([{"glob": rule.glob, "layout": rule.layout} for rule in rules])
        return
    made = table("", "glob", "layout")
    for rule in rules:
        made.add_row(rule.glob, str(rule.layout))
    stdout().print(made)
