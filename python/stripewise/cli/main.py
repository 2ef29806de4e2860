"""The `stripewise` command. Each verb is a file of its own, in folders by subject; `verbs.py` has their table.

A verb's module is brought in when it is used: most of the time of a short verb would go into loading the others.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from .. import __version__
from ..errors import StripewiseError, Terminated, UsageError
from ..preloaded import unload
from .output import printable, say, say_all_anew
from .signals import ENDED_BY, HANDLERS, ended_at_once
from .verbs import COMPLETE_VARIABLE, PROGRAM, TABLE, Group, Verb

#: No first sentence of a help is longer.
SENTENCE_MAX = 1000
HELP = "Trace the I/O of a program, plan a data layout for it, and run it on that layout."


class WithColumns(TyperCommand):
    """A verb whose help ends with what the columns of its tables mean."""

    within: Mapping[str, Verb] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """The verbs within it."""
        return list(self.within)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One of these."""
        return _command(cmd_name, self.within[cmd_name])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Its options, and the verbs within it."""
        from typer.core import CompletionItem  # type: ignore[attr-defined]

        verbs = [CompletionItem(name) for name in self.within if name.startswith(incomplete)]
        return [*verbs, *super().shell_complete(ctx, incomplete)]

    def get_short_help_str(self, limit: int = 0) -> str:
        """Its first sentence, whole: lists of verbs wrap what does not fit, rather than cut it."""
        return super().get_short_help_str(SENTENCE_MAX)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """An empty path is refused: it would be the working directory, where a shell's variable was not set."""
        if not ctx.resilient_parsing and "" in args:
            given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
            for parameter in self.get_params(ctx):
                value = given.get(parameter.name)
                if "" in (value if isinstance(value, (list, tuple)) else [value]) and _takes_path(parameter):
                    named = parameter.metavar or parameter.name
                    shown = parameter.opts[0] if parameter.param_type_name == "option" else named
                    raise UsageError(f"{shown}: is an empty path; give one, '.' for the working directory")
        return list(super().parse_args(ctx, args))

    def get_params(self, ctx: Any) -> list[Any]:
        """Arguments are shown by their names alone: types of Python's and braces say nothing to who calls them."""
        found = list(super().get_params(ctx))
        for parameter in found:
            if parameter.param_type_name == "argument":
                name = parameter.metavar or parameter.name.upper()
                shown = name if parameter.required else f"[{name}]"
                for method, text in (("display_type_rich", ""), ("_usage_display_name", shown)):
                    setattr(parameter, method, functools.partial(_said, text))
        return found

    def invoke(self, ctx: Any) -> Any:
        """What ended the process at once is an exception from here on: there may be something to put in order."""
        for number, handler in HANDLERS.items():
            if signal.getsignal(number) is ended_at_once:
                signal.signal(number, handler)
        return super().invoke(ctx)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Made when help is asked for, and at no other time."""
        from .glossary import columns_help

        _, _, verb = ctx.command_path.partition(" ")
        self.epilog = columns_help(verb)
        super().format_epilog(ctx, formatter)


def _said(text: str, **_: Any) -> str:
    return text


def _takes_path(parameter: Any) -> bool:
    """Whether a parameter is of paths, or of files among other words."""
    annotation, shown = parameter.type_descriptor.annotation, parameter.metavar or ""
    return annotation is Path or Path in get_args(annotation) or "FILE" in shown or shown == "LAYOUT"


class Verbs(TyperGroup):
    """Verbs of a table, each brought in on demand."""

    table: Mapping[str, Verb | Group] = TABLE
    hints: Mapping[str, str] = {}

    def get_short_help_str(self, limit: int = 0) -> str:
        """As of a verb."""
        return super().get_short_help_str(SENTENCE_MAX)

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A verb, loaded if it was not; None for an unknown one."""
        if cmd_name in self.table and cmd_name not in self.commands:
            self.add_command(_command(cmd_name, self.table[cmd_name]), cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb that is called; an unknown one is refused with the nearest that there is."""
        if args and args[0] not in self.table and not ctx.resilient_parsing:
            import difflib

            if args[0] in self.hints:
                ctx.fail(f"No such command '{args[0]}'; {self.hints[args[0]]}")
            inner = [f"{name} {args[0]}" for name, each in self.table.items() if args[0] in getattr(each, "verbs", ())]
            if inner:
                ctx.fail(f"No such command '{args[0]}'; did you mean {' or '.join(inner)}?")
            near = difflib.get_close_matches(args[0], list(self.table), 1)
            if near:
                ctx.fail(f"No such command '{args[0]}'; did you mean {near[0]}?")
        found = super().resolve_command(ctx, args)
        command = found[1]
        if len(args) > 1 and isinstance(command, WithColumns) and args[1] in command.within:
            return f"{args[0]} {args[1]}", command.get_command(ctx, args[1]), args[2:]
        return found

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The verbs and options that begin so; the names alone, for their help all of them would be loaded."""
        from typer.core import CompletionItem  # type: ignore[attr-defined]

        verbs = [CompletionItem(name) for name in self.table if name.startswith(incomplete)]
        return [*verbs, *super(TyperGroup, self).shell_complete(ctx, incomplete)]


def app_of(name: str, group: Group, base: type[Verbs] = Verbs) -> typer.Typer:
    """A group as typer has it; `base` is what its class is made of."""
    return typer.Typer(
        name=name,
        help=group.help,
        cls=type("Verbs", (base,), {"table": group.verbs, "hints": group.hints}),
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )


def _command(name: str, entry: Verb | Group) -> Any:
    if isinstance(entry, Group):
        group = app_of(name, entry)
        # Typer has no group without a callback.
        group.callback()(lambda: None)
        return typer.main.get_command(group)
    with _ended_by_signals():
        module = importlib.import_module(f".{entry.module}", __package__)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    kind = type("WithColumns", (WithColumns,), {"within": entry.within})
    alone.command(name, context_settings=dict(entry.settings), cls=kind)(getattr(module, entry.function))
    return typer.main.get_command(alone)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Signals that end a verb end the process at once: modules that load others may lose an exception of a signal's
    (numpy.random does).
    """
    before = {number: handler for number, handler in HANDLERS.items() if signal.getsignal(number) is handler}
    if threading.current_thread() is not threading.main_thread():
        before = {}
    for number in before:
        signal.signal(number, ended_at_once)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


#: How a wrong value of an option or an argument is told.
_INVALID = re.compile(r"Invalid value for '?([^':]+)'?: (.*)")


class OneLineErrors(TyperGroup):
    """Turns every error into one line on stderr and an exit code."""

    def make_context(self, *args: Any, **more: Any) -> Any:
        """As of any group; words that are none of its options are an error of one line, too."""
        try:
            return super().make_context(*args, **more)
        except typer.TyperException as error:
            if _tell_usage(error):
                sys.exit(2)
            raise

    def invoke(self, ctx: Any) -> Any:
        say_all_anew()
        try:
            return super().invoke(ctx)
        except StripewiseError as error:
            say(f"stripewise: {_one_line(error)}")
            raise typer.Exit(2 if isinstance(error, UsageError) else 1) from error
        except OSError as error:
            if error.errno == errno.EPIPE:
                # The reader of our output went away; say nothing more, not even at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(1) from error
            say(f"stripewise: {_what_failed(error)}")
            raise typer.Exit(1) from error
        except MemoryError as error:
            say("stripewise: out of memory; plan fewer files with --file or use a larger --region-size")
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            number = error.number if isinstance(error, Terminated) else signal.SIGINT
            stands = [printable(note) for note in getattr(error, "__notes__", ())]
            say(": ".join(["stripewise", "; ".join([ENDED_BY[number], *stands])]))
            raise typer.Exit(128 + number) from error
        except typer.TyperException as error:
            if _tell_usage(error):
                raise typer.Exit(2) from error
            raise
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if os.environ.get("STRIPEWISE_DEBUG"):
                raise
            say(f"stripewise: internal error {type(error).__name__}: {_one_line(error)}; STRIPEWISE_DEBUG=1 shows more")
            raise typer.Exit(1) from error


def _tell_usage(error: typer.TyperException) -> bool:
    """Says what is wrong with the words of a command, in one line; False for what asks for help."""
    context = getattr(error, "ctx", None)
    if error.exit_code != 2 or context is None or not (message := error.format_message().rstrip(".")):
        return False
    if "\n" in message:
        # A help, of a group without a verb.
        return False
    found = _INVALID.fullmatch(message)
    said = found[1] + ": " + found[2][:1].lower() + found[2][1:] if found else message[0].lower() + message[1:]
    say(f"stripewise: {said}{' ' if said.endswith('?') else '; '}see '{context.command_path} --help'")
    return True


def _what_failed(error: OSError) -> str:
    """An error of the operating system, with what it is about and what helps."""
    said = error.strerror or str(error)
    if error.filename is not None:
        return f"{error.filename}: {said}; check the path and its permissions"
    try:
        os.getcwd()
    except OSError:
        return f"the working directory: {said}; it is gone or closed to you: go into one that is there"
    return f"{said}; check the paths given and their permissions"


def _one_line(error: BaseException) -> str:
    return "".join(char if char.isprintable() else " " for char in str(error))


class _Root(OneLineErrors, Verbs):
    pass


app = app_of(PROGRAM, Group(HELP, TABLE), _Root)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stripewise {__version__}")
        raise typer.Exit


@app.callback(help=HELP)
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command line (`entry.py`, which begins earlier)."""
    unload()
    # Who had it ignored before us, as nohup has SIGHUP, has reasons.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, HANDLERS[number])
    if COMPLETE_VARIABLE in os.environ:
        from .completion import prepare

        prepare()
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    app()
