"""Thesis, figure 5.5: WAR at 60 and 90 GB, in the runs of thesis-fig53. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import arguments, finish, home_of, write_result
from shingled import rows_of
from shingled_pictures import draw_grid

NAMES = ("hdd", "tstl-greedy", "tstl-smart", "tstl-smart, cold mode", "R(4123)", "is")
#: Chapter 5.3.4 gives these two in words.
PUBLISHED = {"60 GB": {"tstl-smart": 1.0, "R(4123)": 1.3}}


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), 1, 1)
    found = [each for each in rows_of("thesis-fig53") if each["used"] in ("60 GB", "90 GB")]
    rows = [
        {
            "workload": each["workload"],
            "used": each["used"],
            **{name: each["war"][name] for name in NAMES},
            "published": PUBLISHED.get(each["used"], {}),
        }
        for each in found
    ]
    meanings = {"unit": "WAR", "column_label": "WAR, simulated", "simulated": True, "runs": "thesis-fig53"}
    write_result(given.out, {"rows": rows, **meanings, "published": "chapter 5.3.4, in words"})
    names = list(dict.fromkeys(each["workload"] for each in rows))
    panels = []
    for name in names:
        some = [each for each in rows if each["workload"] == name]
        panels.append(
            (
                name,
                [each["used"].removesuffix(" GB") for each in some],
                {who: [each[who] for each in some] for who in NAMES},
            )
        )
    draw_grid(given.out / "result.svg", "WAR (thesis, figure 5.5), simulated", "space in use, GB", "WAR", panels)


if __name__ == "__main__":
    finish(main)
