"""`stripewise`: puts the verbs together. Each verb is a file of its own, in folders by subject."""

from __future__ import annotations

import contextlib
import importlib
import keyword
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..preloaded import unload
from . import completion
from .completion import PROGRAM
from .glossary import WithColumns, glossary
from .moving import apply, migrate, mover
from .options import COMMAND_SETTINGS
from .output import INTERRUPTED, OneLineErrors
from .run import collect, doctor, run
from .store import plan as kept_plans
from .store import template
from .store import verbs as store
from .swd import verbs as swd
from .undo import undo

#: Verbs that need numpy or pyarrow, whose loading takes longer than most verbs run: brought in on demand.
HEAVY: dict[str, tuple[str, dict[str, Any]]] = {
    "import": (".run.importing", {}),
    "show": (".plan.show", {}),
    "plan": (".plan.plan", {}),
    "patterns": (".pattern.patterns", {}),
    "model": (".model.model", {}),
    "files": (".run.files", {}),
    "simulate": (".simulate", {}),
    "tune": (".run.tune", COMMAND_SETTINGS),
    "calibrate": (".calibrate", {}),
    "init": (".init", {}),
}


def _interrupted(*_: object) -> None:
    os.write(2, b"stripewise: interrupted\n")
    os._exit(INTERRUPTED)


@contextlib.contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """SIGINT ends the process at once: modules that load others may lose a KeyboardInterrupt (numpy.random does)."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Verbs(OneLineErrors):
    """The verbs, light ones at once and heavy ones on demand."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of their first use."""
        return [*super().list_commands(ctx), *(name for name in HEAVY if name not in self.commands)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A verb, loaded if it was not; None for an unknown one."""
        if cmd_name in HEAVY and cmd_name not in self.commands:
            place, settings = HEAVY[cmd_name]
            with _ended_by_interrupt():
                module = importlib.import_module(place, __package__)
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
            function = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
            alone.command(cmd_name, context_settings=settings, cls=WithColumns)(getattr(module, function))
            self.add_command(typer.main.get_command(alone), cmd_name)
        return super().get_command(ctx, cmd_name)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The verbs and options that begin so; of heavy verbs the names alone, for their help they would be loaded."""
        from typer.core import CompletionItem  # type: ignore[attr-defined]

        light = [CompletionItem(name, help=verb.get_short_help_str()) for name, verb in self.commands.items()]
        heavy = [CompletionItem(name) for name in HEAVY if name not in self.commands]
        options = super(TyperGroup, self).shell_complete(ctx, incomplete)
        return [*(item for item in (*light, *heavy) if item.value.startswith(incomplete)), *options]


app = typer.Typer(
    name=PROGRAM,
    help="Trace the I/O of a program, plan a data layout for it, and run it on that layout.",
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for group in (store.app, template.app, kept_plans.app, swd.app):
    for verb in group.registered_commands:
        verb.cls = WithColumns
store.app.add_typer(template.app, name="template", help="Manage layouts of new files, by glob.")
store.app.add_typer(kept_plans.app, name="plan", help="Manage the plans that runs of an application follow.")
app.add_typer(store.app, name="store", help="Create, list, check and change stores.")
app.add_typer(mover.app, name="mover", help="Show, pause, resume or stop the mover of a store.")
app.add_typer(swd.app, name="swd", help="Simulate shingled write disks: schemes, traces, track maps.")
app.command("run", context_settings=COMMAND_SETTINGS)(run.run)
app.command("collect")(collect.collect)
app.command("apply")(apply.apply)
app.command("migrate")(migrate.migrate)
app.command("undo")(undo)
app.command("doctor", context_settings=COMMAND_SETTINGS)(doctor.doctor)
app.command("glossary")(glossary)
app.command("completion")(completion.completion)


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
    """Trace the I/O of a program, plan a data layout for it, and run it on that layout."""


def main() -> None:
    """The entry point of the `stripewise` command."""
    unload()
    if completion.VARIABLE in os.environ:
        completion.prepare()
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    app()
