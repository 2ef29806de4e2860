"""Thesis, figure 5.4: where the time of a write goes at 90 GB, in the runs of thesis-fig53. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import arguments, finish, home_of, write_result
from shingled import MEANINGS, PARTS, rows_of
from shingled_pictures import draw_stacks


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), 1, 1)
    of_90 = [each for each in rows_of("thesis-fig53") if each["used"] == "90 GB"]
    rows = [
        {"workload": each["workload"], "scheme": name, **{part: times[part] for part in PARTS}}
        for each in of_90
        for name, times in each["write_time_ms"].items()
    ]
    meanings = {
        "unit": "ms per write, mean",
        "column_label": "ms, simulated",
        "simulated": True,
        "runs": "thesis-fig53",
    }
    write_result(given.out, {"rows": rows, **meanings, "war": MEANINGS["war"]})
    calm = [each for each in of_90 if not each["saturated"] and "week" not in each["workload"]]
    panels = [(each["workload"], each["write_time_ms"]) for each in calm]
    draw_stacks(
        given.out / "result.svg", "Time of a write at 90 GB (thesis, figure 5.4), simulated", "ms per write", panels
    )


if __name__ == "__main__":
    finish(main)
