"""Request tables as collected traces, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from generators import Table

SCHEMA = pa.schema(
    [("process", pa.int32()), ("pid", pa.int32()), ("rank", pa.int32()), ("world", pa.int32()), ("thread", pa.int32()),
     ("layer", pa.string()), ("op", pa.string()), ("file", pa.string()), ("fd", pa.int32()), ("offset", pa.int64()),
     ("requested", pa.int64()), ("done", pa.int64()), ("start_ns", pa.int64()), ("end_ns", pa.int64()),
     ("errno", pa.int32()), ("flags", pa.int32()), ("aux", pa.int32())]
)  # fmt: skip


def write_trace(
    place: Path, table: Table, path: str = "/scratch/out.dat", interval_ns: int = 0, command=("app",)
) -> Path:
    """The table as trace.parquet and meta.json in `place`, which is made; each rank's requests one after another."""
    place.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(place / "trace.parquet", SCHEMA) as writer:
        for rank, requests in table.items():
            rows = len(requests)
            # Without an interval, waits of two very different lengths by turns: no fixed interval.
            starts = [i * interval_ns if interval_ns else i * 1000 + (i * i) % 7 * 120 for i in range(rows)]
            columns = {
                **{name: [rank] * rows for name in ("process", "rank")},
                "pid": [100 + rank] * rows,
                "thread": [100 + rank] * rows,
                "world": [len(table)] * rows,
                "layer": ["posix"] * rows,
                "file": [path] * rows,
                "fd": [5] * rows,
                "op": [op for op, _, _ in requests],
                "offset": [offset for _, offset, _ in requests],
                **{name: [size for _, _, size in requests] for name in ("requested", "done")},
                "start_ns": starts,
                "end_ns": [start + 50 for start in starts],
                **{name: [0] * rows for name in ("errno", "flags", "aux")},
            }
            writer.write_table(pa.table(columns, schema=SCHEMA))
    (place / "meta.json").write_text(json.dumps({"version": 1, "command": list(command)}))
    return place


def read_table(place: Path) -> Table:
    """The requests of each rank in a trace."""
    found: Table = {}
    for row in pq.read_table(place / "trace.parquet").to_pylist():
        found.setdefault(row["rank"], []).append((row["op"], row["offset"], row["done"]))
    return found
