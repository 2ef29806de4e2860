"""The hot set moves: by ever more regions from window to window, four windows. Simulated, with the copies' traffic.

32 processes read 512 KiB each, Zipf 0.8, of a file of 16 GiB in 2,048 regions of 8 MiB: everything is an eighth of
throughput-view, so that a window can be shorter too. Policies over windows move regions between them; "h2dp, no moves"
is H2DP planned once for all windows together, with foresight. MB/s count the time in which requests are in flight.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import GIB, MIB, Contender, Point, arguments, contenders, finish, home_of
from ours import HOME, view_cluster
from sweeps import run_sweep

SHIFTS = (0, 16, 64, 256, 1024)
FILE_BYTES, REGION_BYTES = 16 * GIB, 8 * MIB
WINDOWS = 4
#: No policy needs longer for a window's requests.
WINDOW_S_PER_REQUEST = 0.12
SEEDS, REQUESTS = 2, 4_000


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    window_s = WINDOW_S_PER_REQUEST * given.requests / WINDOWS
    compared = (
        *contenders(window_ns=round(window_s * 1e9), region_bytes=REGION_BYTES),
        Contender("h2dp, no moves", "h2dp", {"region_bytes": REGION_BYTES}),
    )
    changes = {
        "file_bytes": FILE_BYTES, "region_bytes": REGION_BYTES, "reads": given.requests, "windows": WINDOWS,
        "window_seconds": window_s,
    }  # fmt: skip
    cluster = view_cluster(file_bytes=FILE_BYTES, region_bytes=REGION_BYTES)
    places = [
        (
            f"{shift}",
            {"shift": shift},
            Point(HOME / "zipf.toml", cluster, compared, {**changes, "shift": shift}, in_flight=True),
        )
        for shift in SHIFTS
    ]
    more = {"moved_share": "bytes copied between windows over bytes read", "window_seconds": window_s}
    run_sweep(given, "The hot set moves, simulated", "regions it moves by between windows", places, more)


if __name__ == "__main__":
    finish(main)
