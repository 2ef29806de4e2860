"""An experiment along one axis: all policies at every place, a row each, a line per policy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from common import MEANINGS, Given, Point, figures, run_points, shown, write_result
from pictures import draw_lines


def run_sweep(
    given: Given,
    title: str,
    label: str,
    places: Sequence[tuple[str, Mapping[str, Any], Point]],
    more: Mapping[str, Any] | None = None,
    log: bool = False,
) -> None:
    """Runs `places`, (tick, keys of the row, point) each, and writes result.json and result.svg."""
    rows: list[dict[str, Any]] = []
    names = [each.label for each in places[0][2].contenders]
    for (tick, keys, _), series in zip(places, run_points([each[2] for each in places], given.seeds), strict=True):
        # Seconds in flight leave out what processes wait for each other, which a bound on the whole run does not.
        rows.append({**keys, **figures(series, not places[0][2].in_flight)})
        if any(each.moved for each in series.values()):
            rows[-1]["moved_share"] = {name: each.moved for name, each in series.items()}
        shown(tick, rows[-1], [name for name in names if name in rows[-1]])
    write_result(given.out, {"rows": rows, **MEANINGS, **(more or {}), "options": given.as_json})
    # A policy that is left out at a place has no point there.
    lines = {name: [row.get(name, math.nan) for row in rows] for name in names}
    draw_lines(
        given.out / "result.svg", title, label, [each[0] for each in places], [("", lines)], None,
        [row["bound"] for row in rows if "bound" in row], log=log,
    )  # fmt: skip
