"""PDLA paper, figure 9: MPI-Tile-IO of 64 processes, requests of 4 KB to 1 MB. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import KIB, MIB, arguments, finish, home_of
from pdla import Place, Stated, run_figure, tiles
from stripewise.units import format_size

SIZES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB)
PROCESSES, PER_PROCESS = 64, 32 * MIB
SEEDS, REQUESTS = 2, 256
#: Section 5.1.3.
STATED = (
    Stated("pd-read", "pd", "original", "read", 0.39, 0.91),
    Stated("pd-write", "pd", "original", "write", 0.3, 0.86),
    Stated("la-read", "h-pdla", "pd", "read", 0.06, 0.15),
    Stated("la-write", "h-pdla", "pd", "write", 0.04, 0.14),
)


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [
        Place(format_size(s), {"request_bytes": s}, (tiles(PROCESSES, s, PER_PROCESS),), given.requests) for s in SIZES
    ]
    title = "MPI-Tile-IO (PDLA, figure 9), simulated"
    run_figure(given, title, "request size", places, ("original", "pd", "h-pdla"), STATED)


if __name__ == "__main__":
    finish(main)
