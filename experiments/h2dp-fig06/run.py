"""H2DP paper, figure 6: I/O times of the servers under four policies, IOR, 256 KB. Simulated.

Left of a pair the mean of the HServers, right of the SServers, as shares of H2DP's SServers; the marks are the least
and the most busy server. An I/O time is the time that a server is busy.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from statistics import fmean
from typing import Any

from common import (
    KIB,
    MEANINGS,
    Point,
    Series,
    arguments,
    contenders,
    finish,
    home_of,
    progress,
    run_points,
    write_result,
)
from h2dp import POLICIES, WORKLOAD, papers_cluster
from pictures import draw_bars

SEEDS, REQUESTS = 2, 4_000


def times(series: Series) -> dict[str, Any]:
    """Busy seconds by class: mean, least, most."""
    return {
        name: {
            "mean": fmean(fmean(each) for each in busy),
            "least": fmean(min(each) for each in busy),
            "most": fmean(max(each) for each in busy),
        }
        for name, busy in (
            ("hservers", [run.hdd_busy_s for run in series.runs]),
            ("sservers", [run.ssd_busy_s for run in series.runs]),
        )
    }


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    point = Point(
        WORKLOAD, papers_cluster(), contenders(POLICIES), {"request_bytes": 256 * KIB, "reads": given.requests}
    )
    (series,) = run_points([point], given.seeds)
    found = {name: times(each) for name, each in series.items()}
    unit = found["h2dp"]["sservers"]["mean"]
    rows = []
    for name, each in found.items():
        shares = {kind: {key: value / unit for key, value in figures.items()} for kind, figures in each.items()}
        means = {kind: share["mean"] for kind, share in shares.items()}
        ratio = means["hservers"] / means["sservers"]
        rows.append({"policy": name, **means, "hservers_over_sservers": ratio, "ranges": shares})
        progress(f"{name}: HServers {means['hservers']:.2f}, SServers {means['sservers']:.2f}, simulated")
    write_result(
        given.out,
        {
            "rows": rows,
            "simulated": MEANINGS["simulated"],
            "unit": "busy time as a share of the mean of H2DP's SServers",
            "published": "DEF skewed, PADP, PSA, H2DP more even; SServers of PADP and PSA less busy than H2DP's",
            "options": given.as_json,
        },
    )
    kinds = ("hservers", "sservers")
    draw_bars(
        given.out / "result.svg", "I/O times of servers (H2DP, figure 6), simulated", "policy",
        list(found), [("", {kind: [row[kind] for row in rows] for kind in kinds})],
        "busy time, H2DP's SServers = 1",
        {kind: [(row["ranges"][kind]["least"], row["ranges"][kind]["most"]) for row in rows] for kind in kinds},
    )  # fmt: skip


if __name__ == "__main__":
    finish(main)
