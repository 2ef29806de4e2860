"""`stripewise show`: what a run did (`show_trace.py`), or where a plan has its regions in every window."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import UsageError
from ...importing.formats import import_trace
from ...plan import Plan, read_plan
from ...plan.region_table import RegionMappingTable
from ...plan.summary import summary_of, windows_text
from ...policy.toolkit.build import joined_reason
from ...units import format_size
from ..arguments import flattened
from ..options import JsonOption
from ..output import print_json, printable, repeated, repeated_text, stdout, stripes_text, table, turned, wrapped
from .expected import all_lines
from .options import FileOptions
from .pictures import check_pictures, write_pictures
from .show_trace import Page, show_trace
from .with_copies import copies_lines


def _show_plan(path: Path, json: bool) -> None:
    """What a plan is expected to gain, and its region mapping table."""
    plan = read_plan(path)
    mapping = RegionMappingTable(plan)
    if json:
        print_json(mapping.as_json())
        return
    if plan.replicas is not None:
        for line in copies_lines(plan.replicas):
            typer.echo(line)
        typer.echo("of the layouts alone:")
    for line in all_lines(plan.expected):
        typer.echo(line)
    typer.echo()
    if said := windows_text(summary_of(plan)):
        typer.echo(wrapped(said))
    title = f"region mapping table: {len(mapping):,} entries (each region, and each of its moves), "
    title += f"{format_size(mapping.bytes)}; {mapping.windows} window(s)"
    made = table(title, "file", "region", "from", "from window", "stripes", "reason")
    for cells in _table_rows(plan, mapping):
        made.add_row(*cells)
    stdout().print(made)


def _table_rows(plan: Plan, mapping: RegionMappingTable) -> Iterator[tuple[str, ...]]:
    """The entries of the table with their reasons; those of regions that never move and lie as others did before them,
    again and again, in one row.
    """
    regions = {file.path: file.regions for file in plan.files}
    moved = {(move.file, move.start, each.window): move.reason for each in plan.migrations for move in each.moves}
    moving = {(file, start) for file, start, _ in moved}
    entries = list(mapping.rows())
    keys: list[Any] = []
    for number, (key, stripes) in enumerate(entries):
        region = regions[key.file][key.region]
        stays = (key.file, region.start) not in moving
        keys.append((key.file, region.len, turned(stripes)) if stays else number)
    for first, period, times in repeated(keys):
        of = [regions[key.file][key.region] for key, _ in entries[first : first + period * times]]
        key, stripes = entries[first]
        if times == 1:
            reason = moved.get((key.file, of[0].start, key.window), of[0].reason)
            where, text = f"{key.region:,}", stripes_text(stripes, of[0].len)
        else:
            reason = joined_reason([region.reason for region in of])
            where = f"{key.region:,} to {key.region + len(of) - 1:,}"
            text = repeated_text(times, [[each.region for each in of[at::period]] for at in range(period)])
        yield key.file, where, f"{of[0].start:,}", str(key.window), text, printable(reason)


@flattened
def show(
    *,
    trace: Annotated[
        Path,
        typer.Argument(help="Collected trace, Darshan log (*.darshan) or plan (*.json).", metavar="TRACE|PLAN"),
    ],
    files: FileOptions,
    cluster: Annotated[
        Path | None,
        typer.Option("--cluster", metavar="CLUSTER", help="cluster.toml with the devices to price findings on."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Output file for a self-contained HTML page with charts."),
    ] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(
            "--perfetto", metavar="FILE", help="Output file for a timeline of all requests, for ui.perfetto.dev."
        ),
    ] = None,
    beside: Annotated[
        Path | None,
        typer.Option(
            "--beside", metavar="TRACE", help="Second trace, drawn side by side on the same scales (with --html)."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show the I/O of a run, and its I/O problems with cures.

    For a plan: what it is expected to gain, and the region mapping table.
    """
    if trace.suffix == ".json" and not trace.is_dir():
        if files.flags:
            raise UsageError(f"{files.flags[0]}: chooses files of a trace; a plan is shown whole")
        if cluster is not None:
            raise UsageError("--cluster: prices findings of a trace; a plan has prices of its own")
        if html is not None or perfetto is not None or beside is not None:
            raise UsageError("--html, --perfetto and --beside: need a trace; give the directory that 'collect' wrote")
        _show_plan(trace, json)
        return
    if beside is not None and html is None:
        raise UsageError("--beside: puts two runs on one page; give --html FILE too")
    choice = files.choice()
    check_pictures([each for each in (trace, beside) if each is not None], html, perfetto)
    with ExitStack() as held:
        pages = [
            Page(held.enter_context(_as_trace(each)), choice, cluster, each)
            for each in (trace, beside)
            if each is not None
        ]
        if html is None and perfetto is None:
            show_trace(pages[0], json)
        else:
            write_pictures(pages, html, perfetto)


@contextmanager
def _as_trace(shown: Path) -> Iterator[Path]:
    """A collected trace, or one that is made of a Darshan log for as long as the body runs."""
    if shown.suffix != ".darshan" or not shown.is_file():
        yield shown
        return
    with tempfile.TemporaryDirectory(prefix="stripewise-show-") as place:
        import_trace("darshan", [shown], Path(place), False, None)
        yield Path(place)
