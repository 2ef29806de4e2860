"""Small runs, each with the causes that are to be found in it."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support import KIB, MIB


def write_rows(place, rows):
    """A trace of (rank, op, file, offset, bytes), a microsecond each, and its directory."""
    place.mkdir(exist_ok=True)
    columns = list(zip(*rows, strict=True))
    start = np.arange(len(rows), dtype=np.int64) * 1000
    made = {
        "process": pa.array(columns[0], pa.int32()), "pid": pa.array(columns[0], pa.int32()),
        "rank": pa.array(columns[0], pa.int32()), "world": pa.array([max(columns[0]) + 1] * len(rows), pa.int32()),
        "op": pa.array(columns[1], pa.string()), "file": pa.array(columns[2], pa.string()),
        "offset": pa.array(columns[3], pa.int64()), "done": pa.array(columns[4], pa.int64()),
        "layer": pa.array(["mpi" if op.startswith("mpi") else "posix" for op in columns[1]], pa.string()),
        "start_ns": start, "end_ns": start + 1000,
    }  # fmt: skip
    pq.write_table(pa.table(made), place / "trace.parquet")
    return place


def runs_of(text):
    """The runs in a page of `show --html`."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])[
        "runs"
    ]


def rng(seed):
    return np.random.default_rng(seed)


def opens(ranks, file="/d/f"):
    return [(rank, "open", file, None, 3) for rank in range(ranks)]


def zipf_reads(count, size, places):
    chance = rng(1)
    weights = 1 / np.arange(1, places + 1) ** 1.2
    at = chance.permutation(places)[chance.choice(places, count, p=weights / weights.sum())]
    return [(int(k) % 4, "read", "/d/f", int(place) * size, size) for k, place in enumerate(at)]


RUNS = {
    "none, large requests in order": (
        [(r, "write", "/d/f", (r * 8 + k) * 4 * MIB, 4 * MIB) for k in range(8) for r in range(4)], [],
    ),
    "none, strided by 1 MiB": ([(r, "write", "/d/f", (k * 4 + r) * MIB, MIB) for k in range(64) for r in range(4)], []),
    "small, interleaved": (
        [(r, "write", "/d/f", (k * 4 + r) * 2 * KIB, 2 * KIB) for k in range(100) for r in range(4)], ["interleaved"],
    ),
    "a small collective buffer": (
        opens(4) + [(0, "write", "/d/f", k * 64 * KIB, 64 * KIB) for k in range(200)], ["collective_buffer"],
    ),
    "the first process writes, and nobody else opens": (
        opens(1) + [(0, "write", "/d/f", k * 4 * KIB, 4 * KIB) for k in range(200)], ["small_requests"],
    ),
    "a hot region": (zipf_reads(4000, 16 * KIB, 16384), ["hot_region"]),
    "no order, no preferred place": (
        [(0, "read", "/d/f", int(k) * 16 * KIB, 16 * KIB) for k in rng(2).permutation(2000)],
        ["scattered"],
    ),
    "writes in no order": (
        [(k % 2, "write", "/d/f", 16 * KIB * int(p), 9000) for k, p in enumerate(rng(3).permutation(900))],
        ["scattered"],
    ),
    "records with gaps": ([(0, "read", "/d/f", k * 100 * KIB, 4 * KIB) for k in range(300)], ["gaps"]),
    "one rank of four": (
        opens(1) + [(0, "write", "/d/f", k * 4 * MIB, 4 * MIB) for k in range(16)] + [(3, "read", "/d/g", 0, 10)],
        ["uneven"],
    ),
    "writes that interleave, and reads of a hot region": (
        [(r, "write", "/d/f", (k * 4 + r) * 16 * KIB, 16 * KIB) for k in range(4096) for r in range(4)]
        + zipf_reads(4000, 16 * KIB, 16384),
        ["interleaved", "hot_region"],
    ),
    "sieving": (
        [(0, "mpi_read", "/d/f", k * MIB, 64 * KIB) for k in range(16)]
        + [(0, "read", "/d/f", k * MIB, MIB) for k in range(16)],
        ["sieving"],
    ),
    "the start of Python": (
        [(0, "stat", f"/v/lib/python3.11/site-packages/m/{k}.py", None, 0) for k in range(900)]
        + [(0, "read", "/d/f", 0, 10)],
        [],
    ),
    "names": (
        [(k % 4, "open", f"/d/{k}", None, 3) for k in range(600)] + [(0, "read", "/d/0", 0, 10)], ["metadata"],
    ),
}  # fmt: skip
