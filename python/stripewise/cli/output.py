"""How the command line speaks: results on stdout, everything else on stderr, one line per error, no traceback.

Exit codes: 0 ok, 1 failed, 2 usage. A verb prints JSON with --json, tables and sentences without.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from ..errors import StripewiseError, UsageError

# rich is loaded where it is used: that takes as long as what most verbs do.
if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: Width of tables where nobody says how wide the screen is.
WIDTH_WITHOUT_TERMINAL = 120


def stdout() -> Console:
    """The console for results."""
    from rich.console import Console

    return Console(
        width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False, markup=False, emoji=False
    )


def say(text: str) -> None:
    """One line to stderr."""
    typer.echo(text, err=True)


def say_partial(source: str, reasons: Sequence[str]) -> None:
    """One line where a trace is not the whole run."""
    if reasons:
        say(f"stripewise: {printable(source)}: the trace is partial: {printable('; '.join(reasons))}")


def check_output(path: Path, flag: str = "-o") -> None:
    """UsageError when no file can be written under this name: said before the work, not at its end."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"{flag}: {path} cannot be a file there; give the name of a file in an existing directory")


def print_json(value: Any) -> None:
    """One line of JSON on stdout; infinities and NaN do not occur."""
    typer.echo(json.dumps(value, allow_nan=False))


def printable(text: str) -> str:
    """A name as one line that no terminal stumbles over."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def table(title: str, *columns: str) -> Table:
    """A table whose columns after the first are right-aligned."""
    from rich.table import Table

    made = Table(title=title or None, title_justify="left")
    for number, column in enumerate(columns):
        made.add_column(column, justify="right" if number else "left", overflow="fold")
    return made


def shown(value: float | None, digits: int = 1) -> str:
    """A number for a table; a dash where there is none."""
    return "-" if value is None else f"{value:,.{digits}f}"


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr for what takes long; it shows on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task(what, total=None)

        def step(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total or None)

        yield step


#: The exit status of a verb that Ctrl-C ends: 128 and the number of the signal.
INTERRUPTED = 130


class OneLineErrors(TyperGroup):
    """Turns every error into one line on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
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
            place = f"{error.filename}: " if error.filename is not None else ""
            say(f"stripewise: {place}{error.strerror or error}; check the path and its permissions")
            raise typer.Exit(1) from error
        except MemoryError as error:
            say("stripewise: out of memory; plan fewer files with --file or use a larger --region-size")
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            say("stripewise: interrupted")
            raise typer.Exit(INTERRUPTED) from error
        except (typer.Exit, typer.Abort, typer.TyperException):
            raise
        except Exception as error:
            if os.environ.get("STRIPEWISE_DEBUG"):
                raise
            say(f"stripewise: internal error {type(error).__name__}: {_one_line(error)}; STRIPEWISE_DEBUG=1 shows more")
            raise typer.Exit(1) from error


def _one_line(error: BaseException) -> str:
    return "".join(char if char.isprintable() else " " for char in str(error))
