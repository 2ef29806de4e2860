"""`stripewise swd map`: what the tracks of a shingled disk hold after a workload, as numbers and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError
from ...report.figure import check_plot_path
from ...swd.simulate import Setup, map_disk, parse_fill, parse_schemes
from ..options import JsonOption
from ..output import print_json, progress, stdout, table
from .options import (
    AREA,
    ActionOption,
    BeyondOption,
    DeviceOption,
    DiskOption,
    ERegionOption,
    FilledOption,
    FormatOption,
    LbaFactorOption,
    RandomAccessOption,
    RequestsOption,
    SchemeOption,
    SeedOption,
    TraceOption,
    UsedOption,
    WorkloadOption,
    chosen_disk,
    chosen_fill,
    chosen_workload,
)


def map_(
    trace: TraceOption = None,
    workload: WorkloadOption = None,
    disk: DiskOption = "generic",
    scheme: SchemeOption = "R(4123),tstl-smart",
    used: UsedOption = "25%,50%,75%",
    filled: FilledOption = None,
    random_access: RandomAccessOption = AREA,
    e_region: ERegionOption = AREA,
    format: FormatOption = None,
    device: DeviceOption = None,
    action: ActionOption = "Q",
    requests: RequestsOption = None,
    lba_factor: LbaFactorOption = 1,
    beyond: BeyondOption = "fold",
    seed: SeedOption = 0,
    first: Annotated[int, typer.Option("--first", min=0, help="First track that is shown.")] = 0,
    tracks: Annotated[
        int | None, typer.Option("--tracks", min=1, help="How many are shown (default: to the last).")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the maps: out.svg or out.html.")] = None,
    json: JsonOption = False,
) -> None:  # fmt: skip
    """Map the tracks of a shingled disk after a workload: used, hot, free, and free but not to be written."""
    requested = chosen_workload(trace, workload, format, device, action, requests, 1.0, beyond, seed, lba_factor)
    if plot is not None:
        check_plot_path(plot)
    schemes, fills = parse_schemes(scheme), [parse_fill(text) for text in used.split(",")]
    drive, zone_bytes, region_bytes = chosen_disk(disk, random_access, e_region)
    setup = Setup(drive, zone_bytes, region_bytes, chosen_fill(filled, requested))
    from ...swd.plot import STATES, Row, plot_maps, track_counts

    rows = []
    for each in schemes:
        for fill in fills:
            with progress(f"mapping {each.label}, {fill.label} used") as step:
                report = map_disk(setup, each, fill, requested, step)
            if first >= report["tracks"]:
                raise UsageError(f"--first: {first} is beyond the {report['tracks']} tracks of {each.label}")
            rows.append(Row(each.label, fill.label, report))
    title = f"tracks after {requested.name} on {drive.name}, simulated"
    if plot is not None:
        plot_maps(rows, plot, title, first, tracks)
    if json:
        listed = [{"label": row.scheme, "used": row.used, **row.report} for row in rows]
        print_json({"simulated": True, "workload": requested.name, "disk": drive.source, "maps": listed})
        return
    made = table(title, "scheme", "space in use", *STATES)
    for row in rows:
        counts = track_counts(row.report, first, tracks)
        made.add_row(row.scheme, row.used, *(f"{counts[state]:,}" for state in STATES))
    stdout().print(made)
    if plot is not None:
        typer.echo(f"{plot}: written")
