"""`stripewise swd simulate`: response times and write amplification of schemes on one drive, beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import UsageError
from ...report.figure import check_plot_path
from ...swd.simulate import CACHES, QUEUES, Setup, parse_fill, parse_schemes, simulate_disk
from ..options import JsonOption
from ..output import print_json, progress, say, shown, stdout, table
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
    StretchOption,
    TraceOption,
    UsedOption,
    WorkloadOption,
    chosen_disk,
    chosen_fill,
    chosen_workload,
)

_COLUMNS = ("scheme", "used", "mean ms", "p99 ms", "read ms", "write ms", "own", "ampl.", "coll.", "wait", "WAR", "GC",
            "busy %")  # fmt: skip


#: Busier than this, requests wait for those before them without an end.
SATURATED = 0.98


def _ms(value: float | None) -> str:
    """Milliseconds with as many digits as tell something."""
    return shown(value, 0 if value is not None and value >= 1000 else 2)


def _cells(label: str, used: str, report: dict[str, Any]) -> list[str]:
    from ...swd.plot import mean_ms, write_part_ms

    response = report["response_s"]
    writes = [write_part_ms(report, part) for part in ("own", "amplification", "collection", "waiting")]
    return [
        label,
        used,
        _ms(mean_ms(report)),
        _ms(None if response is None else 1e3 * response["p99"]),
        _ms(mean_ms(report, "read_response_s")),
        _ms(mean_ms(report, "write_response_s")),
        *(_ms(part if report["writes"] else None) for part in writes),
        shown(report["amplification"], 2),
        f"{report['counters']['collections']:,}",
        shown(100 * report["utilisation"], 1),
    ]


def simulate(
    trace: TraceOption = None,
    workload: WorkloadOption = None,
    disk: DiskOption = "generic",
    scheme: SchemeOption = "hdd,R(4123),tstl-smart",
    used: UsedOption = "50%",
    filled: FilledOption = None,
    random_access: RandomAccessOption = AREA,
    e_region: ERegionOption = AREA,
    format: FormatOption = None,
    device: DeviceOption = None,
    action: ActionOption = "Q",
    requests: RequestsOption = None,
    stretch: StretchOption = 1.0,
    lba_factor: LbaFactorOption = 1,
    beyond: BeyondOption = "fold",
    seed: SeedOption = 0,
    queue: Annotated[str, typer.Option("--queue", help=f"Order of service: {', '.join(QUEUES)}.")] = "fcfs",
    queue_depth: Annotated[
        int | None, typer.Option("--queue-depth", min=1, help="Requests that the disk holds at once (default: all).")
    ] = None,
    cache: Annotated[
        str, typer.Option("--cache", help=f"The disk's memory: {', '.join(CACHES)} (writes: done when in memory).")
    ] = "off",
    closed: Annotated[
        bool, typer.Option("--closed", help="Send each request when the one before is done, not at its time.")
    ] = False,
    background_after: Annotated[
        float | None,
        typer.Option("--background-after", min=0, help="An idle disk collects after so many ms (default: never)."),
    ] = None,
    background_budget: Annotated[
        float | None, typer.Option("--background-budget", min=0, help="For so many ms each time (default: no end).")
    ] = None,
    stall_bound: Annotated[
        float, typer.Option("--stall-bound", min=0, help="A request that waits so many ms counts as stalled.")
    ] = 1000.0,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the result: out.svg or out.html.")] = None,
    json: JsonOption = False,
) -> None:  # fmt: skip
    """Simulate block requests on a drive under shingled schemes, and compare them."""
    requested = chosen_workload(trace, workload, format, device, action, requests, stretch, beyond, seed, lba_factor)
    for flag, value, known in (("--queue", queue, QUEUES), ("--cache", cache, tuple(CACHES))):
        if value not in known:
            raise UsageError(f"{flag}: '{value}' is not known; give one of {', '.join(known)}")
    if background_budget is not None and background_after is None:
        raise UsageError("--background-budget: is about work of an idle disk; give --background-after too")
    if plot is not None:
        check_plot_path(plot)
    schemes, fills = parse_schemes(scheme), [parse_fill(text) for text in used.split(",")]
    drive, zone_bytes, region_bytes = chosen_disk(disk, random_access, e_region)
    setup = Setup(
        drive, zone_bytes, region_bytes, chosen_fill(filled, requested), queue, queue_depth, cache, closed,
        background_after, background_budget, stall_bound,
    )  # fmt: skip
    from ...swd.plot import Row, plot_runs

    rows = []
    for fill in fills:
        for each in schemes:
            with progress(f"simulating {each.label}, {fill.label} used") as step:
                rows.append(Row(each.label, fill.label, simulate_disk(setup, each, fill, requested, step)))
    title = f"simulated: {requested.name} on {drive.name}"
    if not closed and any(row.report["utilisation"] > SATURATED for row in rows):
        say("stripewise: requests come faster than they are served: response times grow with --requests; see --stretch")
    if plot is not None:
        plot_runs(rows, plot, title)
    if json:
        listed = [{"label": row.scheme, "used": row.used, **row.report} for row in rows]
        print_json({"simulated": True, "workload": requested.name, "disk": drive.source, "rows": listed})
        return
    made = table(f"{title}; own to wait: parts of write ms", *_COLUMNS)
    for row in rows:
        made.add_row(*_cells(row.scheme, row.used, dict(row.report)))
    stdout().print(made)
    if plot is not None:
        typer.echo(f"{plot}: written")
