"""Thesis, figure 5.3: mean response of the HDD, T-STL, R(4123) and IS by workload and space in use. Simulated.

The runs are those of figures 5.4 and 5.5 as well: the rows keep WAR and where the time of writes went.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dataclasses import replace
from typing import Any

from common import arguments, home_of, write_result
from shingled import (
    GB,
    MEANINGS,
    SATURATED,
    SATURATED_MS,
    Case,
    Load,
    cheetah_setup,
    finish_with_data,
    is_saturated,
    look_alike,
    row,
    run_cases,
    schemes,
    shared_traces,
    split_ms,
    told,
    used,
)
from shingled_orderings import as_json, dynamic
from shingled_pictures import draw_grid
from stripewise.swd.simulate import Scheme

SEEDS, REQUESTS = 1, 300_000
#: Beside the thesis's schemes Smart in the mode that chapter 5.2.5 has for cold data: no alternate tracks.
COLD = "tstl-smart, cold mode"
NAMES = ("hdd", "tstl-greedy", "tstl-smart", COLD, "R(4123)", "is")
GIGABYTES = (30, 60, 90, 120)
#: Times of arrival are stretched by 10 (5.3.3). The week that the traces were taken in has so many requests of two.
STRETCH, WEEK = 10.0, {"mds_0": 1_211_000, "web_1": 161_000}
POSTMARK = 20_000
UNIFORM = "uniform,arrivals=normal:5:2"


def loads(requests: int) -> list[Load]:
    """The figure's workloads, one of them scattered as well, the shared traces, uniform writes at two rates.

    Scattered: the addresses of table 5.2 are bytes; taken for blocks and folded, they lie all over the used space.
    """
    some = [look_alike(name, STRETCH, requests) for name in ("mds_0", "usr_0", "stg_0")]
    web_1 = look_alike("web_1", STRETCH, min(requests, WEEK["web_1"]))
    scattered = replace(some[0], name=f"{some[0].name}, scattered", lba_factor=512)
    uniform = (
        Load("uniform N(5, 2) ms", UNIFORM, requests=requests // 2),
        Load("uniform N(50, 20) ms", UNIFORM, stretch=10.0, requests=requests),
    )
    # Postmark's large writes keep IS collecting, which takes long to simulate.
    traces = [
        replace(load, requests=POSTMARK, name=f"{load.name}, {POSTMARK:,} requests")
        if "postmark" in load.name
        else load
        for load in shared_traces()
    ]
    return [*some, web_1, scattered, *traces, *uniform]


def cases(requests: int, seeds: int) -> list[Case]:
    """The rows of the figure, and one of them for the whole week; R(4123) has no 120 GB."""
    setup, all_week = cheetah_setup(), look_alike("mds_0", STRETCH, requests * WEEK["mds_0"] // REQUESTS)
    compared = {**schemes(*NAMES), COLD: Scheme("tstl-smart", {"alternate_limit": 0.0})}
    places = [(load, size) for load in loads(requests) for size in GIGABYTES]
    return [
        Case(
            {"workload": load.name, "used": f"{size} GB"},
            setup,
            {name: scheme for name, scheme in compared.items() if name != "R(4123)" or size < 120},
            used(size * GB // 512, f"{size} GB"),
            load,
            seeds,
        )
        for load, size in [*places, (replace(all_week, name="mds_0 look-alike, whole week"), 90)]
    ]


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    rows: list[dict[str, Any]] = []
    for case, found in run_cases(cases(given.requests, given.seeds)):
        full = [name for name, outcome in found.items() if is_saturated(outcome)]
        made = {**row(case, found), "write_time_ms": {name: split_ms(outcome) for name, outcome in found.items()}}
        rows.append({**made, "saturated": "; ".join(full)})
        told(rows[-1], NAMES)
    write_result(
        given.out,
        {
            "rows": rows,
            **MEANINGS,
            "write_time_ms": "by scheme: mean time of a write, taken apart (figure 5.4)",
            "saturated": f"busy for more than {SATURATED:.0%} of the run, or a mean above {SATURATED_MS:,} ms",
            "orderings": as_json(dynamic(rows)),
            "options": given.as_json,
        },
    )
    panels = []
    for name in dict.fromkeys(each["workload"] for each in rows if not each["workload"].endswith("whole week")):
        some = [each for each in rows if each["workload"] == name]
        lines = {who: [each[who] for each in some if who in each] for who in NAMES}
        panels.append((name, [each["used"].removesuffix(" GB") for each in some], lines))
    draw_grid(
        given.out / "result.svg", "T-STL and others (thesis, figure 5.3), simulated", "space in use, GB",
        "mean response, ms", panels,
    )  # fmt: skip


if __name__ == "__main__":
    finish_with_data(main)
