"""`stripewise swd map`: what the tracks of a shingled disk hold after a workload, as numbers and as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError
from ...report.figure import check_plot_path
from ...swd.results import Row
from ...swd.simulate import map_disk
from ..arguments import flattened
from ..options import JsonOption
from ..output import print_json, progress, screen_width, stdout, table
from .options import (
    DriveOptions,
    FoldOptions,
    SchemeOption,
    SourceOptions,
    TakenOptions,
    UsedOption,
    chosen_workload,
)


@dataclass(frozen=True, kw_only=True)
class MapDriveOptions(DriveOptions):
    """The same with the schemes and fills whose maps tell most."""

    scheme: SchemeOption = "R(4123),tstl-smart"
    used: UsedOption = "25%,50%,75%"


@flattened
def map_(
    *,
    source: SourceOptions,
    drive: MapDriveOptions,
    taken: TakenOptions,
    folded: FoldOptions,
    first: Annotated[int, typer.Option("--first", metavar="N", min=0, help="First track shown.")] = 0,
    tracks: Annotated[
        int | None, typer.Option("--tracks", metavar="N", min=1, help="Number of tracks shown (default: to the last).")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Plot of the maps: out.svg or out.html.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Map the tracks of a shingled disk after a workload.

    Tracks are used, hot, free, or free but not writable.
    """
    requested = chosen_workload(source.trace, source.workload, taken, folded)
    if plot is not None:
        check_plot_path(plot)
    schemes, fills = drive.schemes, drive.fills
    setup = drive.setup(requested)
    from ...swd.characters import LEGEND, drawn
    from ...swd.plot import STATES, plot_maps, track_counts

    rows = []
    for each in schemes:
        for fill in fills:
            with progress(f"mapping {each.label}, {fill.label} used") as step:
                report = map_disk(setup, each, fill, requested, step)
            if first >= report["tracks"]:
                raise UsageError(f"--first: {first} is beyond the {report['tracks']} tracks of {each.label}")
            rows.append(Row(each.label, fill.label, report))
    title = f"tracks after {requested.name} on {setup.disk.name}, simulated"
    if plot is not None:
        plot_maps(rows, plot, title, first, tracks)
    if json:
        listed = [row.as_json() for row in rows]
        print_json({"simulated": True, "workload": requested.name, "disk": setup.disk.source, "maps": listed})
        return
    made = table(title, "scheme", "space in use", *STATES, keys=2)
    for row in rows:
        counts = track_counts(row.report, first, tracks)
        made.add_row(row.scheme, row.used, *(f"{counts[state]:,}" for state in STATES))
    stdout().print(made)
    for row in rows:
        scale, *lines = drawn(row.report, first, tracks, screen_width())
        typer.echo(f"{row.scheme}, {row.used} of the space in use, {scale}:")
        for line in lines:
            typer.echo(line)
    for character, meaning in LEGEND.items():
        typer.echo(f"{character:<6}  {meaning}")
    if plot is not None:
        typer.echo(f"{plot}: written")
