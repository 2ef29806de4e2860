"""Thesis, figure 4.2: WAR of static mappings by the space in use, counted by the equations and simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import arguments, home_of, write_result
from shingled import (
    MEANINGS,
    NEW,
    STATIC_BLOCKS,
    Case,
    Load,
    amplification,
    finish_with_data,
    row,
    run_cases,
    schemes,
    static_setup,
    told,
    used,
)
from shingled_pictures import draw_grid
from stripewise.swd.amplification import amplification as by_equation

SEEDS, REQUESTS = 3, 10_000
NAMES = ("1234", *NEW)
PERCENT = (12.5, 25.0, 37.5, 50.0, 62.5, 75.0, 87.5, 100.0)
#: Figure 4.2 at the fills that the text gives numbers for.
PUBLISHED = {
    25.0: {"1234": 4.0, "R(4123)": 1.0, "124R(3)": 1.67, "14R(23)": 1.0},
    50.0: {"1234": 4.0, "R(4123)": 1.0, "124R(3)": 1.67, "14R(23)": 1.0},
    75.0: {"1234": 4.0, "R(4123)": 1.67, "124R(3)": 1.67, "14R(23)": 1.67},
    100.0: {"1234": 4.0, "R(4123)": 4.0, "124R(3)": 4.0, "14R(23)": 4.0},
}
#: One block each, so that none lies on two tracks; far apart, so that none waits.
UPDATES = "uniform,request_blocks=1,arrivals=fixed:200"


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    predicted = by_equation(4, 2, [percent / 100 for percent in PERCENT]).orders
    load = Load("uniform", UPDATES, requests=given.requests)
    cases = [
        Case(
            {"used": f"{percent:g} %"},
            static_setup(),
            schemes(*NAMES),
            used(int(STATIC_BLOCKS * percent / 100), ""),
            load,
            given.seeds,
        )
        for percent in PERCENT
    ]
    rows = []
    for at, (case, found) in enumerate(run_cases(cases)):
        made = row(case, found, amplification)
        rows.append(
            {
                **{key: value for key, value in made.items() if key != "war"},
                "predicted": {name: predicted[name][at] for name in NAMES},
                "published": PUBLISHED.get(PERCENT[at], {}),
            }
        )
        told(rows[-1], NAMES, "requests per update")
    meanings = {
        **MEANINGS,
        "unit": "WAR: requests per update",
        "column_label": "WAR, simulated",
        "published": "figure 4.2, as the text gives it",
    }
    write_result(
        given.out,
        {"rows": rows, **meanings, "predicted": "by equations 4.1 and 4.2, track by track", "options": given.as_json},
    )
    ticks = [f"{percent:g}" for percent in PERCENT]
    panels = [
        ("by the equations", ticks, {name: [each["predicted"][name] for each in rows] for name in NAMES}),
        ("simulated, uniform updates", ticks, {name: [each[name] for each in rows] for name in NAMES}),
    ]
    draw_grid(
        given.out / "result.svg",
        "Requests per update (thesis, figure 4.2)",
        "space in use, %",
        "WAR",
        panels,
    )


if __name__ == "__main__":
    finish_with_data(main)
