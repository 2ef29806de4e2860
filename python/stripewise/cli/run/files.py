"""`stripewise files`: the list by which files of a trace count, or of one trace which do, and why others do not."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ...units import format_size
from ...workload.counted import KINDS, LARGE_BYTES, OUTSIDE, SMALL, Choice, left_out_text
from ...workload.trace import partial_reasons, run_end, touched_files
from ..arguments import flattened
from ..options import JsonOption
from ..output import print_json, printable, say_partial
from ..plan.options import FileOptions, say_of_trace, user_list_path

#: Globs are printed in lines of so many columns, never cut.
COLUMNS = 100
_INDENT: dict[str, Any] = {
    "initial_indent": "    ", "subsequent_indent": "    ", "break_long_words": False, "break_on_hyphens": False,
}  # fmt: skip
#: So many files that do not count are listed without --all.
LEFT_OUT_SHOWN = 15
#: What counts, where no glob tells.
COUNTS = "counts"


@flattened
def files(
    *,
    trace: Annotated[Path | None, typer.Argument(help="Collected trace.", metavar="[TRACE]")] = None,
    files: FileOptions,
    every: Annotated[bool, typer.Option("--all", help="List all files that do not count, not the 15 largest.")] = False,
    json: JsonOption = False,
) -> None:
    """List which files of a trace count, and why others do not.

    Plans and pages cover the files that count, most bytes first; patterns and replicate those outside stores, too.
    Without TRACE: print the rules. Change them for one command with --include and --exclude, for all in files.toml
    (docs/formats.md).
    """
    choice = files.choice()
    if trace is None:
        _print_list(choice, json)
        return
    touched, counted = touched_files(trace, choice)
    order = sorted(touched, key=lambda name: (-touched[name].bytes, name))
    known = dict.fromkeys(counted.files, COUNTS) | counted.left_out
    rows = [(touched[name].bytes, known[name], name) for name in order if name in known]
    if json:
        print_json([{"path": name, "bytes": count, "kind": kind} for count, kind, name in rows])
        return
    say_partial(str(trace), partial_reasons(trace))
    say_of_trace(str(trace), ended=run_end(trace).text)
    _print_rows([row for row in rows if row[1] == COUNTS])
    said = left_out_text(counted.numbers)
    typer.echo(f"{len(counted.files):,} file(s) count{f'; {said}' if said else ''}")
    others = [row for row in rows if row[1] != COUNTS]
    listed = others if every else others[:LEFT_OUT_SHOWN]
    _print_rows(listed)
    if len(listed) < len(others):
        typer.echo(f"and {len(others) - len(listed):,} more; --all lists them")


def _print_rows(rows: Sequence[tuple[int, str, str]]) -> None:
    width = max((len(kind) for _, kind, _ in rows), default=0)
    for count, kind, name in rows:
        typer.echo(f"{format_size(count):>10} moved  {kind:<{width}}  {printable(name)}")


def _print_list(choice: Choice, json: bool) -> None:
    path = user_list_path()
    rules = [(rule.glob, COUNTS if rule.counts else "left out") for rule in (*choice.rules, *choice.own)]
    if json:
        print_json(
            {
                "list": str(path),
                "least_bytes": choice.least_bytes,
                "large_bytes": LARGE_BYTES,
                "rules": [{"glob": glob, "counts": said == COUNTS} for glob, said in rules],
                "kinds": [{"kind": kind.name, "certain": kind.is_certain, "globs": list(kind.globs)} for kind in KINDS],
            }
        )
        return
    typer.echo(f"your own rules ({printable(str(path))}, and options):{'' if rules else ' none'}")
    for glob, said in rules:
        typer.echo(f"  {said:<8}  {printable(glob)}")
    typer.echo("counts: a file in a store; where the run used such files, no others")
    typer.echo("left out:")
    for kind in KINDS:
        unless = "" if kind.is_certain else (
            f", unless the run moved {format_size(LARGE_BYTES)} of it or wrote it below its working directory"
        )  # fmt: skip
        typer.echo(f"  {kind.name}{unless}:")
        typer.echo(textwrap.fill(" ".join(kind.globs), COLUMNS, **_INDENT))
    typer.echo(f"  {SMALL}: less than {format_size(choice.least_bytes)} read and written, unless all files are such")
    typer.echo(f"  {OUTSIDE}: files in no store, where the run used files of one")
