"""The table [target.calibration] of cluster.toml: how a target's figures were measured, and how well they fit.

It is a record: plans depend on the target's own figures, so neither a plan nor the cluster's digest looks at it.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from ..files.fields import Fields

#: A fit whose residual or misfit is above this share is unreliable.
UNRELIABLE_SHARE = 0.30
#: Accesses at chance and in order, one at a time, and at chance with several in flight.
KINDS = (
    "random_read",
    "random_write",
    "sequential_read",
    "sequential_write",
    "saturated_read",
    "saturated_write",
)
#: Those that the target's own figures are taken from.
FIGURE_KINDS = ("random_read", "random_write")
METHODS = ("direct", "fadvise", "emulated")
_SECONDS_MAX = 1e9


@dataclass(frozen=True)
class Fit:
    """time = startup_s + per_byte_s * bytes over `samples` times.

    `residual` is the median of |time - line| / line, the line being the mean of its size as a robust fit sees it (the
    mean itself grows with the tail and would hide a bad fit); `misfit` the largest distance of one size's median from
    the line, as a share of the line there. `startup_min_s` and `startup_max_s` are the 5th and 95th percentile of
    what is left of a time without its transfer.
    """

    startup_s: float
    per_byte_s: float
    startup_min_s: float
    startup_max_s: float
    residual: float
    misfit: float
    samples: int

    @property
    def is_unreliable(self) -> bool:
        """Whether the line says too little about the times, or about those of one size."""
        return max(self.residual, self.misfit) > UNRELIABLE_SHARE

    def rounded(self) -> Fit:
        """With as many digits as any measurement is good for."""
        figures: dict[str, Any] = {
            key: float(f"{value:.6g}") for key, value in asdict(self).items() if key != "samples"
        }
        return replace(self, **figures)


@dataclass(frozen=True)
class Calibration:
    """One measurement of one target; `fits` are pairs of a kind and its line, in the order of KINDS.

    `in_flight` requests were under way at once where the kind is saturated, and on an emulated target at most.
    """

    date: str
    device: str
    method: str
    in_flight: int
    requests: int
    scratch_bytes: int
    seconds: float
    sizes: tuple[int, ...]
    fits: tuple[tuple[str, Fit], ...]

    def fit(self, kind: str) -> Fit | None:
        """The line of a kind; None when it was not measured."""
        return dict(self.fits).get(kind)

    @property
    def unreliable(self) -> list[str]:
        """Kinds whose line is unreliable."""
        return [kind for kind, fit in self.fits if fit.is_unreliable]

    def toml_lines(self) -> list[str]:
        """The table as it stands after its [[target]]."""
        lines = [
            "",
            "[target.calibration]",
            f"date = {_toml(self.date)}",
            f"device = {_toml(self.device)}",
            f"method = {_toml(self.method)}",
            f"in_flight = {self.in_flight}",
            f"requests = {self.requests}",
            f"scratch_bytes = {self.scratch_bytes}",
            f"seconds = {self.seconds!r}",
            f"sizes = {list(self.sizes)}",
        ]
        if any(kind in self.unreliable for kind in FIGURE_KINDS):
            lines.append("unreliable = true")
        for kind, fit in self.fits:
            inner = [f"{field.name} = {getattr(fit, field.name)!r}" for field in fields(Fit)]
            inner += ["unreliable = true"] if fit.is_unreliable else []
            lines.append(f"{kind} = {{ {', '.join(inner)} }}")
        return lines


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def calibration_from(table: Fields) -> Calibration:
    """The table as read; raises the error class of `table` for what is wrong in it."""
    names = {field.name for field in fields(Calibration)} - {"fits"}
    table.only(names | set(KINDS) | {"unreliable"})
    date = table.text("date")
    try:
        datetime.datetime.fromisoformat(date)
    except ValueError as error:
        raise table.error("date", f"= '{date}' is not a date", "write it as 2026-01-31T12:00:00+00:00") from error
    _check_flag(table)
    return Calibration(
        date=date,
        device=table.text("device"),
        method=table.choice("method", METHODS),
        in_flight=table.integer("in_flight", 1, 2**20),
        requests=table.integer("requests", 1, 2**62),
        scratch_bytes=table.integer("scratch_bytes", 0, 2**62),
        seconds=table.number("seconds", 0.0, _SECONDS_MAX),
        sizes=_sizes(table),
        fits=tuple((kind, _fit(table, kind)) for kind in KINDS if kind in table.data),
    )


def _check_flag(table: Fields) -> None:
    """`unreliable` is for people: it follows from the residuals, which are what is read."""
    if not isinstance(table.data.get("unreliable", False), bool):
        raise table.error("unreliable", "is not true or false", "write one of them")


def _sizes(table: Fields) -> tuple[int, ...]:
    sizes = table.items("sizes")
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= 2**62:
            raise table.error("sizes", "has a value that is not a number of bytes", "give whole numbers above 0")
    return tuple(sizes)


def _fit(table: Fields, kind: str) -> Fit:
    data: Mapping[str, Any] = table.table(kind)
    inner = Fields(data, table.source, f"{table.where}{kind}.", table.raises)
    inner.only({field.name for field in fields(Fit)} | {"unreliable"})
    _check_flag(inner)
    return Fit(
        startup_s=inner.number("startup_s", 0.0, _SECONDS_MAX),
        per_byte_s=inner.number("per_byte_s", 0.0, _SECONDS_MAX),
        startup_min_s=inner.number("startup_min_s", 0.0, _SECONDS_MAX),
        startup_max_s=inner.number("startup_max_s", 0.0, _SECONDS_MAX),
        residual=inner.number("residual", 0.0, _SECONDS_MAX),
        misfit=inner.number("misfit", 0.0, _SECONDS_MAX),
        samples=inner.integer("samples", 1, 2**62),
    )
