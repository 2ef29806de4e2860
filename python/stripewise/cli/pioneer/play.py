"""`stripewise play`: a workload path with real calls, as fast or as slow as it was."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import UsageError
from ...pioneer.play import Asked, processes_of
from ...pioneer.play import play as play_path
from ...run import runner
from ...run.collect import trace_directory
from ...store import Store
from ...store.config import PROCESSES_MAX
from ...units import format_size, quoted
from ..arguments import flattened
from ..options import JsonOption
from ..output import print_json, printable, say


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How slack is kept."""

    speed: Annotated[
        float, typer.Option("--speed", metavar="FACTOR", help="Divide the slack between requests by this.")
    ] = 1.0
    fast: Annotated[
        bool, typer.Option("--as-fast-as-possible", help="Leave out all slack; ranks still wait for each other.")
    ] = False

    def check(self) -> None:
        """Raises UsageError."""
        if not (math.isfinite(self.speed) and 0 < self.speed < 1e9):
            raise UsageError(f"--speed: {self.speed} is no positive number")
        if self.fast and self.speed != 1.0:
            raise UsageError("--speed: --as-fast-as-possible leaves no slack to divide; give one of both")


@dataclass(frozen=True, kw_only=True)
class Under:
    """What the run is made under."""

    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="DIR", help="New directory for a trace of every I/O call.")
    ] = None
    store: Annotated[
        Path | None, typer.Option("--store", metavar="STORE", help="Store whose files the path is played on.")
    ] = None


@flattened
def play(
    *,
    path: Annotated[Path, typer.Argument(help="Path written by 'synth'.", metavar="PATH")],
    processes: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--processes",
            metavar="N",
            min=1,
            max=PROCESSES_MAX,
            help="Number of processes (default: the path's own, else 1).",
        ),
    ] = None,
    directory: Annotated[
        Path, typer.Option("--directory", metavar="DIR", help="Directory for the files (default: this one).")
    ] = Path(),
    pace: Pace,
    replace: Annotated[bool, typer.Option("--replace", help="Remove files of the path's names first.")] = False,
    under: Under,
    json: JsonOption = False,
) -> None:
    """Play a workload path by real MPI-IO and POSIX calls.

    Contents are a function of file and offset, and what is read is compared. Ends with status 1 where bytes are wrong.
    """
    pace.check()
    if not directory.is_dir():
        raise UsageError(f"--directory: {directory} is no directory; make it first")
    opened = None if under.store is None else Store(under.store)
    asked = Asked(
        path=path,
        directory=directory,
        processes=processes,
        speed=pace.speed,
        is_fast=pace.fast,
        replace=replace,
        store=None if opened is None else opened.root,
    )
    processes_of(asked)
    if under.trace is not None:
        asked = Asked(**{**vars(asked), "trace": trace_directory(under.trace)})
    try:
        played = play_path(asked)
    except runner.NotStartedError as error:
        say(f"stripewise: {printable(str(error))}")
        raise typer.Exit(error.status) from error
    if played.why:
        say(f"stripewise: {played.why}")
    if json and played.said:
        print_json(dict(played.said))
    elif played.said:
        _print(played.said)
    if asked.trace is not None and not played.status:
        say(f"stripewise: trace written to {asked.trace}; next: stripewise collect {quoted(asked.trace)}")
    if played.status:
        raise typer.Exit(played.status)


def _print(said: Mapping[str, Any]) -> None:
    typer.echo(
        f"{said['requests']:,} requests by {said['processes']} process(es) in {said['seconds']:.3f} s: "
        f"{format_size(said['bytes_written'])} written, {format_size(said['bytes_read'])} read"
    )
    typer.echo(
        f"contents: {format_size(said['verified_bytes'])} as written, {said['wrong_bytes']:,} bytes wrong, "
        f"{format_size(said['unwritten_bytes'])} that nobody wrote, {format_size(said['short_bytes'])} beyond the end"
    )
    if said["slacks"]:
        late = said["slack_error_us"]
        typer.echo(
            f"slack: {said['slacks']:,} times, late by {late['median']:.1f} us (median), {late['p99']:.1f} us (99 %)"
        )
    if said["refused"]:
        typer.echo(f"refused: {said['refused']:,} operations on names, such as a stat of what is not there")
