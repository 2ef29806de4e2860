"""Servers that differ: figures of each class run over a factor of 1 to 16, no two servers alike. Simulated.

32 processes read 512 KiB each, Zipf 0.8. Policies that have one width per class see a class as equals.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import Point, arguments, contenders, finish, home_of
from ours import HOME, uneven_cluster
from sweeps import run_sweep

FACTORS = (1, 2, 4, 8, 16)
SEEDS, REQUESTS = 2, 2_000


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [
        (
            f"{factor}",
            {"factor": factor},
            Point(HOME / "zipf.toml", uneven_cluster(factor), contenders(), {"reads": given.requests}),
        )
        for factor in FACTORS
    ]
    run_sweep(given, "Servers that differ, simulated", "the best server of a class over the worst", places)


if __name__ == "__main__":
    finish(main)
