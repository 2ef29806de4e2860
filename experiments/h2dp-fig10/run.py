"""H2DP paper, figure 10: BTIO bandwidths of four policies with 4, 16 and 64 processes: not contiguous. Simulated.

Class D, simple subtype: a cube of 408 cells a side, five doubles each, 2.7 GB per step, 50 steps. A process on a
diagonal of a q x q grid writes rows of 408/q cells: requests of 408/q * 40 bytes. That is what is run, as a grid of
processes over rows of the file, with the file cut to what --requests give.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import arguments, finish, home_of
from h2dp import papers_cluster
from h2dp_figures import Place, run_figure

HERE = home_of(__file__)
CELLS, CELL_BYTES = 408, 40
#: Section 5.2.3; over PSA "up to 19 percent".
PUBLISHED = {
    4: {"def": 1.37, "padp": 0.48, "psa": 0.19},
    16: {"def": 1.05, "padp": 0.28, "psa": 0.19},
    64: {"def": 0.92, "padp": 0.25, "psa": 0.19},
}
#: Requests of one process are pieces of this many rows.
ROWS = 32
SEEDS, REQUESTS = 2, 400
TOTAL_PROCESSES = 64


def main() -> None:
    given = arguments(__doc__ or "", HERE, SEEDS, REQUESTS)
    places = []
    for processes, published in PUBLISHED.items():
        side = round(processes**0.5)
        piece = CELLS // side * CELL_BYTES
        # All runs move the same bytes, whoever moves them.
        each = given.requests * TOTAL_PROCESSES // processes // side
        changes = {
            "processes": processes, "request_bytes": piece * ROWS, "pieces": ROWS,
            "file_bytes": piece * ROWS * processes * each, "reads": each, "writes": each,
        }  # fmt: skip
        cluster = papers_cluster(file_bytes=int(str(changes["file_bytes"])))
        places.append(Place(str(processes), {"processes": processes, "request_bytes": piece}, cluster, changes,
                            {"write, then read": published}))  # fmt: skip
    run_figure(
        given, "BTIO, processes (H2DP, figure 10), simulated", "processes", HERE / "workload.toml", places, {},
        operations={"write, then read": lambda _: {}},
    )  # fmt: skip


if __name__ == "__main__":
    finish(main)
