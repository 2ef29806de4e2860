"""`stripewise show`: what is in a trace, file by file, or where a plan has its regions in every window."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ...errors import UsageError
from ...layout import Stripes
from ...plan import read_plan
from ...plan.region_table import RegionMappingTable
from ...units import format_size
from ...workload import FileRequests
from ...workload.trace import read_trace
from ..options import FileOption, JsonOption
from ..output import print_json, progress, shown, stdout, table


def _summary(file: FileRequests) -> dict[str, object]:
    requests = file.requests
    write = requests["write"]
    size = requests["size"]
    span_s = float(requests["end_ns"].max() - requests["start_ns"].min()) / 1e9
    return {
        "path": file.path,
        "size_bytes": file.size_bytes,
        "reads": int((~write).sum()),
        "writes": int(write.sum()),
        "read_bytes": int(size[~write].sum()),
        "written_bytes": int(size[write].sum()),
        "request_bytes_median": int(np.median(size)),
        "request_bytes_max": int(size.max()),
        "span_s": span_s,
    }


def _show_plan(path: Path, json: bool) -> None:
    """The region mapping table of a plan."""
    plan = read_plan(path)
    rmt = RegionMappingTable(plan)
    if json:
        entries = [
            {"file": key.file, "region": key.region, "window": key.window, "stripes": [list(each) for each in stripes]}
            for key, stripes in rmt.rows()
        ]
        print_json(
            {"application": rmt.application, "processes": rmt.processes, "windows": rmt.windows, "bytes": rmt.bytes,
             "entries": entries}
        )  # fmt: skip
        return
    title = f"{len(rmt):,} entries, {format_size(rmt.bytes)}; {rmt.windows} window(s)"
    made = table(title, "file", "region", "from window", "stripes")
    for key, stripes in rmt.rows():
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
    rows = [_summary(each) for each in workload.files]
    if json:
        print_json({"processes": workload.processes, "files": rows})
        return
    made = table(
        f"{workload.requests:,} requests of {workload.processes} process(es)",
        "file", "size", "reads", "writes", "read", "written", "median request", "seconds",
    )  # fmt: skip
    for row in rows:
        made.add_row(
            str(row["path"]),
            *(format_size(float(str(row["size_bytes"]))), f"{row['reads']:,}", f"{row['writes']:,}"),
            *(format_size(float(str(row[key]))) for key in ("read_bytes", "written_bytes", "request_bytes_median")),
            shown(float(str(row["span_s"])), 2),
        )
    stdout().print(made)
