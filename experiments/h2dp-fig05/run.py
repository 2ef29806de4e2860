"""H2DP paper, figure 5: IOR bandwidths of four policies at four request sizes, reads and writes.

Simulated at the paper's size; real-emulated at 256 KB: half the servers and processes, a file of 256 MiB, no network.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import KIB, MIB, Given, arguments, finish, home_of
from emulated import Case, Scene, run_emulated
from h2dp import POLICIES, WORKLOAD, papers_cluster
from h2dp_figures import Place, run_figure
from stripewise.units import format_size

SIZES = (64 * KIB, 256 * KIB, MIB, 4 * MIB)
#: Section 5.2.1.
UP_TO = {"read": {"def": 2.19, "padp": 1.03, "psa": 0.49}, "write": {"def": 2.53, "padp": 1.15, "psa": 0.56}}
SEEDS, REQUESTS, REPEATS = 2, 2_000, 5
#: Half of the paper's servers with the fitted figures (papers/h2dp.toml).
SCENE = Scene(6, 2, (0.0001, 5e-8), (0.00005, 4e-9), 16)
SCALED_BYTES = 256 * KIB


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS, repeats=REPEATS)
    if given.part != "emulated":
        simulated(given)
    if given.part != "simulated":
        cases = [
            Case({"request_bytes": SCALED_BYTES, "operation": operation}, SCALED_BYTES, operation)
            for operation in ("read", "write")
        ]
        run_emulated(given.out, SCENE, cases, given.repeats, POLICIES)


def simulated(given: Given) -> None:
    """The figure at its own size."""
    places = [
        Place(format_size(size), {"request_bytes": size}, papers_cluster(), {"request_bytes": size}) for size in SIZES
    ]
    run_figure(given, "IOR, request sizes (H2DP, figure 5), simulated", "request size", WORKLOAD, places, UP_TO)


if __name__ == "__main__":
    finish(main)
