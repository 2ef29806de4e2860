"""Segment paper, figure 6: IOR's bandwidth with sequential access under fixed stripes and under SLAL. Simulated.

Four segments of 128, 1024, 1024 and 4096 MB, requests of 1 KB, 4 KB, 64 KB and 1 MB. 16
processes, eight servers, Ethernet and InfiniBand, write and read.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import KIB, MIB, arguments, finish, home_of
from segments import Segment, run_on_networks

SEGMENTS = (
    Segment(128 * MIB, KIB),
    Segment(1024 * MIB, 4 * KIB),
    Segment(1024 * MIB, 64 * KIB),
    Segment(4096 * MIB, MIB),
)
PROCESSES = 16
#: Section VI.B.
PUBLISHED = {"write": (0.25, 1.01), "read": (0.09, 0.71)}
SEEDS, REQUESTS = 2, 256


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    title = "IOR, sequential (segment paper, figure 6), simulated"
    run_on_networks(given, title, SEGMENTS, PROCESSES, PUBLISHED)


if __name__ == "__main__":
    finish(main)
