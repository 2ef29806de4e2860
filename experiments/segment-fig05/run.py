"""Segment paper, figure 5: how bandwidth depends on request and stripe sizes, IOR on eight servers. Simulated.

(a, c) stripes of 4 KB, growing requests, 8 to 32 clients; (b, d) requests of 4 KB to 4 MB, growing stripes, 32 clients
behind Ethernet, 16 behind InfiniBand. Writing is reading to these disks; reads are run.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from typing import Any

from common import KIB, MEANINGS, MIB, Contender, Point, arguments, finish, home_of, progress, run_points, write_result
from pictures import draw_lines
from segments import NETWORKS, STRIPES, WORKLOAD, papers_cluster, short

REQUESTS_BYTES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
CLIENTS = (8, 16, 32)
#: Clients of (b) and (d).
MANY = {"Ethernet": 32, "InfiniBand": 16}
SEEDS, REQUESTS = 2, 256


def point(network: str, clients: int, request: int, stripes: tuple[int, ...], each: int) -> Point:
    """One request size, under every stripe."""
    changes = {"processes": clients, "request_bytes": request, "file_bytes": request * clients * each, "reads": each}
    who = tuple(Contender(short(stripe), "def", {"stripe_bytes": stripe}) for stripe in stripes)
    return Point(WORKLOAD, papers_cluster(network), who, changes)


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    cases: list[tuple[str, int, int, tuple[int, ...]]] = [
        (network, clients, r, STRIPES[:1]) for network in NETWORKS for clients in CLIENTS for r in REQUESTS_BYTES
    ]
    cases += [(network, MANY[network], r, STRIPES) for network in NETWORKS for r in REQUESTS_BYTES]
    rows: list[dict[str, Any]] = []
    points = [point(*case, given.requests) for case in cases]
    for (network, clients, request, stripes), series in zip(cases, run_points(points, given.seeds), strict=True):
        row = {"network": network, "clients": clients, "request_bytes": request}
        rows.extend({**row, "stripe_bytes": stripe, "mb_s": series[short(stripe)].mb_s} for stripe in stripes)
        progress(f"{network}, {clients} clients, {short(request)}: {rows[-1]['mb_s']:.1f} MB/s, simulated")
    write_result(
        given.out,
        {
            "rows": rows,
            "simulated": MEANINGS["simulated"],
            "unit": MEANINGS["unit"],
            "published": "rises with the request size to a plateau; (d) 64 KB stripes best at 64 KB, 1 MB from 1 MB on",
            "options": given.as_json,
        },
    )
    of = {(r["network"], r["clients"], r["request_bytes"], r["stripe_bytes"]): r["mb_s"] for r in rows}
    panels = [
        (
            f"{network}, {MANY[network]} clients: a line per stripe",
            {short(s): [of[network, MANY[network], r, s] for r in REQUESTS_BYTES] for s in STRIPES},
        )
        for network in NETWORKS
    ]
    draw_lines(
        given.out / "result.svg", "Request and stripe sizes (segment paper, figure 5), simulated", "request size",
        [short(r) for r in REQUESTS_BYTES], panels, log=True,
    )  # fmt: skip


if __name__ == "__main__":
    finish(main)
