"""Segment paper, figure 7: IOR's bandwidth with strided access under fixed stripes and under SLAL. Simulated.

Segments as in figure 6; requests and the bytes skipped between them are <1K, 3K>, <4K, 12K>, <64K, 64K>, <1M, 1M>. 16
processes, eight servers, Ethernet and InfiniBand, write and read.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import KIB, MIB, arguments, finish, home_of
from segments import Segment, run_on_networks

SEGMENTS = (
    Segment(128 * MIB, KIB, 3 * KIB, "interleaved"),
    Segment(1024 * MIB, 4 * KIB, 12 * KIB, "interleaved"),
    Segment(1024 * MIB, 64 * KIB, 64 * KIB, "interleaved"),
    Segment(4096 * MIB, MIB, MIB, "interleaved"),
)
PROCESSES = 16
#: Section VI.B.
PUBLISHED = {"write": (0.50, 1.63), "read": (0.26, 1.32)}
SEEDS, REQUESTS = 2, 256


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    title = "IOR, strided (segment paper, figure 7), simulated"
    run_on_networks(given, title, SEGMENTS, PROCESSES, PUBLISHED)


if __name__ == "__main__":
    finish(main)
