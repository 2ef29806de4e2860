"""Price lists along axes: one request size or number of processes after the other, or a map of both.

A price list alone is a sweep without an axis. What wins where is told per view and by the bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

from ..errors import UsageError
from ..units import parse_size
from .pricelist import VIEWS, Price, PriceList, Question

#: In this order they are rows and columns of a map.
NAMES = ("request", "processes")
VALUES_MAX = 64


@dataclass(frozen=True)
class Axis:
    """A swept quantity and its values, ascending."""

    name: str
    values: list[int]


def parse_sweeps(texts: list[str]) -> list[Axis]:
    """The axes of all `--sweep` options, request before processes. Raises UsageError naming the option."""
    axes = [_axis(text) for text in texts]
    names = [axis.name for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--sweep: {name} is swept twice; give each axis once")
    return sorted(axes, key=lambda axis: NAMES.index(axis.name))


def _axis(text: str) -> Axis:
    name, equals, values = text.partition("=")
    if name not in NAMES or not equals:
        raise UsageError(f"--sweep: '{text}' is not request=A..B or processes=A..B; write e.g. request=4KiB..16MiB")
    first, dots, last = values.partition("..")
    if not dots:
        found = [_value(name, each, text) for each in values.split(",")]
    else:
        at, end = _value(name, first, text), _value(name, last, text)
        if at > end:
            raise UsageError(f"--sweep: '{text}' runs backwards; put the smaller end first")
        found = []
        while at < end and len(found) < VALUES_MAX:
            found.append(at)
            at *= 2
        found.append(end)
    if len(found) > VALUES_MAX:
        raise UsageError(f"--sweep: '{text}' has more than {VALUES_MAX} values; narrow it")
    return Axis(name, sorted(set(found)))


def _value(name: str, text: str, whole: str) -> int:
    value = parse_size(text, f"--sweep {name}") if name == "request" else int(text) if text.isdecimal() else 0
    if value < 1:
        raise UsageError(f"--sweep: '{whole}' holds '{text}', which is not a {name} of at least 1; correct it")
    return value


@dataclass(frozen=True)
class Cell:
    """One question of a sweep and its price list."""

    question: Question
    prices: PriceList

    @property
    def winners(self) -> dict[str, str | None]:
        """The label of the cheapest layout in every view and by the bound."""
        rows = {view: self.prices.cheapest(view) for view in (*VIEWS, "bound")}
        return {view: None if row is None else row.label for view, row in rows.items()}

    def bound_mb_s(self, row: Price) -> float | None:
        """Megabytes per second of a layout by the bound; None where nothing takes time."""
        return self.question.request_bytes / row.bound_s / 1e6 if row.bound_s > 0 else None

    def rows_json(self) -> list[dict[str, Any]]:
        """The price list as `model --json` prints it."""
        return [self._row_json(row) for row in self.prices.rows]

    def as_json(self) -> dict[str, Any]:
        """The cell of a sweep as `model --json` prints it."""
        return {
            "request_bytes": self.question.request_bytes,
            "processes": self.question.params.p,
            "winners": self.winners,
            "rows": self.rows_json(),
        }

    def alone_json(self) -> dict[str, Any]:
        """A price list without a sweep as `model --json` prints it."""
        return {
            "request_bytes": self.question.request_bytes,
            "offset": self.question.offset,
            "write": self.question.write,
            "processes": self.question.params.p,
            "hservers": self.question.M,
            "sservers": self.question.N,
            "rows": self.rows_json(),
            "winners": self.winners,
            "skipped": self.prices.skipped,
        }

    def _row_json(self, row: Price) -> dict[str, Any]:
        return {
            "layout": row.model.name, "label": row.label, "on": row.on, "view": row.model.view,
            "source": row.model.source, **row.parameters, "total_s": row.total_s,
            "establish_s": row.terms.establish_s, "transfer_s": row.terms.transfer_s,
            "startup_s": row.terms.startup_s, "storage_s": row.terms.storage_s, "decides": row.decides,
            "pieces_hdd": row.pieces[0], "pieces_ssd": row.pieces[1], "busiest_s": row.busiest_s,
            "bound_s": row.bound_s, "bound_mb_s": self.bound_mb_s(row), "limit": row.limit,
        }  # fmt: skip


@dataclass(frozen=True)
class PriceSweep:
    """All cells by their axes' values; one, by the empty key, without axes."""

    axes: tuple[Axis, ...]
    cells: dict[tuple[int, ...], Cell]

    def as_json(self) -> dict[str, Any]:
        """The sweep as `model --json` prints it."""
        return {
            "sweep": {axis.name: axis.values for axis in self.axes},
            "cells": [cell.as_json() for cell in self.cells.values()],
        }

    def winners_by_view(self) -> dict[str, list[list[str | None]]]:
        """Of two axes, the winners of the views that p matters in: request sizes by processes."""
        requests, processes = self.axes
        return {
            title: [[self.cells[r, p].winners[view] for p in processes.values] for r in requests.values]
            for view, title in (("shared", VIEWS["shared"]), ("spread", VIEWS["spread"]), ("bound", "bound"))
        }

    def series(self) -> dict[str, dict[str, list[float | None]]]:
        """Per view the milliseconds of every layout along the sweep, and MB/s by the bound; of variants the best."""
        series: dict[str, dict[str, list[float | None]]] = {}
        for number, cell in enumerate(self.cells.values()):
            for row in cell.prices.rows:
                name = {"2-d": f"2-d{row.label[-2:]}", "pair": "pair", "pdla": "pdla"}.get(row.model.name, row.label)
                bound = cell.bound_mb_s(row)
                for title, value, better in (
                    (f"{VIEWS[row.model.view]}, milliseconds", row.total_s * 1e3, min),
                    ("bound, MB/s", bound, max),
                ):
                    line = series.setdefault(title, {}).setdefault(name, [None] * len(self.cells))
                    old = line[number]
                    line[number] = value if old is None or value is None else better(old, value)
        series["bound, MB/s"] = series.pop("bound, MB/s")
        return series


def keys_of(axes: Iterable[Axis]) -> list[tuple[int, ...]]:
    """All combinations of the axes' values; one empty one without axes."""
    return list(product(*(axis.values for axis in axes)))
