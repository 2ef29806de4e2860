"""Segment paper, figure 8: IOzone's bandwidth, one client, under fixed stripes and under SLAL. Simulated.

Three segments of 64 MB, 256 MB and 4 GB, requests of 4 KB, 256 KB and 4 MB; InfiniBand; sequential and random, write
and read. Writing or reading again is to the simulator what the first time is.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dataclasses import replace

from common import KIB, MIB, arguments, finish, home_of
from segments import Segment, papers_cluster, phases, run_layouts

SEGMENTS = (Segment(64 * MIB, 4 * KIB), Segment(256 * MIB, 256 * KIB), Segment(4096 * MIB, 4 * MIB))
#: Section VI.B, all six operations together.
PUBLISHED = {"write": (0.06, 0.57), "read": (0.06, 0.57)}
SEEDS, REQUESTS = 24, 1_024


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [
        (
            f"{kind} {operation}",
            {"pattern": kind, "operation": operation},
            papers_cluster("InfiniBand"),
            phases([replace(segment, kind=kind) for segment in SEGMENTS], 1, given.requests, operation),
        )
        for kind in ("sequential", "random")
        for operation in PUBLISHED
    ]
    run_layouts(given, "IOzone, one client (segment paper, figure 8), simulated", places, PUBLISHED)


if __name__ == "__main__":
    finish(main)
