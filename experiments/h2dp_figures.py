"""A figure of the H2DP paper: its points, run for reads and for writes, beside what the paper says of it in numbers.

The paper's figures are pictures; in numbers it says by how much H2DP outperforms the others at some points, or "up to".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import MEANINGS, Contender, Given, Point, Series, contenders, figures, gain, run_points, shown, write_result
from h2dp import POLICIES
from pictures import draw_bars
from stripewise.cluster import Cluster

#: Over which policy by how much, as in the paper's "143 percent": 1.43.
Gains = Mapping[str, float]
OTHERS = ("def", "padp", "psa")


@dataclass(frozen=True)
class Place:
    """One point of the axis: what it is called, its keys in the row, what runs there."""

    tick: str
    keys: Mapping[str, Any]
    cluster: Cluster
    changes: Mapping[str, Any] = field(default_factory=dict)
    #: What the paper says of this very point, by operation.
    published: Mapping[str, Gains] = field(default_factory=dict)


def gains_over(series: Mapping[str, Series]) -> dict[str, float]:
    """H2DP's gain over each of the others."""
    return {name: gain(series["h2dp"].mb_s, series[name].mb_s) for name in OTHERS}


def run_figure(
    given: Given,
    title: str,
    label: str,
    workload: Path,
    places: Sequence[Place],
    up_to: Mapping[str, Gains],
    compared: Sequence[Contender] = (),
    operations: Mapping[str, Callable[[int], Mapping[str, int]]] | None = None,
) -> None:
    """Runs every place for every operation, writes result.json and result.svg.

    `up_to` are the largest gains that the paper states over the whole axis, by operation.
    """
    kinds = operations or {"read": lambda n: {"reads": n, "writes": 0}, "write": lambda n: {"reads": 0, "writes": n}}
    who = tuple(compared) or contenders(POLICIES)
    each = [(place, kind) for place in places for kind in kinds]
    points = [
        Point(workload, place.cluster, who, {**place.changes, **kinds[kind](given.requests)}) for place, kind in each
    ]
    rows: list[dict[str, Any]] = []
    for (place, kind), series in zip(each, run_points(points, given.seeds), strict=True):
        rows.append(
            {
                **place.keys,
                "operation": kind,
                **figures(series),
                "h2dp_gain": gains_over(series),
                "published_gain": dict(place.published.get(kind, {})),
            }
        )
        shown(f"{place.tick}, {kind}", rows[-1], [one.label for one in who])
    most = {
        kind: {name: max(row["h2dp_gain"][name] for row in rows if row["operation"] == kind) for name in OTHERS}
        for kind in kinds
    }
    write_result(
        given.out,
        {
            "rows": rows,
            **MEANINGS,
            "h2dp_gain": "MB/s of H2DP over MB/s of that policy, less 1",
            "published_gain": "the same, as the paper states it of this point",
            "up_to": most,
            "published_up_to": up_to,
            "options": given.as_json,
        },
    )
    panels = [
        (kind, {one.label: [row[one.label] for row in rows if row["operation"] == kind] for one in who})
        for kind in kinds
    ]
    draw_bars(given.out / "result.svg", title, label, [place.tick for place in places], panels)
