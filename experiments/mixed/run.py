"""Requests of 4 KiB to 16 MiB in one file, drawn anew each time: five mixes. Simulated.

32 processes read, Zipf 0.8. A mix is sizes with weights; "same bytes" draws every size as often as makes all sizes read
as many bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import KIB, MIB, Point, arguments, contenders, finish, home_of
from ours import HOME, view_cluster
from sweeps import run_sweep

SIZES = tuple(4 * KIB << shift for shift in range(0, 13, 2))
MIXES = {
    "4 - 64 KiB": [[size, 1.0] for size in SIZES if size <= 64 * KIB],
    "64 KiB - 1 MiB": [[size, 1.0] for size in SIZES if 64 * KIB <= size <= MIB],
    "1 - 16 MiB": [[size, 1.0] for size in SIZES if size >= MIB],
    "all, same count": [[size, 1.0] for size in SIZES],
    "all, same bytes": [[size, SIZES[-1] / size] for size in SIZES],
}
SEEDS, REQUESTS = 2, 2_000


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [
        (
            name,
            {"mix": name, "sizes_and_weights": sizes},
            Point(HOME / "zipf.toml", view_cluster(), contenders(), {"request_bytes": sizes, "reads": given.requests}),
        )
        for name, sizes in MIXES.items()
    ]
    run_sweep(given, "Mixed request sizes, simulated", "requests drawn from", places)


if __name__ == "__main__":
    finish(main)
