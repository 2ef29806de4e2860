"""`stripewise show`: what is in a trace, file by file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ..units import format_size
from ..workload import FileRequests
from ..workload.trace import read_trace
from .options import FileOption, JsonOption
from .output import print_json, progress, shown, stdout, table


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


def show(
    trace: Annotated[Path, typer.Argument(help="A collected trace.", metavar="TRACE")],
    file: FileOption = None,
    json: JsonOption = False,
) -> None:
    """Summarise a collected trace: requests and bytes per file."""
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
