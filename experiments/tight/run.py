"""Ever less room on the SServers: 50 % of the file to 1 %. 32 processes read 512 KiB each, Zipf 0.8. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import Point, arguments, contenders, finish, home_of
from ours import HOME, view_cluster
from sweeps import run_sweep

SHARES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
SEEDS, REQUESTS = 2, 2_000


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [
        (
            f"{share:.0%}",
            {"ssd_share": share},
            Point(HOME / "zipf.toml", view_cluster(share=share), contenders(), {"reads": given.requests}),
        )
        for share in SHARES
    ]
    run_sweep(given, "Room on the SServers, simulated", "share of the file that SServers can hold", places)


if __name__ == "__main__":
    finish(main)
