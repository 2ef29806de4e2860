"""PDLA paper, figure 8: PIO-Bench of 64 processes, nested strides, requests of 4 KB to 1 MB. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import KIB, MIB, arguments, finish, home_of
from pdla import Place, Stated, nested, run_figure
from stripewise.units import format_size

SIZES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB)
PROCESSES, PER_PROCESS = 64, 32 * MIB
SEEDS, REQUESTS = 2, 256
#: Section 5.1.2.
STATED = (
    Stated("pd-read", "pd", "original", "read", 0.08, 0.27),
    Stated("pd-write", "pd", "original", "write", 0.1, 0.39),
    Stated("la-read", "h-pdla", "pd", "read", 0.09, 0.22),
    Stated("la-write", "h-pdla", "pd", "write", 0.05, 0.41),
)


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [
        Place(format_size(s), {"request_bytes": s}, (nested(PROCESSES, s, PER_PROCESS),), given.requests) for s in SIZES
    ]
    title = "PIO-Bench, nested strides (PDLA, figure 8), simulated"
    run_figure(given, title, "request size", places, ("original", "pd", "h-pdla"), STATED)


if __name__ == "__main__":
    finish(main)
