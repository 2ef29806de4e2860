"""`stripewise swd simulate`: response times and write amplification of schemes on one drive, beside each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError
from ...report.figure import check_plot_path
from ...swd.results import Row
from ...swd.simulate import CACHES, QUEUES, Setup, simulate_disk
from ..arguments import flattened
from ..options import JsonOption
from ..output import print_json, progress, say, shown, stdout, table
from .options import DriveOptions, FoldOptions, SourceOptions, TakenOptions, chosen_workload

_COLUMNS = ("scheme", "used", "mean ms", "p99 ms", "read ms", "write ms", "own", "ampl.", "coll.", "wait", "WAR", "GC",
            "busy %")  # fmt: skip


#: uniform and zipf ask every 5 ms, and one disk serves such a request in 8 to 11 ms.
KEEPS_UP = 4.0


def default_stretch(workload: str | None) -> float:
    """The factor of arrival times with which a drive keeps up at 50 % used; 1 for whatever has a rate of its own."""
    kind, _, settings = (workload or "").partition(",")
    return KEEPS_UP if kind in ("uniform", "zipf") and "arrivals=" not in settings else 1.0


def _ms(value: float | None) -> str:
    """Milliseconds with as many digits as tell something."""
    return shown(value, 0 if value is not None and value >= 1000 else 2)


def _cells(row: Row) -> list[str]:
    report = row.report
    return [
        row.scheme,
        row.used,
        _ms(row.mean_ms()),
        _ms(row.p99_ms),
        _ms(row.mean_ms("read_response_s")),
        _ms(row.mean_ms("write_response_s")),
        *(_ms(row.write_part_ms(part)) for part in ("own", "amplification", "collection", "waiting")),
        shown(report["amplification"], 2),
        f"{report['counters']['collections']:,}",
        shown(100 * report["utilisation"], 1),
    ]


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """How the disk serves requests, and what it does when it is idle."""

    queue: Annotated[str, typer.Option("--queue", metavar="ORDER", help=f"Order of service: {', '.join(QUEUES)}.")] = (
        "fcfs"
    )
    queue_depth: Annotated[
        int | None,
        typer.Option("--queue-depth", metavar="N", min=1, help="Queue depth of the disk (default: unlimited)."),
    ] = None
    cache: Annotated[
        str,
        typer.Option(
            "--cache", metavar="CACHE", help=f"Disk cache: {', '.join(CACHES)} (writes: complete once cached)."
        ),
    ] = "off"
    closed: Annotated[
        bool, typer.Option("--closed", help="Send each request when the previous one is done, not at its arrival time.")
    ] = False
    background_after: Annotated[
        float | None,
        typer.Option(
            "--background-after",
            metavar="MS",
            min=0,
            help="Idle ms before background garbage collection (default: none).",
        ),
    ] = None
    background_budget: Annotated[
        float | None,
        typer.Option(
            "--background-budget",
            metavar="MS",
            min=0,
            help="Maximum ms of each background collection (default: unlimited).",
        ),
    ] = None
    stall_bound: Annotated[
        float,
        typer.Option("--stall-bound", metavar="MS", min=0, help="Wait in ms from which a request counts as stalled."),
    ] = 1000.0

    def check(self) -> None:
        """UsageError for what does not fit."""
        for flag, value, known in (("--queue", self.queue, QUEUES), ("--cache", self.cache, tuple(CACHES))):
            if value not in known:
                raise UsageError(f"{flag}: '{value}' is not known; give one of {', '.join(known)}")
        if self.background_budget is not None and self.background_after is None:
            raise UsageError("--background-budget: applies to an idle disk; give --background-after too")

    def on(self, setup: Setup) -> Setup:
        """The setup with a disk that serves so."""
        return replace(
            setup,
            queue=self.queue,
            queue_depth=self.queue_depth,
            cache=self.cache,
            closed=self.closed,
            background_after_ms=self.background_after,
            background_budget_ms=self.background_budget,
            stall_bound_ms=self.stall_bound,
        )


@flattened
def simulate(
    *,
    source: SourceOptions,
    drive: DriveOptions,
    taken: TakenOptions,
    stretch: Annotated[
        float | None,
        typer.Option(
            "--stretch",
            metavar="FACTOR",
            min=0,
            help=f"Factor of all arrival times (default: 1; {KEEPS_UP:g} for uniform and zipf without arrivals of "
            "their own, so that the drive keeps up).",
        ),
    ] = None,
    folded: FoldOptions,
    service: ServiceOptions,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Plot of the result: out.svg or out.html.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Simulate block requests on a shingled disk, and compare schemes."""
    factor = default_stretch(source.workload) if stretch is None else stretch
    requested = chosen_workload(source.trace, source.workload, taken, folded, factor)
    service.check()
    if plot is not None:
        check_plot_path(plot)
    schemes, fills = drive.schemes, drive.fills
    setup = service.on(drive.setup(requested))
    from ...swd.plot import plot_runs

    rows = []
    for fill in fills:
        for each in schemes:
            with progress(f"simulating {each.label}, {fill.label} used") as step:
                rows.append(Row(each.label, fill.label, simulate_disk(setup, each, fill, requested, step)))
    title = f"simulated: {requested.name} on {setup.disk.name}"
    if not service.closed and (slow := [row for row in rows if row.is_saturated]):
        named = [row.scheme if len(fills) == 1 else f"{row.scheme} at {row.used}" for row in slow]
        whose = "" if len(slow) == len(rows) else f" by {', '.join(named)}"
        say(
            f"stripewise: requests come faster than they are served{whose}: response times grow with --requests; see "
            f"--stretch"
        )
    if plot is not None:
        plot_runs(rows, plot, title)
    if json:
        listed = [row.as_json() for row in rows]
        print_json({"simulated": True, "workload": requested.name, "disk": setup.disk.source, "rows": listed})
        return
    made = table(f"{title}; own to wait: parts of write ms", *_COLUMNS, keys=2)
    for row in rows:
        made.add_row(*_cells(row))
    stdout().print(made)
    if plot is not None:
        typer.echo(f"{plot}: written")
