"""H2DP paper, figure 8: IOR bandwidths of four policies on 16 servers of which ever more have SSDs, 512 KB. Simulated.

The text names 12H4S and 4H12S; 8H8S between them is ours. Six of its numbers (12H4S) are what the figures of the
devices were fitted to.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import arguments, finish, home_of
from h2dp import WORKLOAD, papers_cluster
from h2dp_figures import Place, run_figure

RATIOS = ((12, 4), (8, 8), (4, 12))
#: Section 5.2.1.
PUBLISHED = {
    (12, 4): {"read": {"def": 1.43, "padp": 0.71, "psa": 0.34}, "write": {"def": 1.73, "padp": 0.74, "psa": 0.38}}
}
UP_TO = {"read_or_write": {"def": 1.97, "padp": 0.62, "psa": 0.40}}
SEEDS, REQUESTS = 2, 2_000


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [
        Place(f"{h}H{s}S", {"hservers": h, "sservers": s}, papers_cluster(h, s), {}, PUBLISHED.get((h, s), {}))
        for h, s in RATIOS
    ]
    run_figure(given, "IOR, server ratios (H2DP, figure 8), simulated", "servers", WORKLOAD, places, UP_TO)


if __name__ == "__main__":
    finish(main)
