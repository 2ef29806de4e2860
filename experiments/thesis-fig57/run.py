"""Thesis, figure 5.7: SYN, a backup that writes an empty disk from its first block on. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dataclasses import replace

from common import arguments, home_of, write_result
from shingled import GB, MEANINGS, Case, Load, cheetah_setup, finish_with_data, row, run_cases, schemes, told, used
from shingled_orderings import as_json, sequential
from shingled_pictures import draw_grid
from stripewise.swd.simulate import Scheme

SEEDS, REQUESTS = 1, 1_000_000
#: The drive, its areas and what is written, cut to this part: SYN does not seek, and 120 GB are 29 million requests.
PART = 40
COLD = "tstl-smart, cold mode"
NAMES = ("hdd", "tstl-greedy", "tstl-smart", COLD, "R(4123)", "is")
GIGABYTES = (30, 60, 90, 120)
SYN = "syn,arrivals=normal:5:2"


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    setup = replace(cheetah_setup(PART), filled=0.0)
    compared = {**schemes(*NAMES), COLD: Scheme("tstl-smart", {"alternate_limit": 0.0})}
    load = Load("SYN", SYN, requests=given.requests)
    cases = [
        Case(
            {"used": f"{size} GB / {PART}"},
            setup,
            {name: scheme for name, scheme in compared.items() if name != "R(4123)" or size < 120},
            used(size * GB // 512 // PART, f"{size} GB / {PART}"),
            load,
            given.seeds,
        )
        for size in GIGABYTES
    ]
    rows = []
    for case, found in run_cases(cases):
        rows.append(row(case, found))
        told(rows[-1], NAMES)
    write_result(
        given.out, {"rows": rows, **MEANINGS, "orderings": as_json(sequential(rows)), "options": given.as_json}
    )
    ticks = [str(size) for size in GIGABYTES]
    lines = [("mean response, ms", {name: [each[name] for each in rows if name in each] for name in NAMES})]
    lines += [("WAR", {name: [each["war"][name] for each in rows if name in each] for name in NAMES})]
    draw_grid(
        given.out / "result.svg", "SYN (thesis, figure 5.7), simulated", f"space written, GB / {PART}", "",
        [(heading, ticks, values) for heading, values in lines],
    )  # fmt: skip


if __name__ == "__main__":
    finish_with_data(main)
