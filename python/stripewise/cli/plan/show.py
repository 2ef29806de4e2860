"""`stripewise show`: what is in a trace, file by file, or where a plan has its regions in every window."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError
from ...layout import Stripes
from ...plan import read_plan
from ...plan.region_table import RegionMappingTable
from ...units import format_size
from ...workload.summary import summary_of
from ...workload.trace import read_trace
from ..options import FileOption, JsonOption
from ..output import print_json, progress, say_partial, shown, stdout, table


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
    trace: Annotated[Path, typer.Argument(help="A collected trace, or a plan (*.json).", metavar="TRACE|PLAN")],
    file: FileOption = None,
    json: JsonOption = False,
) -> None:
    """Summarise a collected trace: requests and bytes per file. For a plan: the region mapping table."""
    if trace.suffix == ".json" and not trace.is_dir():
        if file:
            raise UsageError("--file: chooses files of a trace; a plan is shown whole")
        _show_plan(trace, json)
        return
    with progress("reading the trace") as step:
        workload = read_trace(trace, file or [], step)
    say_partial(workload.source, workload.partial)
    rows = [summary_of(each) for each in workload.files]
    if json:
        print_json(
            {"processes": workload.processes, "files": [asdict(row) for row in rows], "partial": list(workload.partial)}
        )
        return
    made = table(
        f"{workload.requests:,} requests of {workload.processes} process(es)",
        "file", "size", "reads", "writes", "read", "written", "median request", "seconds",
    )  # fmt: skip
    for row in rows:
        made.add_row(
            row.path,
            *(format_size(row.size_bytes), f"{row.reads:,}", f"{row.writes:,}"),
            *(format_size(count) for count in (row.read_bytes, row.written_bytes, row.request_bytes_median)),
            shown(row.span_s, 2),
        )
    stdout().print(made)
