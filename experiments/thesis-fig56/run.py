"""Thesis, figures 5.6 and 5.8: locality of track updates and of successive writes. Counted, not run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from typing import Any

from common import arguments, finish, home_of, progress, write_result
from shingled import Load, look_alike, shared_traces
from shingled_pictures import draw_shares
from stripewise.swd.statistics import NEAR_BLOCKS, TRACK_BLOCKS, statistics

REQUESTS = 200_000
#: Other tracks updated between two updates of a track: fewer are called recent here.
RECENT_TRACKS = 256
NAMES = ("mds_0", "usr_0", "stg_0", "web_1", "web_0", "hp_c2247", "Financial2")
#: Figure 5.8 in words: writes no further than 10,000 blocks from the one before. Of mds_0 it says nothing.
PUBLISHED = {"usr_0": 0.15, "stg_0": 0.15, "web_1": 0.30}


def share_below(steps: list[dict[str, Any]], bound: int) -> float:
    """The share of a distribution's values below `bound`."""
    return max((step["share"] for step in steps if step["below"] <= bound), default=0.0)


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), 1, REQUESTS)
    loads: list[tuple[str, Load]] = [(name, look_alike(name, 1.0, given.requests)) for name in NAMES]
    loads += [("", load) for load in shared_traces()]
    loads += [("", Load("uniform in 140 GB", "uniform", requests=given.requests))]
    rows, stacks, distances = [], {}, {}
    for name, load in loads:
        space = None if name or load.trace else 140 * 10**9 // 512
        summary = statistics(load.made(1), space)["summary"]
        stack, near = summary["stack_distances"], summary["write_distances"]
        rows.append(
            {
                "workload": load.name,
                "near writes": near["near_share"],
                "recent updates": share_below(stack["steps"], RECENT_TRACKS),
                "published": {"near writes": PUBLISHED[name]} if name in PUBLISHED else {},
            }
        )
        progress(f"{load.name}: {rows[-1]}")
        stacks[load.name] = ([step["below"] for step in stack["steps"]], [step["share"] for step in stack["steps"]])
        distances[load.name] = ([step["below"] for step in near["steps"]], [step["share"] for step in near["steps"]])
    write_result(
        given.out,
        {
            "rows": rows,
            "simulated": True,
            "modelled": "counted from the requests; nothing was run on a disk",
            "column_label": "counted",
            "unit": "shares",
            "near writes": f"writes no further than {NEAR_BLOCKS:,} blocks from the one before",
            "recent updates": f"repeated updates of a track of {TRACK_BLOCKS:,} blocks with fewer than "
            f"{RECENT_TRACKS} other tracks updated since",
            "published": "figure 5.8, as the text gives it",
            "options": given.as_json,
        },
    )
    draw_shares(
        given.out / "result.svg", "Locality of writes (thesis, figures 5.6 and 5.8), counted",
        [("other tracks updated since a track's last update", stacks), ("blocks from a write to the next", distances)],
    )  # fmt: skip


if __name__ == "__main__":
    finish(main)
