"""H2DP paper, figure 5: IOR bandwidths of four policies at four request sizes, reads and writes. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import KIB, MIB, arguments, finish, home_of
from h2dp import WORKLOAD, papers_cluster
from h2dp_figures import Place, run_figure
from stripewise.units import format_size

SIZES = (64 * KIB, 256 * KIB, MIB, 4 * MIB)
#: Section 5.2.1.
UP_TO = {"read": {"def": 2.19, "padp": 1.03, "psa": 0.49}, "write": {"def": 2.53, "padp": 1.15, "psa": 0.56}}
SEEDS, REQUESTS = 2, 2_000


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [
        Place(format_size(size), {"request_bytes": size}, papers_cluster(), {"request_bytes": size}) for size in SIZES
    ]
    run_figure(given, "IOR, request sizes (H2DP, figure 5), simulated", "request size", WORKLOAD, places, UP_TO)


if __name__ == "__main__":
    finish(main)
