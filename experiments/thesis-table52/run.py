"""Thesis, tables 4.1 and 5.2: statistics of the traces as published beside those of their look-alikes. Counted."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from typing import Any

from common import arguments, finish, home_of, progress, write_result
from shingled import look_alike, shared_traces
from shingled_pictures import draw_groups
from stripewise.swd.statistics import statistics

REQUESTS = 200_000
KEYS = ("interarrival ms", "distance blocks", "highest block", "request blocks", "write share")
BYTES = 512.0
#: Rows of table 4.1 (its requests' mean size is not printed) and of table 5.2, where distance and highest address are
#: bytes (36 GB of an array, a distance of 1 GB): here in blocks of 512.
PUBLISHED = {
    "web_0": (297.9411468, 6245717.249, 71116454, None, 0.70123),
    "hp_c2247": (14.19225897, 273730.0428, 2049836, None, 0.488449),
    "Financial2": (0.06453672, 591141.4663, 2676179, None, 0.096978),
    "mds_0": (499.41, 968339427.25 / BYTES, 36417159175 / BYTES, 18, 0.8811),
    "usr_0": (270.25, 1682254833.62 / BYTES, 17077784583 / BYTES, 45, 0.5958),
    "stg_0": (297.79, 1332575418.89 / BYTES, 11612643455 / BYTES, 23, 0.8481),
    "web_1": (3757.39, 2627690359.97 / BYTES, 72831761927 / BYTES, 58, 0.4589),
}


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), 1, REQUESTS)
    loads = [(name, look_alike(name, 1.0, given.requests)) for name in PUBLISHED]
    loads += [("", load) for load in shared_traces()]
    rows: list[dict[str, Any]] = []
    for name, load in loads:
        summary = statistics(load.made(1))["summary"]
        measured = (
            summary["interarrival_ms"],
            summary["distance_blocks"],
            float(summary["lba_max"]),
            summary["request_blocks"],
            summary["writes"] / summary["requests"],
        )
        figures = {key: float(value) for key, value in zip(KEYS, measured, strict=True)}
        published = {
            key: float(value)
            for key, value in zip(KEYS, PUBLISHED.get(name, (None,) * len(KEYS)), strict=True)
            if value is not None
        }
        rows.append({"workload": load.name, **figures, "published": published})
        progress(f"{load.name}: " + ", ".join(f"{key} {value:.5g}" for key, value in figures.items()))
    write_result(
        given.out,
        {
            "rows": rows,
            "simulated": True,
            "modelled": "counted from the requests; nothing was run on a disk",
            "column_label": "counted",
            "unit": "as the columns say; blocks of 512 bytes",
            "published": "tables 4.1 and 5.2, addresses of the latter in blocks",
            "options": given.as_json,
        },
    )
    panels = []
    for heading, names in (("table 4.1", list(PUBLISHED)[:3]), ("table 5.2", list(PUBLISHED)[3:])):
        some = [each for each in rows if each["workload"].removesuffix(" look-alike") in names]
        keys = [key for key in KEYS if key in some[0]["published"]]
        panels.append((heading, names, {key: [each[key] / each["published"][key] for each in some] for key in keys}))
    draw_groups(
        given.out / "result.svg", "Look-alikes over the published traces, counted", "ours over published", panels
    )


if __name__ == "__main__":
    finish(main)
