"""How `stripewise model` shows its answers to people: tables, sentences and pictures of price lists."""

from __future__ import annotations

import math
from pathlib import Path

import typer

from ...model.plot import axis_text, map_figure, price_figure, sweep_figure
from ...model.price_sweep import Cell, PriceSweep
from ...model.pricelist import VIEWS, Price, PriceList, Question
from ...report.figure import save_figure
from ...units import format_size
from ..output import stdout, table

MEETING = {
    "shared": "every process's request meets on the same servers",
    "spread": "processes spread over the servers",
    "alone": "one request alone, no network",
}


def print_list(cell: Cell) -> None:
    """The tables of one price list, and what follows from them."""
    question, prices = cell.question, cell.prices
    op = "write" if question.write else "read"
    typer.echo(
        f"{op} of {format_size(question.request_bytes)} at {question.offset:,}, {question.params.p} process(es), "
        f"{question.M} HServers, {question.N} SServers; milliseconds"
    )
    for view, name in VIEWS.items():
        rows = [row for row in prices.rows if row.model.view == view]
        if not rows:
            continue
        made = table(
            f"{name}: {MEETING[view]}", "layout", "widths", "T", "connect", "network", "startup", "storage", "slowest",
            "pieces", "busiest", "bound MB/s", keys=2,
        )  # fmt: skip
        for row in rows:
            terms = (row.total_s, row.terms.establish_s, row.terms.transfer_s, row.terms.startup_s, row.terms.storage_s)
            mb_s = cell.bound_mb_s(row)
            made.add_row(
                row.label, _widths(row), *map(_ms, terms), row.decides,
                "+".join(f"{k} {kind}" for k, kind in zip(row.pieces, "HS", strict=True) if k),
                _ms(row.busiest_s), "-" if mb_s is None else f"{mb_s:,.0f}",
            )  # fmt: skip
        stdout().print(made)
    for name, reason in prices.skipped.items():
        typer.echo(f"{name}: not priced, {reason}")
    for view, name in VIEWS.items():
        best = prices.cheapest(view)
        if best is not None:
            typer.echo(f"cheapest by the {name}: {best.label} {_widths(best)}".rstrip())
    fastest = prices.cheapest("bound")
    if fastest is not None:
        typer.echo(f"fastest by the bound: {fastest.label} {_widths(fastest)}".rstrip() + f" (limit: {fastest.limit})")
    _explain(question, prices)


def _explain(question: Question, prices: PriceList) -> None:
    """Why a split request loses under concurrency, where it does."""
    loss = prices.loss_by_splitting()
    if loss is None:
        return
    typer.echo(
        f"on HServers r/M starts {loss.split_disks} disk(s) for each request, kept whole it starts {loss.whole_disks}: "
        f"with {question.params.p} process(es) at work whole requests are at best {loss.times:.2f} times as fast"
    )


def print_sweep(sweep: PriceSweep) -> None:
    """Who wins along one axis, or over two."""
    axes = sweep.axes
    if len(axes) == 1:
        made = table("who wins", axes[0].name, *VIEWS.values(), "bound", "bound MB/s")
        for (value,), cell in sweep.cells.items():
            fastest = cell.prices.cheapest("bound")
            mb_s = None if fastest is None else cell.bound_mb_s(fastest)
            names = [name or "-" for name in cell.winners.values()]
            made.add_row(axis_text(axes[0].name, value), *names, "-" if mb_s is None else f"{mb_s:,.0f}")
        stdout().print(made)
        return
    for view, grid_of_names in sweep.winners_by_view().items():
        made = table(f"who wins by the {view}, by request and processes", "request", *(str(p) for p in axes[1].values))
        for request, row in zip(axes[0].values, grid_of_names, strict=True):
            made.add_row(axis_text("request", request), *(name or "-" for name in row))
        stdout().print(made)


def save_plot(path: Path, sweep: PriceSweep) -> None:
    """The picture that belongs to the answer."""
    axes = sweep.axes
    rows: list[list[object]] = [
        [
            cell.question.request_bytes, cell.question.params.p, row.label, VIEWS[row.model.view],
            f"{row.total_s:.9g}", f"{row.bound_s:.9g}",
        ]
        for cell in sweep.cells.values()
        for row in cell.prices.rows
    ]  # fmt: skip
    columns = ["request_bytes", "processes", "layout", "view", "seconds", "bound_s"]
    if not axes:
        cell = sweep.cells[()]
        title = f"{format_size(cell.question.request_bytes)}, {cell.question.params.p} processes"
        save_figure(price_figure(cell.prices, title), path, title, columns, rows)
    elif len(axes) == 1:
        title = f"prices by {axes[0].name}"
        save_figure(sweep_figure(axes[0].name, axes[0].values, sweep.series()), path, title, columns, rows)
    else:
        title = "who wins where"
        save_figure(map_figure(axes[0].values, axes[1].values, sweep.winners_by_view()), path, title, columns, rows)


def _widths(row: Price) -> str:
    """The numbers of a layout for people."""
    words = {"h_bytes": "h", "s_bytes": "s", "stripe_bytes": "stripe", "groups": "groups", "servers": "servers"}
    return ", ".join(
        f"{words[key]} {axis_text('request', value) if key.endswith('_bytes') else value}"
        for key, value in row.parameters.items()
    )


def _ms(seconds: float) -> str:
    """Milliseconds with four digits that count."""
    value = seconds * 1e3
    return "0" if value == 0 else f"{value:,.{max(0, min(6, 3 - math.floor(math.log10(abs(value)))))}f}"
