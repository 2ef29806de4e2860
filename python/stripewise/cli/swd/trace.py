"""`stripewise swd trace`: what is in a block trace or a generated workload, and the same as a trace file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import UsageError
from ...files.parts import check_output
from ...report.figure import check_plot_path
from ...swd.simulate import BLOCK_BYTES
from ...swd.statistics import EXPORTS, NEAR_BLOCKS, TRACK_BLOCKS, export, plot_locality, share_below, statistics
from ...swd.workload import BlockWorkload
from ...units import parse_size
from ..arguments import flattened
from ..options import JsonOption
from ..output import print_json, progress, shown, stdout, table
from .options import FoldOptions, StretchOption, TakenOptions, WorkloadOption, chosen_workload

#: Stack distances are shown below this many tracks.
RECENT_TRACKS = 1024


def _print(name: str, format: str | None, summary: Mapping[str, Any]) -> None:
    writes, stacks = summary["write_distances"], summary["stack_distances"]
    recent = share_below(stacks["steps"], RECENT_TRACKS)
    rows = [
        ("requests", f"{summary['requests']:,}"),
        ("write share", shown(summary["write_share"], 4)),
        ("duration, s", shown(summary["duration_s"], 3)),
        ("mean inter-arrival time, ms", shown(summary["interarrival_ms"], 4)),
        ("its deviation over its mean", shown(summary["interarrival_variation"], 2)),
        ("mean distance, blocks", shown(summary["distance_blocks"], 1)),
        ("highest block", f"{summary['lba_max']:,}"),
        ("mean size, blocks", shown(summary["request_blocks"], 2)),
        ("largest size, blocks", f"{summary['request_blocks_max']:,}"),
        (f"writes within {writes['near_blocks']:,} blocks of the one before", shown(writes["near_share"], 4)),
        (f"tracks of {stacks['track_blocks']:,} blocks updated", f"{stacks['tracks']:,}"),
        (f"repeated updates with fewer than {RECENT_TRACKS:,} other tracks between", shown(recent, 4)),
    ]
    # Not as the table's title, which would break a long path.
    typer.echo(f"{name}{f' ({format})' if format else ''}")
    made = table("", "of the requests", "")
    for label, value in rows:
        made.add_row(label, value)
    stdout().print(made)


def _export(workload: BlockWorkload, path: Path, format: str, space_blocks: int | None) -> None:
    with progress(f"writing {path.name}") as step:
        written = export(workload, path, format, space_blocks, step)
    typer.echo(f"{path}: {written:,} requests written as {format}")


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What is told of the requests, or written instead."""

    track_blocks: Annotated[
        int, typer.Option("--track-blocks", metavar="N", min=1, help="Blocks per track, for stack distances.")
    ] = TRACK_BLOCKS
    near_blocks: Annotated[
        int, typer.Option("--near-blocks", metavar="N", min=0, help="Maximum distance in blocks of near writes.")
    ] = NEAR_BLOCKS
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Output file for the requests, in place of statistics."),
    ] = None
    export_format: Annotated[
        str, typer.Option("--export-format", metavar="FORMAT", help=f"Format of --export: {', '.join(EXPORTS)}.")
    ] = "disksim"
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Plot of write locality: out.svg or out.html.")
    ] = None
    json: JsonOption = False


@flattened
def trace(
    *,
    file: Annotated[Path | None, typer.Argument(help="Block trace.", metavar="[TRACE]")] = None,
    workload: WorkloadOption = None,
    taken: TakenOptions,
    stretch: StretchOption = 1.0,
    space: Annotated[
        str | None,
        typer.Option("--space", metavar="SIZE", help="Size of the space to fold requests into first, e.g. 60GB."),
    ] = None,
    folded: FoldOptions,
    report: ReportOptions,
) -> None:
    """Show statistics of a block trace or workload, or export it."""
    chosen = chosen_workload(file, workload, taken, folded, stretch)
    space_blocks = None if space is None else parse_size(space, "--space") // BLOCK_BYTES
    if chosen.needs_space and space_blocks is None:
        raise UsageError(f"--space: {chosen.name} needs a space to go to; give its size, e.g. 60GB")
    if report.export is not None:
        check_output(report.export, "--export")
        _export(chosen, report.export, report.export_format, space_blocks)
        return
    if report.plot is not None:
        check_plot_path(report.plot)
    with progress(f"reading {chosen.name}") as step:
        found = statistics(chosen, space_blocks, report.track_blocks, report.near_blocks, step)
    if report.plot is not None:
        plot_locality({Path(chosen.name).name: found["summary"]}, report.plot)
    if report.json:
        print_json(
            {
                "workload": chosen.name,
                "generated": chosen.is_generated,
                "format": found["format"],
                **found["summary"],
            }
        )
        return
    _print(chosen.name, found["format"], found["summary"])
    if report.plot is not None:
        typer.echo(f"{report.plot}: written")
