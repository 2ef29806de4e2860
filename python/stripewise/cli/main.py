"""`stripewise`: puts the verbs together. Each verb is a file of its own beside this one."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .. import __version__
from ..runner import unload
from . import apply, collect, doctor, plan, run, show, store, template, tune
from .options import COMMAND_SETTINGS
from .output import OneLineErrors

app = typer.Typer(
    name="stripewise",
    help="Learns how a program touches its files and lays the files out to match.",
    cls=OneLineErrors,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
store.app.add_typer(template.app, name="template", help="Layouts for new files by glob.")
app.add_typer(store.app, name="store", help="Make, list and check stores.")
app.command("run", context_settings=COMMAND_SETTINGS)(run.run)
app.command("collect")(collect.collect)
app.command("show")(show.show)
app.command("plan")(plan.plan)
app.command("apply")(apply.apply)
app.command("doctor", context_settings=COMMAND_SETTINGS)(doctor.doctor)
app.command("tune", context_settings=COMMAND_SETTINGS)(tune.tune)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stripewise {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Learns how a program touches its files and lays the files out to match."""


def main() -> None:
    """The entry point of the `stripewise` command."""
    unload()
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    app()
