"""RADAR: does the model rank gains as disks do, and is what it refuses worth nothing? Simulated.

From the rows of figures 11 to 13: nothing is run here, --seeds and --requests are theirs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from typing import Any

from common import arguments, finish, home_of, progress, write_result
from radar import HELD, MODEL, SEEDS, STEPS_READ, TURNS, column, rank_correlation
from shingled import rows_of
from shingled_pictures import draw_groups

FIGURES = {"8 per node": "radar-fig11", "1 per node": "radar-fig12", "collective": "radar-fig13"}
#: The first columns of HELD are of disks that differ in whose turn it is; this one is the acceptance's.
DISKS = next(iter(HELD))
#: From the one gain on, a replica that is not built is missed; below the other one, one that is built loses.
WORTH, LOSS = 1.1, 0.99


def ranked(configuration: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The row of a configuration."""
    built = [row for row in rows if row["built"] == "yes"]
    refused = [row for row in rows if row["built"] == "no"]
    return {
        "configuration": configuration,
        "cases": len(rows),
        "built": len(built),
        "refused": len(refused),
        "refused, the model's most": f"{max(column(refused, MODEL)):.3f}",
        "refused, worth it on disks": sum(row[DISKS] >= WORTH for row in refused),
        "built, slower on disks": sum(row[DISKS] < LOSS for row in built),
        "built, slower, pages kept": sum(row["disks, pages kept"] < LOSS for row in built),
        **{name: rank_correlation(column(rows, MODEL), column(rows, name)) for name in HELD},
        TURNS: rank_correlation(column(rows, TURNS), column(rows, DISKS)),
    }


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, STEPS_READ)
    figures = {configuration: rows_of(name) for configuration, name in FIGURES.items()}
    figures["all"] = [row for some in figures.values() for row in some]
    rows = [ranked(configuration, some) for configuration, some in figures.items()]
    for row in rows:
        progress(f"{row['configuration']}: " + ", ".join(f"{name} {row[name]:.2f}" for name in (*HELD, TURNS)))
    write_result(
        given.out,
        {
            "rows": rows,
            "simulated": True,
            "unit": "Spearman's rank correlation of the model's gain with that of disks, over the cases",
            "column_label": "rank correlation, simulated",
            TURNS: "the model with a startup for each turn, with `disks`",
            "refused, the model's most": "the largest gain by the model of a case in which it builds nothing",
            "refused, worth it on disks": f"cases without a replica that would be {WORTH} times as fast or more",
            "built, slower on disks": "cases in which a replica is built that is a hundredth slower or more",
            "built, slower, pages kept": "the same on servers that read nothing twice",
        },
    )
    names = (*HELD, TURNS)
    panels = [("rank correlation", list(figures), {name: column(rows, name) for name in names})]
    draw_groups(given.out / "result.svg", "The model's gains and those of disks, simulated", "Spearman", panels)


if __name__ == "__main__":
    finish(main)
