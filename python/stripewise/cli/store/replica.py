"""`stripewise store replica`: the copies of files that a store holds; `stripewise replicate` makes them."""

from __future__ import annotations

from typing import Annotated

import typer

from ...errors import UsageError
from ...store import Store
from ...store.config import check_untuned
from ...store.copies.listed import Copies, copies_of, drop_files, drop_stale
from ...units import format_size, quoted
from ..options import JsonOption, StoreArgument
from ..output import print_json, printable, say, stdout, table


def ls(store: StoreArgument, json: JsonOption = False) -> None:
    """List the copies of files, and whether programs still use them."""
    found = copies_of(Store(store))
    if json:
        print_json([each.as_json() for each in found])
        return
    if not found:
        make_some = f"stripewise replicate TRACE --store {quoted(store)}"
        typer.echo(printable(f"no copies; make some with '{make_some}'"))
        return
    # Where all are updated, as without the option, nobody need be told.
    with_on_write = any(each.invalidated for each in found)
    made = table("", "file", "replicas", "size", "state", *(("on write",) if with_on_write else ()))
    for each in found:
        more = (each.on_write,) if with_on_write else ()
        made.add_row(printable(_called(each)), f"{each.replicas:,}", format_size(each.bytes), _state(each), *more)
    stdout().print(made)


def rm(
    store: StoreArgument,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE...", help="Files, or names as 'ls --json' shows them.")
    ] = None,
    stale: Annotated[bool, typer.Option("--stale", help="All copies that no program uses any more.")] = False,
) -> None:
    """Remove the copies of files; the files stay as they are.

    Programs that read them go on with the file.
    """
    if bool(files) == stale:
        raise UsageError("replica rm: give the files whose copies are to go, or --stale")
    opened = Store(store)
    if files:
        check_untuned(opened.root)
        gone = drop_files(opened, files)
    else:
        gone, busy = drop_stale(opened)
        for each in busy:
            say(printable(f"stripewise: {_called(each)}: another command is making these copies"))
    for each in gone:
        typer.echo(printable(f"removed the copies of {_called(each)}"))
    if not gone:
        typer.echo(f"{store}: no copies to remove")


def _called(copies: Copies) -> str:
    """The file's path, else the name of its record."""
    return copies.path or copies.name


def _state(copies: Copies) -> str:
    """With how much of a managed file is read from its home, for it was written without its copies."""
    return f"{copies.state}, {format_size(copies.stale_bytes)} stale" if copies.stale_bytes else copies.state
