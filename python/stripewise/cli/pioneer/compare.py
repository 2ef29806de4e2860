"""`stripewise compare`: how alike the traces of two runs are, an original and one that was made after it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError
from ...pioneer.comparison.compare import Compared, Comparison, RunTotals, compare_traces
from ...report.figure import check_plot_path
from ...units import format_size, seconds_text
from ...workload.trace import check_no_part
from ..arguments import flattened
from ..options import JsonOption
from ..output import print_json, printable, progress, say_partial, stdout, table, wrapped
from ..plan.options import FileOptions, say_of_trace

#: Operations in the table of counts; --json has all.
_ROWS_MAX = 20


@flattened
def compare(
    *,
    original: Annotated[Path, typer.Argument(help="Collected trace of the original run.", metavar="ORIGINAL")],
    synthetic: Annotated[Path, typer.Argument(help="Collected trace of the run to judge.", metavar="SYNTHETIC")],
    files: FileOptions,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Output file for a page (or .svg) with the curves of both runs."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare two runs over time: throughput, operations, bytes.

    Distances are Kolmogorov-Smirnov's, 0 (alike) to 1, of bins of a share of the original's duration.
    """
    if html is not None:
        _check_page(html, original, synthetic)
    choice = files.choice()
    with progress("comparing the traces"):
        compared = compare_traces(original, synthetic, choice)
    for run in (compared.original, compared.synthetic):
        say_of_trace(run.source, ended=run.end.text)
        say_partial(run.source, run.partial)
    if html is not None:
        # Loaded where it is used: that takes as long as the comparison.
        from ...pioneer.comparison.page import write_comparison_page

        write_comparison_page(compared, html)
    if json:
        print_json(compared.comparison.as_json())
        return
    _print(compared)
    if html is not None:
        typer.echo(f"{printable(str(html))}: {html.stat().st_size:,} bytes; open it in a browser")


def _check_page(html: Path, *traces: Path) -> None:
    check_plot_path(html, "--html")
    for trace in traces:
        check_no_part("--html", html, trace)
        if html.exists() and trace.exists() and html.samefile(trace):
            raise UsageError(f"--html: {html} is a trace to be compared, which this would replace; give another name")


def _print(compared: Compared) -> None:
    found = compared.comparison
    runs = table("", "run", "processes", "operations", "of data", "read", "written", "seconds")
    for name, run in (("original", found.original), ("synthetic", found.synthetic)):
        runs.add_row(name, *_totals(run))
    stdout().print(runs)
    typer.echo()
    made = table(
        "Kolmogorov-Smirnov distances over bins of time (without empty bins in brackets)",
        "bins of the original", "width", "throughput", "data operation ratio", "arrival rate",
    )  # fmt: skip
    for each in found.binned:
        pairs = [(getattr(each.distances, key), getattr(each.busy, key)) for key in ("throughput", "ratio", "arrival")]
        cells = [f"{whole:.3f} ({busy:.3f})" for whole, busy in pairs]
        made.add_row(str(each.parts), f"{seconds_text(each.width_s)} s", *cells)
    stdout().print(made)
    typer.echo()
    _print_counts(found)
    typer.echo(
        wrapped(
            f"largest gap of cumulative bytes: {found.gap:.3f} of the original's bytes by time, "
            f"{found.gap_normalised:.3f} by shares of each run's time and bytes"
        )
    )


def _totals(run: RunTotals) -> tuple[str, ...]:
    return (
        f"{run.processes:,}", f"{run.operations:,}", f"{run.data_operations:,}", format_size(run.bytes_read),
        format_size(run.bytes_written), seconds_text(run.duration_s),
    )  # fmt: skip


def _print_counts(found: Comparison) -> None:
    made = table("operations of a process", "operation", "original", "synthetic", "largest difference", "of rank")
    for each in found.counts[:_ROWS_MAX]:
        rank = "mean" if each.rank is None else str(each.rank)
        made.add_row(
            each.operation, f"{each.original:,.1f}", f"{each.synthetic:,.1f}", f"{each.difference:.1%}",
            rank if each.difference else "",
        )  # fmt: skip
    stdout().print(made)
    if (left := len(found.counts) - _ROWS_MAX) > 0:
        typer.echo(f"and {left:,} more operation(s); --json has all")
    typer.echo()
