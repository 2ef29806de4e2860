"""PDLA paper, figure 11: PIO-Bench of 128 processes, nested strides, four schemes with SSDs. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import KIB, MIB, arguments, finish, home_of
from pdla import Place, Stated, nested, run_figure
from stripewise.units import format_size

SIZES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB)
PROCESSES, PER_PROCESS = 128, 32 * MIB
SEEDS, REQUESTS = 1, 256
SMALL = tuple(format_size(size) for size in SIZES if size <= 256 * KIB)
#: Section 5.2.2, of requests up to 256 KB.
STATED = (
    Stated("h-read", "s-pdla", "h-pdla", "read", None, 1.53, " up to 256 KB", SMALL),
    Stated("h-write", "s-pdla", "h-pdla", "write", None, 0.89, " up to 256 KB", SMALL),
)


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [
        Place(format_size(s), {"request_bytes": s}, (nested(PROCESSES, s, PER_PROCESS),), given.requests) for s in SIZES
    ]
    title = "PIO-Bench, schemes with SSDs (PDLA, figure 11), simulated"
    run_figure(given, title, "request size", places, ("h-pdla", "s-orig", "ns-pdla", "s-pdla"), STATED)


if __name__ == "__main__":
    finish(main)
