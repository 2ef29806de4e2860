"""PDLA paper, figure 7: IOR of 64 processes with requests of 16 KB, 256 KB and 4 MB, fixed stride. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import KIB, MIB, arguments, finish, home_of
from pdla import Place, Stated, run_figure, strided
from stripewise.units import format_size

SIZES = (16 * KIB, 256 * KIB, 4 * MIB)
PROCESSES, PER_PROCESS = 64, 512 * MIB
SEEDS, REQUESTS = 2, 128
#: Section 5.1.1.
STATED = (
    Stated("pd-read", "pd", "original", "read", 0.80, 9.26),
    Stated("pd-write", "pd", "original", "write", 0.47, 5.21),
    Stated("la-read", "h-pdla", "original", "read", 0.84, 9.70),
    Stated("la-write", "h-pdla", "original", "write", 0.16, 2.08),
)


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [
        Place(format_size(s), {"request_bytes": s}, (strided(PROCESSES, s, PER_PROCESS),), given.requests)
        for s in SIZES
    ]
    title = "IOR, request sizes (PDLA, figure 7), simulated"
    run_figure(given, title, "request size", places, ("original", "pd", "h-pdla"), STATED)


if __name__ == "__main__":
    finish(main)
