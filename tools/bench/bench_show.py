"""Pages of traces, for `make bench`: seconds from the trace to the page of `show --html`, and its bytes."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench_common import FULL, Effort

from stripewise.findings import DEFAULT_CLUSTER, facts_of, findings_of
from stripewise.view import Shown, picture_of, read_requests, write_page

RANKS = 64
#: Seconds for 10 million requests, and bytes of the page.
GOAL_S, GOAL_BYTES = 60.0, 3_000_000


def write_trace(place: Path, count: int) -> int:
    """A shared file, half of whose ranks write strided and then read at random; how many requests it has."""
    place.mkdir()
    chance, each = np.random.default_rng(1), max(1, count // RANKS)
    writer = None
    for rank in range(RANKS):
        number = np.arange(each, dtype=np.int64)
        half = each // 2
        strided = (number * RANKS + rank) * 4096
        offset = np.where(number < half, strided, chance.integers(0, each * RANKS, each) * 4096)
        start = np.cumsum(chance.integers(500, 2000, each))
        whole = {name: pa.array(np.full(each, rank), pa.int32()) for name in ("process", "pid", "rank")}
        table = pa.table({
            **whole, "world": pa.array(np.full(each, RANKS), pa.int32()),
            "op": np.where(number < half, "write", "read"), "file": np.full(each, "/scratch/shared"),
            "offset": offset, "done": np.full(each, 4096), "start_ns": start, "end_ns": start + 400,
        })  # fmt: skip
        writer = writer or pq.ParquetWriter(place / "trace.parquet", table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return each * RANKS


def showing(scratch: Path, effort: Effort) -> dict[str, object]:
    """The page of a trace, findings and patterns included."""
    count = write_trace(scratch / "shown", 10_000_000 if effort == FULL else 100_000)
    begun = time.perf_counter()
    requests = read_requests(scratch / "shown")
    found = findings_of(facts_of(scratch / "shown"), DEFAULT_CLUSTER)
    write_page([Shown(picture_of(requests, scratch / "shown"), found)], scratch / "page.html")
    seconds = time.perf_counter() - begun
    size = (scratch / "page.html").stat().st_size
    return {
        "name": "show.html_seconds_10m",
        "value": round(seconds, 2),
        "unit": f"s for {count} requests of {RANKS} ranks, {size} bytes",
        "baseline": f"goals {GOAL_S:.0f} s, {GOAL_BYTES} bytes",
        "ratio": round(seconds / GOAL_S, 3),
        "bytes": size,
    }
