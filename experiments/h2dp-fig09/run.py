"""H2DP paper, figure 9: HPIO bandwidths of four policies at three region sizes: uniform and contiguous. Simulated.

16 processes, region spacing 0; HPIO's regions are its requests, here those of 16 processes in turn. As many requests as
--requests says per process, not the 40,960 regions: every region is touched once, so more of them tell nothing else.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


from common import KIB, MIB, arguments, finish, home_of
from h2dp import papers_cluster
from h2dp_figures import Place, run_figure
from stripewise.units import format_size

HERE = home_of(__file__)
PROCESSES = 16
#: Section 5.2.2; over PSA "up to" 41, 21, 17 percent of both operations.
PUBLISHED = {
    64 * KIB: {"read": {"def": 1.92, "padp": 0.91, "psa": 0.41}, "write": {"def": 1.66, "padp": 0.71, "psa": 0.41}},
    256 * KIB: {"read": {"def": 1.36, "padp": 0.72, "psa": 0.21}, "write": {"def": 1.56, "padp": 0.70, "psa": 0.21}},
    MIB: {"read": {"def": 1.11, "padp": 0.62, "psa": 0.17}, "write": {"def": 1.13, "padp": 0.67, "psa": 0.17}},
}
SEEDS, REQUESTS = 2, 2_560


def main() -> None:
    given = arguments(__doc__ or "", HERE, SEEDS, REQUESTS)
    places = []
    for size, published in PUBLISHED.items():
        file_bytes = size * PROCESSES * given.requests
        cluster = papers_cluster(file_bytes=file_bytes)
        changes = {"request_bytes": size, "file_bytes": file_bytes}
        places.append(Place(format_size(size), {"request_bytes": size}, cluster, changes, published))
    run_figure(
        given, "HPIO, region sizes (H2DP, figure 9), simulated", "region size", HERE / "workload.toml", places, {}
    )


if __name__ == "__main__":
    finish(main)
