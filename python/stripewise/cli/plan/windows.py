"""A plan's windows and moves in figures, for people and for programs."""

from __future__ import annotations

from collections import Counter

import typer

from ...plan import Plan
from ...plan.migrations import DIRECTIONS
from ...plan.region_table import RegionMappingTable
from ...units import format_size
from ..output import shown, stdout, table


def share(part: float, whole: float) -> float:
    """`part` of `whole`; 0 where there is nothing."""
    return part / whole if whole > 0 else 0.0


def windows_json(plan: Plan) -> list[dict[str, object]]:
    """One object per window: its figures with and without the moves, and the moves at its beginning."""
    size = sum(file.size for file in plan.files)
    by_window = {migration.window: migration for migration in plan.migrations}
    rows: list[dict[str, object]] = []
    for number, window in enumerate(plan.windows):
        migration = by_window.get(number)
        moves = migration.moves if migration else ()
        directions = Counter(move.direction for move in moves)
        row: dict[str, object] = {
            "window": number,
            "start_s": (window.start_ns - plan.windows[0].start_ns) / 1e9,
            **{f"moves_{direction}": directions[direction] for direction in DIRECTIONS},
            "moved_bytes": migration.moved_bytes if migration else 0,
            "moved_share": share(migration.moved_bytes if migration else 0, size),
            "copy_cost_s": sum(move.cost_s for move in moves),
        }
        if window.figures is not None:
            figures = window.figures
            row |= {
                "requests": figures.requests,
                "hybrid_regions": figures.hybrid_regions,
                "hybrid_share": share(figures.hybrid_requests, figures.requests),
                "hybrid_share_static": share(figures.hybrid_requests_static, figures.requests),
                "cost_s": figures.cost_s,
                "cost_static_s": figures.cost_static_s,
            }
        rows.append(row)
    return rows


def rmt_json(plan: Plan) -> dict[str, int]:
    """The size of the region mapping table."""
    rmt = RegionMappingTable(plan)
    return {"entries": len(rmt), "bytes": rmt.bytes}


def print_windows(plan: Plan) -> None:
    """The windows of a plan that has several, for people."""
    if len(plan.windows) < 2:
        return
    made = table(
        "windows: requests, regions and share of requests on hybrid servers, cost in s; with / without migration",
        "window", "starts", "requests", "regions", "on hybrid %", "cost s", "out", "in", "restripe", "moved", "data %",
        "copies s",
    )  # fmt: skip
    for number, row in enumerate(windows_json(plan)):
        figures = plan.windows[number].figures
        made.add_row(
            str(number),
            f"{float(str(row['start_s'])):g} s",
            "-" if figures is None else f"{figures.requests:,}",
            "-" if figures is None else f"{figures.hybrid_regions:,}",
            "-" if figures is None else _both(row["hybrid_share"], row["hybrid_share_static"], 100, 1),
            "-" if figures is None else _both(row["cost_s"], row["cost_static_s"], 1, 2),
            *(str(row[f"moves_{direction}"]) for direction in DIRECTIONS),
            format_size(float(str(row["moved_bytes"]))),
            shown(100 * float(str(row["moved_share"])), 1),
            shown(float(str(row["copy_cost_s"])), 2),
        )
    stdout().print(made)
    rmt = rmt_json(plan)
    typer.echo(f"region mapping table: {rmt['entries']:,} entries, {format_size(rmt['bytes'])} at 128 bytes each")
    known = [window.figures for window in plan.windows if window.figures is not None]
    if known:
        moving, static = sum(each.cost_s for each in known), sum(each.cost_static_s for each in known)
        copies = sum(move.cost_s for migration in plan.migrations for move in migration.moves)
        typer.echo(
            f"migration: {share(static, moving):.2f} times cheaper than staying as in window 0 by the request model, "
            f"{share(static, moving + copies):.2f} times with the copies counted"
        )


def _both(here: object, static: object, factor: int, digits: int) -> str:
    """With and without migration."""
    return f"{shown(factor * float(str(here)), digits)} / {shown(factor * float(str(static)), digits)}"
