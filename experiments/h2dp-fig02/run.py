"""H2DP paper, figure 2: IOR on four HServers, on four SServers and on all eight, striped by 64 KB whatever they are.

16 processes, 512 KB, a file of 16 GB; sequential and random, read and write. Simulated. The paper's point: eight hybrid
servers are slightly faster than four HServers and slower than four SServers. What other policies make of the same eight
servers, with room for all on the SServers, stands beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import (
    GIB,
    MEANINGS,
    Point,
    arguments,
    contenders,
    figures,
    finish,
    home_of,
    progress,
    run_points,
    write_result,
)
from h2dp import papers_cluster
from pictures import draw_bars

HERE = home_of(__file__)
PLATFORMS = {"4 HServers": (4, 0), "4 SServers": (0, 4), "hybrid": (4, 4)}
PATTERNS = {
    f"{kind} {operation}": {"kind": kind, "reads": 0, "writes": 0, f"{operation}s": 1}
    for kind in ("sequential", "random")
    for operation in ("read", "write")
}
FILE_BYTES = 16 * GIB
SEEDS, REQUESTS = 2, 2_000


def main() -> None:
    given = arguments(__doc__ or "", HERE, SEEDS, REQUESTS)
    pairs = [(pattern, platform) for pattern in PATTERNS for platform in PLATFORMS]
    points = []
    for pattern, platform in pairs:
        changes = {key: value * given.requests if value == 1 else value for key, value in PATTERNS[pattern].items()}
        # Whole on the SServers, where there are any: this figure is about speed, not about room.
        cluster = papers_cluster(*PLATFORMS[platform], file_bytes=FILE_BYTES, share=1.5)
        compared = contenders() if platform == "hybrid" else contenders(("def",))
        points.append(Point(HERE / "workload.toml", cluster, compared, changes))
    rows = []
    for (pattern, platform), series in zip(pairs, run_points(points, given.seeds), strict=True):
        rows.append({"pattern": pattern, "platform": platform, **figures(series)})
        progress(f"{pattern}, {platform}: def {rows[-1]['def']:.0f} MB/s, simulated")
    of = {(row["pattern"], row["platform"]): row["def"] for row in rows}
    bars = {platform: [of[pattern, platform] for pattern in PATTERNS] for platform in PLATFORMS}
    slightly = [of[pattern, "hybrid"] / of[pattern, "4 HServers"] for pattern in PATTERNS]
    below = [of[pattern, "hybrid"] / of[pattern, "4 SServers"] for pattern in PATTERNS]
    write_result(
        given.out,
        {
            "rows": rows,
            **MEANINGS,
            "hybrid_over_hservers": dict(zip(PATTERNS, slightly, strict=True)),
            "hybrid_over_sservers": dict(zip(PATTERNS, below, strict=True)),
            "published": "hybrid slightly better than four HServers, worse than four SServers; no numbers",
            "options": given.as_json,
        },
    )
    draw_bars(
        given.out / "result.svg", "IOR under fixed 64 KB stripes (H2DP, figure 2), simulated", "pattern",
        list(PATTERNS), [("", bars)],
    )  # fmt: skip


if __name__ == "__main__":
    finish(main)
