"""Thesis, figures 4.3 and 4.4: response time and WAR of static mappings by workload and space in use. Simulated."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import arguments, home_of, write_result
from shingled import (
    MEANINGS,
    STATIC_BLOCKS,
    Case,
    Load,
    finish_with_data,
    look_alike,
    row,
    run_cases,
    schemes,
    shared_traces,
    static_setup,
    told,
    used,
)
from shingled_orderings import as_json, static
from shingled_pictures import draw_grid

SEEDS, REQUESTS = 3, 40_000
NAMES = ("hdd", "1234", "R(4123)", "124R(3)", "14R(23)")
PERCENT = (25, 50, 75, 100)
#: By how much chapter 4.6.3 stretches the times of arrival.
STRETCH = {"web_0": 200.0, "hp_c2247": 5.0, "Financial2": 5000.0}
#: To an empty disk until it is as full as the row says; N(50, 10) ms, 8 blocks.
SYN = Load("SYN", "syn")


def cases(requests: int, seeds: int) -> list[Case]:
    """The rows of the figures."""
    setup, compared = static_setup(), schemes(*NAMES)
    loads = [*(look_alike(name, stretch, requests) for name, stretch in STRETCH.items()), *shared_traces()]
    made = []
    for load in (*loads, SYN):
        for percent in PERCENT if load is not SYN else (75, 100):
            fill = used(STATIC_BLOCKS * percent // 100, f"{percent} %")
            keys = {"workload": load.name, "used": fill.label}
            filled = 0.0 if load is SYN else None
            made.append(Case(keys, replace(setup, filled=filled), compared, fill, load, 1 if load is SYN else seeds))
    return made


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    rows = []
    for case, found in run_cases(cases(given.requests, given.seeds)):
        rows.append(row(case, found))
        told(rows[-1], NAMES)
    write_result(given.out, {"rows": rows, **MEANINGS, "orderings": as_json(static(rows)), "options": given.as_json})
    panels = []
    for name in dict.fromkeys(each["workload"] for each in rows):
        some = [each for each in rows if each["workload"] == name]
        panels.append((name, [each["used"] for each in some], {who: [each[who] for each in some] for who in NAMES}))
    draw_grid(
        given.out / "result.svg", "Static mappings (thesis, figure 4.3), simulated", "space in use",
        "mean response, ms", panels,
    )  # fmt: skip


if __name__ == "__main__":
    finish_with_data(main)
