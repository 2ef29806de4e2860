"""The table of cost models, section 7: what layouts deliver to 32 processes at five request sizes.

Simulated: closed loop, queues first come first served, no network, every access pays its startup. README.md says how to
read what comes out.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from common import arguments, draw_lines, gain, progress, run_seeds, write_result  # noqa: E402

from stripewise.cluster import read_cluster  # noqa: E402
from stripewise.policy import policy_named  # noqa: E402
from stripewise.units import format_size  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
SIZES = (64 * KIB, 256 * KIB, 512 * KIB, MIB, 4 * MIB)
#: MB/s, cost models, section 7.
PUBLISHED = {
    "def": (213, 248, 256, 282, 712),
    "h2dp": (81, 214, 401, 710, 1690),
    "whole_region": (460, 1163, 1528, 1852, 1779),
}
POLICIES = ("def", "padp", "psa", "h2dp", "slal")
SEEDS, REQUESTS = 12, 4_000


def row(request_bytes: int, seeds: Sequence[int], requests: int) -> dict[str, Any]:
    """One request size: MB/s by policy, their bounds, and how far chance and the published figures are away."""
    policies = {name: policy_named(name) for name in POLICIES}
    policies["whole_region"] = policy_named(str(HERE / "whole_region.py"))
    changes = {"request_bytes": request_bytes, "reads": requests}
    series = run_seeds(HERE / "workload.toml", changes, read_cluster(HERE / "cluster.toml"), policies, seeds)
    published = {name: figures[SIZES.index(request_bytes)] for name, figures in PUBLISHED.items()}
    bounds = {name: each.bound for name, each in series.items()}
    best = max(bounds, key=lambda name: bounds[name])
    return {
        "request_bytes": request_bytes,
        **{name: each.mean for name, each in series.items()},
        "bound": bounds[best],
        "bound_of": best,
        "bounds": bounds,
        "published": published,
        "off_published": {name: gain(series[name].mean, figure) for name, figure in published.items()},
        "standard_error": {name: each.error for name, each in series.items()},
        "spread_of_seeds": {name: each.spread for name, each in series.items()},
    }


def main() -> None:
    given = arguments(__doc__ or "", SEEDS, REQUESTS)
    rows = []
    for size in SIZES:
        rows.append(row(size, range(1, given.seeds + 1), given.requests))
        shown = ", ".join(f"{name} {rows[-1][name]:.1f}" for name in (*POLICIES, "whole_region", "bound"))
        progress(f"{format_size(size)}: {shown} MB/s, simulated")
    out = given.out or HERE
    write_result(
        out,
        {
            "rows": rows,
            "simulated": True,
            "unit": "MB/s (10^6 bytes), mean over the seeds",
            "bound": "the largest of the row's `bounds`: what no schedule beats on the best of these layouts",
            "bounds": "by policy, for its own layout: max(busiest server's demand, sum of requests alone / processes)",
            "published": "cost models, section 7; off_published is simulated over published, less 1",
            "standard_error": "of the mean, as a share of it",
            "spread_of_seeds": "best less worst seed, as a share of the mean",
            "options": {"seeds": given.seeds, "requests_per_process": given.requests, "stripe_bytes": 64 * KIB},
        },
    )
    lines = {name: [each[name] for each in rows] for name in (*POLICIES, "whole_region")}
    draw_lines(
        out / "result.svg", "Layouts under 32 processes, reads, simulated", "request size",
        [format_size(size) for size in SIZES], lines, PUBLISHED, [each["bound"] for each in rows],
    )  # fmt: skip


if __name__ == "__main__":
    main()
