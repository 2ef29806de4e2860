"""Small traces for the tests of profiles: rows of calls as `collect` writes them."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq

from stripewise.pioneer.operations import by_number

MS = 1_000_000
COLLECTIVE, NONBLOCKING, AT_POSITION, SHARED_POINTER = 4, 8, 16, 2048
TYPES = {
    "process": pa.int32(), "pid": pa.int32(), "rank": pa.int32(), "world": pa.int32(), "thread": pa.int32(),
    "seq": pa.int64(), "layer": pa.string(), "op": pa.string(), "file": pa.string(), "file2": pa.string(),
    "fd": pa.int32(), "handle": pa.int32(), "comm_size": pa.int32(), "offset": pa.int64(), "requested": pa.int64(),
    "done": pa.int64(), "start_ns": pa.int64(), "end_ns": pa.int64(), "errno": pa.int32(), "flags": pa.int32(),
    "aux": pa.int32(), "parent": pa.int64(), "parent_thread": pa.int32(),
}  # fmt: skip


#: Calls on descriptors.
HELD = {"open", "close", "read", "write", "seek", "truncate", "sync", "mmap"}


class Run:
    """Calls of a run, each 1 ms, 2 ms after the one before in its process; on descriptor 3 unless told."""

    def __init__(self, world=2, world_known=None):
        self.world = world_known or world
        self.rows = {rank: [] for rank in range(world)}
        self.meta = {"version": 1, "command": ["/secret/bin/app", "--user", "alice"], "cwd": "/d", "files": []}

    def call(self, rank, op, file, offset=None, size=0, **more):
        rows = self.rows[rank]
        start = more.pop("start", 2 * MS * len(rows))
        is_mpi = op.startswith("mpi") or op == "view"
        rows.append(
            {
                "process": rank, "pid": 100 + rank, "rank": rank, "world": self.world, "thread": 1, "seq": len(rows),
                "layer": "mpi" if is_mpi else "posix", "op": op, "file": file, "fd": 3 if op in HELD else None,
                "handle": 1 if is_mpi else None, "comm_size": self.world if is_mpi else None, "offset": offset,
                "requested": size, "done": size, "start_ns": start, "end_ns": start + more.pop("took", MS),
                "errno": 0, "flags": 0, "aux": None if is_mpi else 0, **more,
            }
        )  # fmt: skip
        return len(rows) - 1

    def opened(self, rank, file, flags=0o101, **more):
        return self.call(rank, "open", file, 0, 0, done=more.get("fd", 3), aux=flags, **more)

    def write(self, place):
        place.mkdir(exist_ok=True)
        schema = pa.schema(list(TYPES.items()))
        with pq.ParquetWriter(place / "trace.parquet", schema) as out:
            for rows in self.rows.values():
                columns = {name: [row.get(name) for row in rows] for name in TYPES}
                out.write_table(pa.table(columns, schema=schema))
        (place / "meta.json").write_text(json.dumps(self.meta))
        return place


def shown(gwp, *columns):
    """Names of the operations, and these columns, row by row."""
    names = by_number()
    return [
        (names[op].name, *values) for op, *values in zip(gwp.op.tolist(), *(c.tolist() for c in columns), strict=True)
    ]
