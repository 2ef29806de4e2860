"""H2DP paper, figure 11: what dynamic migration (DDM) gains at four request sizes, reads and writes. Simulated.

Everything is an eighth of the paper's set-up (file 16 GiB, regions 8 MiB, and so the windows), the copies' own traffic
included. "w/o" is H2DP whose regions stay where window 0 puts them. How the hot set moves the paper does not say: by
114 of 2,048 regions here, as in docs/figure11.md, which has the same figure modelled and run on emulated devices.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from typing import Any

from common import (
    GIB,
    KIB,
    MEANINGS,
    MIB,
    Contender,
    Point,
    arguments,
    figures,
    finish,
    gain,
    home_of,
    run_points,
    shown,
    write_result,
)
from h2dp import WORKLOAD, papers_cluster
from pictures import draw_bars
from stripewise.units import format_size

SIZES = (64 * KIB, 256 * KIB, MIB, 4 * MIB)
FILE_BYTES, REGION_BYTES = 16 * GIB, 8 * MIB
SHIFT, WINDOWS = 114, 4
#: MB/s that windows are as long for: about what H2DP has, so that requests fill them. With --requests as they are that
#: is 76 s, an eighth of the paper's ten minutes.
MB_S = 330
#: Section 5.3, reads.
PUBLISHED = {64 * KIB: {"gain": 0.26, "moved": 0.17}, 4 * MIB: {"gain": 0.05}}
SEEDS, REQUESTS = 1, 48_000


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    # --requests are those of 64 KiB; larger ones move the same bytes with fewer.
    cluster = papers_cluster(file_bytes=FILE_BYTES, region_bytes=REGION_BYTES)
    places = [(size, operation) for operation in ("read", "write") for size in SIZES]
    points = []
    for size, operation in places:
        each = max(WINDOWS, given.requests * SIZES[0] // size)
        window_s = each * size * 32 / WINDOWS / (MB_S * 1e6)
        options = {"region_bytes": REGION_BYTES, "window_ns": round(window_s * 1e9)}
        changes: dict[str, Any] = {
            "request_bytes": size, "file_bytes": FILE_BYTES, "region_bytes": REGION_BYTES, "windows": WINDOWS,
            "shift": SHIFT, "window_seconds": window_s, "reads": 0, "writes": 0, f"{operation}s": each,
        }  # fmt: skip
        compared = (Contender("w/o", "h2dp", options, is_still=True), Contender("h2dp", "h2dp", options))
        points.append(Point(WORKLOAD, cluster, compared, changes, in_flight=True))
    rows: list[dict[str, Any]] = []
    for (size, operation), series in zip(places, run_points(points, given.seeds), strict=True):
        found = {
            "gain": gain(series["h2dp"].mb_s, series["w/o"].mb_s),
            "moved_share_of_file": series["h2dp"].moved_bytes / FILE_BYTES,
        }
        published = PUBLISHED.get(size, {}) if operation == "read" else {}
        rows.append(
            {"request_bytes": size, "operation": operation, **figures(series, False), **found, "published": published}
        )
        shown(f"{format_size(size)}, {operation}", rows[-1], ["w/o", "h2dp"])
    write_result(
        given.out,
        {
            "rows": rows,
            **MEANINGS,
            "gain": "with migration over without, less 1, while requests are in flight",
            "moved_share_of_file": "bytes copied, in and out, all windows, over the file's size",
            "options": {**given.as_json, "shift": SHIFT, "windows": WINDOWS},
        },
    )
    panels = [
        (kind, {name: [row[name] for row in rows if row["operation"] == kind] for name in ("w/o", "h2dp")})
        for kind in ("read", "write")
    ]
    draw_bars(
        given.out / "result.svg", "Without and with migration (H2DP, figure 11), simulated", "request size",
        [format_size(size) for size in SIZES], panels,
    )  # fmt: skip


if __name__ == "__main__":
    finish(main)
