"""Segment paper, figure 1: which of four servers strided requests of 4 KB, 12 KB apart, fall on, by stripe. Modelled.

Counted, not run: bytes of each server by the model's equations (section V.A). A stripe of 1 KB is below the granule of
4 KiB that plans have; for the count that does not matter.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from common import KIB, arguments, finish, home_of, progress, write_result
from pictures import draw_bars
from stripewise.model.segment import imbalance, server_demand

SERVERS = 4
REQUEST_BYTES, GAP_BYTES = 4 * KIB, 12 * KIB
#: "if the stripe size is 4 KB or 8 KB, the data accesses fall only into 1 or 2 I/O servers", evenly at 1 KB and 16 KB.
PUBLISHED_SERVERS_USED = {KIB: 4, 4 * KIB: 1, 8 * KIB: 2, 16 * KIB: 4}


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), 1, 4_096)
    offsets = np.arange(given.requests, dtype=np.int64) * (REQUEST_BYTES + GAP_BYTES)
    rows = []
    for stripe, published in PUBLISHED_SERVERS_USED.items():
        sizes, once = np.full_like(offsets, REQUEST_BYTES), np.ones_like(offsets)
        _, served = server_demand(offsets, sizes, once, stripe, SERVERS)
        shares = (served / served.sum()).tolist()
        rows.append(
            {
                "stripe_bytes": stripe,
                "servers_used": int((served > 0).sum()),
                "imbalance": float(imbalance(served.astype(np.float64))),
                "published": {"servers_used": published},
                "share_of_server": shares,
            }
        )
        progress(f"{stripe // KIB} KB: {rows[-1]['servers_used']} servers, modelled")
    write_result(
        given.out,
        {
            "rows": rows,
            "simulated": True,
            "modelled": "counted by the model's equations, nothing was run",
            "unit": "share_of_server: share of the bytes that each server serves",
            "published": "servers that are used",
        },
    )
    bars = {f"server {n}": [row["share_of_server"][n] for row in rows] for n in range(SERVERS)}
    draw_bars(
        given.out / "result.svg", "Strided requests by server (segment paper, figure 1), modelled", "stripe",
        [f"{stripe // KIB} KB" for stripe in PUBLISHED_SERVERS_USED], [("", bars)], "share of all bytes",
    )  # fmt: skip


if __name__ == "__main__":
    finish(main)
