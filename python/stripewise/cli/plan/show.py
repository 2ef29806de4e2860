"""`stripewise show`: what a run did (`show_trace.py`), or where a plan has its regions in every window."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError
from ...importing.formats import import_trace
from ...layout import Stripes
from ...plan import read_plan
from ...plan.region_table import RegionMappingTable
from ...units import format_size
from ..options import FileOption, JsonOption
from ..output import print_json, stdout, table
from .show_trace import show_trace


def _show_plan(path: Path, json: bool) -> None:
    """The region mapping table of a plan."""
    plan = read_plan(path)
    mapping = RegionMappingTable(plan)
    if json:
        print_json(mapping.as_json())
        return
    title = f"{len(mapping):,} entries, {format_size(mapping.bytes)}; {mapping.windows} window(s)"
    made = table(title, "file", "region", "from window", "stripes")
    for key, stripes in mapping.rows():
        made.add_row(key.file, f"{key.region:,}", str(key.window), _stripes(stripes))
    stdout().print(made)


def _stripes(stripes: Stripes) -> str:
    """Targets with their width, those of one width together."""
    widths: dict[int, list[str]] = {}
    for name, width in stripes:
        widths.setdefault(width, []).append(name)
    return "; ".join(f"{format_size(width)} on {' '.join(names)}" for width, names in widths.items())


def show(
    trace: Annotated[
        Path,
        typer.Argument(help="A collected trace, a Darshan log (*.darshan), or a plan (*.json).", metavar="TRACE|PLAN"),
    ],
    file: FileOption = None,
    cluster: Annotated[
        Path | None, typer.Option("--cluster", help="cluster.toml whose devices price what is found.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say what a run did to its files, and what is wrong with it: causes, their evidence, price and cure.

    For a plan: the region mapping table.
    """
    if trace.suffix == ".json" and not trace.is_dir():
        if file:
            raise UsageError("--file: chooses files of a trace; a plan is shown whole")
        if cluster is not None:
            raise UsageError("--cluster: prices what is found in a trace; a plan has prices of its own")
        _show_plan(trace, json)
        return
    if trace.suffix == ".darshan" and trace.is_file():
        with tempfile.TemporaryDirectory(prefix="stripewise-show-") as place:
            import_trace("darshan", [trace], Path(place), False, None)
            show_trace(Path(place), file or [], json, cluster, trace)
        return
    show_trace(trace, file or [], json, cluster)
