"""A plan's windows and moves in a table, for people."""

from __future__ import annotations

import typer

from ...plan.migrations import DIRECTIONS
from ...plan.summary import PlanSummary
from ...units import format_size
from ..output import shown, stdout, table


def print_windows(plan: PlanSummary) -> None:
    """The windows of a plan that has several, for people."""
    if len(plan.windows) < 2:
        return
    made = table(
        "windows: requests, regions and share of requests on hybrid servers, cost in s; with / without migration",
        "window", "starts", "requests", "regions", "on hybrid %", "cost s", "out", "in", "restripe", "moved", "data %",
        "copies s",
    )  # fmt: skip
    for window in plan.windows:
        figures = window.figures
        made.add_row(
            str(window.number),
            f"{window.start_s:g} s",
            "-" if figures is None else f"{figures.requests:,}",
            "-" if figures is None else f"{figures.hybrid_regions:,}",
            "-" if figures is None else _both(100 * window.hybrid_share, 100 * window.hybrid_share_static, 1),
            "-" if figures is None else _both(figures.cost_s, figures.cost_static_s, 2),
            *(str(window.moves[direction]) for direction in DIRECTIONS),
            format_size(window.moved_bytes),
            shown(100 * window.moved_share, 1),
            shown(window.copy_cost_s, 2),
        )
    stdout().print(made)
    typer.echo(
        f"region mapping table: {plan.table_entries:,} entries, {format_size(plan.table_bytes)} at 128 bytes each"
    )
    if plan.migration_gain is not None:
        typer.echo(
            f"migration: {plan.migration_gain.requests_only:.2f} times cheaper than staying as in window 0 by the "
            f"request model, {plan.migration_gain.with_copies:.2f} times with the copies counted"
        )


def _both(here: float, static: float, digits: int) -> str:
    """With and without migration."""
    return f"{shown(here, digits)} / {shown(static, digits)}"
