"""H2DP paper, figure 7: IOR bandwidths of four policies at growing numbers of processes, 512 KB. Simulated.

The text does not say which numbers of processes; powers of two around the other figures' 32 are run.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import arguments, finish, home_of
from h2dp import WORKLOAD, papers_cluster
from h2dp_figures import Place, run_figure

PROCESSES = (8, 16, 32, 64, 128)
#: Section 5.2.1.
UP_TO = {"read": {"def": 1.88, "padp": 0.82, "psa": 0.49}, "write": {"def": 2.04, "padp": 0.75, "psa": 0.51}}
SEEDS, REQUESTS = 2, 2_000


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [Place(str(count), {"processes": count}, papers_cluster(), {"processes": count}) for count in PROCESSES]
    run_figure(given, "IOR, processes (H2DP, figure 7), simulated", "processes", WORKLOAD, places, UP_TO)


if __name__ == "__main__":
    finish(main)
