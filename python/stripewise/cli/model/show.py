"""How `stripewise model` shows its answers: tables, sentences, JSON and pictures of price lists."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import typer

from ...model.plot import axis_text, map_figure, price_figure, sweep_figure
from ...model.pricelist import TIE, VIEWS, Price, PriceList, Question
from ...report.figure import save_figure
from ...units import format_size
from ..output import print_json, stdout, table
from .sweep import Axis

Cells = dict[tuple[int, ...], tuple[Question, PriceList]]
MEETING = {
    "shared": "every process's request meets on the same servers",
    "spread": "processes spread over the servers",
    "alone": "one request alone, no network",
}


def print_list(question: Question, prices: PriceList) -> None:
    """The tables of one price list, and what follows from them."""
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
            f"{name}: {MEETING[view]}", "layout", "", "T", "connect", "network", "startup", "storage", "slowest",
            "pieces", "busiest", "bound MB/s",
        )  # fmt: skip
        for row in rows:
            terms = (row.total_s, row.terms.establish_s, row.terms.transfer_s, row.terms.startup_s, row.terms.storage_s)
            mb_s = _mb_s(question.request_bytes, row.bound_s)
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
    split = next((row for row in prices.rows if row.model.name == "hservers"), None)
    whole = next((row for row in prices.rows if row.label == "whole/H"), None)
    if split is None or whole is None or split.bound_s <= whole.bound_s * TIE:
        return
    typer.echo(
        f"on HServers r/M starts {split.pieces[0]} disk(s) for each request, kept whole it starts {whole.pieces[0]}: "
        f"with {question.params.p} process(es) at work whole requests are at best {split.bound_s / whole.bound_s:.2f} "
        f"times as fast"
    )


def print_sweep(axes: list[Axis], cells: Cells, json: bool) -> None:
    """Who wins along one axis, or over two."""
    if json:
        found = [
            {"request_bytes": question.request_bytes, "processes": question.params.p, "winners": winners_of(prices),
             "rows": [as_json(row, question) for row in prices.rows]}
            for question, prices in cells.values()
        ]  # fmt: skip
        print_json({"sweep": {axis.name: axis.values for axis in axes}, "cells": found})
        return
    if len(axes) == 1:
        made = table("who wins", axes[0].name, *VIEWS.values(), "bound", "bound MB/s")
        for (value,), (question, prices) in cells.items():
            fastest = prices.cheapest("bound")
            mb_s = None if fastest is None else _mb_s(question.request_bytes, fastest.bound_s)
            names = [name or "-" for name in winners_of(prices).values()]
            made.add_row(axis_text(axes[0].name, value), *names, "-" if mb_s is None else f"{mb_s:,.0f}")
        stdout().print(made)
        return
    for view, grid_of_names in _map(axes, cells).items():
        made = table(f"who wins by the {view}", "request", *(str(p) for p in axes[1].values))
        for request, row in zip(axes[0].values, grid_of_names, strict=True):
            made.add_row(axis_text("request", request), *(name or "-" for name in row))
        stdout().print(made)


def save_plot(path: Path, axes: list[Axis], cells: Cells) -> None:
    """The picture that belongs to the answer."""
    rows: list[list[object]] = [
        [q.request_bytes, q.params.p, row.label, VIEWS[row.model.view], f"{row.total_s:.9g}", f"{row.bound_s:.9g}"]
        for q, prices in cells.values()
        for row in prices.rows
    ]
    columns = ["request_bytes", "processes", "layout", "view", "seconds", "bound_s"]
    if not axes:
        question, prices = cells[()]
        title = f"{format_size(question.request_bytes)}, {question.params.p} processes"
        save_figure(price_figure(prices, title), path, title, columns, rows)
    elif len(axes) == 1:
        title = f"prices by {axes[0].name}"
        save_figure(sweep_figure(axes[0].name, axes[0].values, _series(cells)), path, title, columns, rows)
    else:
        title = "who wins where"
        save_figure(map_figure(axes[0].values, axes[1].values, _map(axes, cells)), path, title, columns, rows)


def as_json(row: Price, question: Question) -> dict[str, Any]:
    return {
        "layout": row.model.name, "label": row.label, "on": row.on, "view": row.model.view,
        "source": row.model.source, **row.parameters, "total_s": row.total_s,
        "establish_s": row.terms.establish_s, "transfer_s": row.terms.transfer_s,
        "startup_s": row.terms.startup_s, "storage_s": row.terms.storage_s, "decides": row.decides,
        "pieces_hdd": row.pieces[0], "pieces_ssd": row.pieces[1], "busiest_s": row.busiest_s,
        "bound_s": row.bound_s, "bound_mb_s": _mb_s(question.request_bytes, row.bound_s), "limit": row.limit,
    }  # fmt: skip


def winners_of(prices: PriceList) -> dict[str, str | None]:
    """The label of the cheapest layout in every view and by the bound."""
    rows = {view: prices.cheapest(view) for view in (*VIEWS, "bound")}
    return {view: None if row is None else row.label for view, row in rows.items()}


def _map(axes: list[Axis], cells: Cells) -> dict[str, list[list[str | None]]]:
    """The winners of the views that p matters in, request sizes by processes."""
    return {
        title: [[winners_of(cells[(r, p)][1])[view] for p in axes[1].values] for r in axes[0].values]
        for view, title in (("shared", VIEWS["shared"]), ("spread", VIEWS["spread"]), ("bound", "bound"))
    }


def _series(cells: Cells) -> dict[str, dict[str, list[float | None]]]:
    """Per view the milliseconds of every layout along the sweep, and MB/s by the bound; the best of its variants."""
    series: dict[str, dict[str, list[float | None]]] = {}
    for number, (question, prices) in enumerate(cells.values()):
        for row in prices.rows:
            name = {"2-d": f"2-d{row.label[-2:]}", "pair": "pair", "pdla": "pdla"}.get(row.model.name, row.label)
            bound = _mb_s(question.request_bytes, row.bound_s)
            for title, value, better in (
                (f"{VIEWS[row.model.view]}, milliseconds", row.total_s * 1e3, min),
                ("bound, MB/s", bound, max),
            ):
                line = series.setdefault(title, {}).setdefault(name, [None] * len(cells))
                old = line[number]
                line[number] = value if old is None or value is None else better(old, value)
    series["bound, MB/s"] = series.pop("bound, MB/s")
    return series


def _widths(row: Price) -> str:
    """The numbers of a layout for people."""
    words = {"h_bytes": "h", "s_bytes": "s", "stripe_bytes": "stripe", "groups": "groups", "servers": "servers"}
    return ", ".join(
        f"{words[key]} {axis_text('request', value) if key.endswith('_bytes') else value}"
        for key, value in row.parameters.items()
    )


def _mb_s(request_bytes: int, seconds: float) -> float | None:
    """Megabytes per second; None where nothing takes time."""
    return request_bytes / seconds / 1e6 if seconds > 0 else None


def _ms(seconds: float) -> str:
    """Milliseconds with four digits that count."""
    value = seconds * 1e3
    return "0" if value == 0 else f"{value:,.{max(0, min(6, 3 - math.floor(math.log10(abs(value)))))}f}"
