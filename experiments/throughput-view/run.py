"""The table of cost models, section 7: what layouts deliver to 32 processes at five request sizes.

Simulated: closed loop, queues first come first served, no network, every access pays its startup. Real-emulated: half
of it, 16 processes on 6 HServers and 2 SServers with a file of 256 MiB. README.md says how to read what comes out.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import (
    KIB,
    MEANINGS,
    MIB,
    Contender,
    Given,
    Point,
    Series,
    arguments,
    contenders,
    figures,
    finish,
    gain,
    home_of,
    run_points,
    shown,
    write_result,
)
from emulated import Case, Scene, run_emulated
from pictures import draw_lines
from stripewise.cluster import read_cluster
from stripewise.units import format_size

HERE = home_of(__file__)
PROCESSES = 32
SIZES = (64 * KIB, 256 * KIB, 512 * KIB, MIB, 4 * MIB)
#: MB/s of an earlier simulation of ours (cost models, section 7): no paper has these figures.
REFERENCE = {
    "def": (213, 248, 256, 282, 712),
    "h2dp": (81, 214, 401, 710, 1690),
    "whole_region": (460, 1163, 1528, 1852, 1779),
}
SEEDS, REQUESTS, REPEATS = 4, 4_000, 5
#: Best alone is also planned for, and run with, so many times the processes, which make as many requests together.
MANY_TIMES = 4
#: Half of cluster.toml, and requests that fit into a region of 1 MiB.
SCENE = Scene(6, 2, (0.003, 1e-8), (0.0001, 2.5e-9), 16)
SCALED_SIZES = SIZES[:4]


def row(request_bytes: int, series: dict[str, Series]) -> dict[str, Any]:
    """One request size: MB/s by policy, and how far the reference simulation's figures are away."""
    reference = {name: values[SIZES.index(request_bytes)] for name, values in REFERENCE.items()}
    return {
        "request_bytes": request_bytes,
        **figures(series),
        "reference": reference,
        "off_reference": {name: gain(series[name].mb_s, value) for name, value in reference.items()},
    }


def many_processes(point: Point, requests: int) -> Point:
    """The same with best alone and more processes."""
    changes = {"processes": PROCESSES * MANY_TIMES, "reads": max(1, requests // MANY_TIMES)}
    best = tuple(each for each in point.contenders if each.label == "best")
    return replace(point, contenders=best, changes={**point.changes, **changes})


def main() -> None:
    given = arguments(__doc__ or "", HERE, SEEDS, REQUESTS, SIZES, REPEATS)
    if given.part != "emulated":
        simulated(given)
    if given.part != "simulated":
        cases = [Case({"request_bytes": size}, size) for size in given.sizes if size in SCALED_SIZES]
        run_emulated(given.out, SCENE, cases, given.repeats)


def simulated(given: Given) -> None:
    """The table at its own size."""
    compared = (*contenders(time_limit_s=given.limit_s), Contender("whole_region", str(HERE / "whole_region.py")))
    names = [each.label for each in compared]
    cluster = read_cluster(HERE / "cluster.toml")
    points = [
        Point(HERE / "workload.toml", cluster, compared, {"request_bytes": size, "reads": given.requests})
        for size in given.sizes
    ]
    # One seed is enough for a ratio.
    many = run_points([many_processes(each, given.requests) for each in points], 1)
    rows = []
    for size, series, more in zip(given.sizes, run_points(points, given.seeds), many, strict=True):
        rows.append({**row(size, series), "many": more["best"].proof})
        shown(format_size(size), rows[-1], names)
    write_result(
        given.out,
        {
            "rows": rows,
            **MEANINGS,
            "many": f"the proof of best planned for and run with {MANY_TIMES} times the processes",
            "reference": "an earlier simulation of ours (cost models, section 7); off_reference: ours over it, less 1",
            "options": {**given.as_json, "stripe_bytes": 64 * KIB},
        },
    )
    lines = {name: [each[name] for each in rows] for name in names}
    reference = {name: [each["reference"][name] for each in rows] for name in REFERENCE}
    draw_lines(
        given.out / "result.svg", "Layouts under 32 processes, reads, simulated", "request size",
        [format_size(size) for size in given.sizes], [("", lines)], reference, [each["bound"] for each in rows],
    )  # fmt: skip


if __name__ == "__main__":
    finish(main)
