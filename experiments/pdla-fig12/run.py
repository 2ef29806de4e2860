"""PDLA paper, figure 12: MPI-Tile-IO of 256 processes, four schemes with SSDs. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import KIB, MIB, arguments, finish, home_of
from pdla import Place, Stated, run_figure, tiles
from stripewise.units import format_size

SIZES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB)
PROCESSES, PER_PROCESS = 256, 16 * MIB
SEEDS, REQUESTS = 1, 256
#: Section 5.2.3.
STATED = (
    Stated("h-read", "s-pdla", "h-pdla", "read", 0.21, 0.6),
    Stated("h-write", "s-pdla", "h-pdla", "write", 0.31, 0.57),
    Stated("ns-read", "s-pdla", "ns-pdla", "read", 0.0, 0.0),
    Stated("ns-write", "s-pdla", "ns-pdla", "write", 0.0, 0.0),
)


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [
        Place(format_size(s), {"request_bytes": s}, (tiles(PROCESSES, s, PER_PROCESS),), given.requests) for s in SIZES
    ]
    title = "MPI-Tile-IO, schemes with SSDs (PDLA, figure 12), simulated"
    run_figure(given, title, "request size", places, ("h-pdla", "s-orig", "ns-pdla", "s-pdla"), STATED)


if __name__ == "__main__":
    finish(main)
