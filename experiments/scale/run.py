"""Ever more servers, 16 to 10,000, three HServers to one SServer, with as many processes each. Simulated.

A process per server reads 1 MiB each, Zipf 0.8, of one file with 512 regions of 64 MiB.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import MIB, Point, arguments, contenders, finish, home_of
from ours import HOME, view_cluster
from sweeps import run_sweep

SERVERS = (16, 64, 256, 1024, 4096, 10_000)
#: Beyond, a plan of best takes longer than this experiment should.
BEST_UP_TO = 4096
SEEDS, REQUESTS = 1, 16
FILE_BYTES = 512 * 64 * MIB
#: Few processes make more each, so that all of them together make so many.
REQUESTS_LEAST = 163_840


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = []
    for count in SERVERS:
        cluster = view_cluster(count - count // 4, count // 4, FILE_BYTES)
        compared = tuple(each for each in contenders() if count <= BEST_UP_TO or each.label != "best")
        each = max(given.requests, REQUESTS_LEAST // count)
        changes = {"processes": count, "request_bytes": MIB, "file_bytes": FILE_BYTES, "reads": each}
        places.append((f"{count:,}", {"servers": count}, Point(HOME / "zipf.toml", cluster, compared, changes)))
    run_sweep(given, "Ever more servers, simulated", "servers, and processes", places, log=True)


if __name__ == "__main__":
    finish(main)
