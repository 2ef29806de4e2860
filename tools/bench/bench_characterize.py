"""Profiles of workloads, for `make bench`: records of a trace a second, from the table to the profile."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench_common import Effort

from stripewise.pioneer.characterization.characteristics import profile_of
from stripewise.pioneer.extraction.gwp import read_gwp

RANKS = 4
#: Records a second.
GOAL = 1_000_000
TYPES = {
    "process": pa.int32(), "pid": pa.int32(), "rank": pa.int32(), "world": pa.int32(), "thread": pa.int32(),
    "seq": pa.int64(), "layer": pa.string(), "op": pa.string(), "file": pa.string(), "fd": pa.int32(),
    "handle": pa.int32(), "comm_size": pa.int32(), "offset": pa.int64(), "requested": pa.int64(), "done": pa.int64(),
    "start_ns": pa.int64(), "end_ns": pa.int64(), "errno": pa.int32(), "flags": pa.int32(), "aux": pa.int32(),
    "parent": pa.int64(), "parent_thread": pa.int32(),
}  # fmt: skip


def write_trace(place: Path, records: int) -> int:
    """A trace of strided writes to a shared file, each with the descriptor's below it, and of a log of its own for
    each rank; the root makes some more here and there. How many records it has."""
    place.mkdir()
    schema = pa.schema(list(TYPES.items()))
    count = max(64, records // RANKS // 3)
    total = 0
    with pq.ParquetWriter(place / "trace.parquet", schema) as out:
        for rank in range(RANKS):
            columns = _columns(rank, count, np.random.default_rng(rank))
            table = pa.table({name: pa.array(columns[name], kind) for name, kind in TYPES.items()}, schema=schema)
            out.write_table(table)
            total += table.num_rows
    return total


def _columns(rank: int, count: int, chance: np.random.Generator) -> dict[str, object]:
    """Three records a round: a call of MPI, the descriptor's inside it, and a line of the log; opens and closes."""
    rounds = np.repeat(np.arange(count), 3)
    what = np.tile([0, 1, 2], count)
    if rank == 0:
        # Lines that the root alone writes.
        keep = np.ones(3 * count, np.int64)
        keep[chance.choice(np.flatnonzero(what == 2), count // 100, replace=False)] = 2
        rounds, what = np.repeat(rounds, keep), np.repeat(what, keep)
    kinds = np.concatenate([[3, 4], what, [5, 6]])
    at = np.concatenate([[0, 0], rounds, [count, count]])
    rows = len(kinds)
    seq = np.arange(rows)
    start = np.cumsum(chance.integers(1_000, 20_000, rows))
    is_mpi = np.isin(kinds, [0, 3, 5])
    ops = np.array(["mpi_write", "write", "write", "mpi_open", "open", "mpi_close", "close"])[kinds]
    inside = kinds == 1
    shared = is_mpi | inside
    same = [rank] * rows
    return {
        "process": same, "pid": same, "rank": same, "world": [RANKS] * rows, "thread": [1] * rows, "seq": seq,
        "layer": np.where(is_mpi, "mpi", "posix"), "op": ops,
        "file": np.where(shared, "/scratch/run/shared.dat", f"/scratch/run/log.{rank}"),
        "fd": pa.array(np.where(inside, 9, 3), pa.int32(), mask=is_mpi),
        "handle": pa.array([1] * rows, pa.int32(), mask=~is_mpi),
        "comm_size": pa.array([RANKS] * rows, pa.int32(), mask=~is_mpi),
        "offset": np.where(shared, (at * RANKS + rank) * 65536, at * 80),
        "requested": np.where(kinds < 3, 65536, 5), "done": np.where(kinds < 3, 65536, 3),
        "start_ns": start, "end_ns": start + 900, "errno": [0] * rows, "flags": np.where(kinds == 2, 16, 0),
        "aux": pa.array(np.where(kinds == 4, 0o101, 0), pa.int32(), mask=is_mpi),
        "parent": pa.array(seq - 1, pa.int64(), mask=~inside),
        "parent_thread": pa.array([1] * rows, pa.int32(), mask=~inside),
    }  # fmt: skip


def characterizing(scratch: Path, effort: Effort) -> dict[str, object]:
    """The profile of a trace, and of that time what reading and comparing the processes takes."""
    records = write_trace(scratch / "characterized", effort.segments)
    begun = time.perf_counter()
    gwp = read_gwp(scratch / "characterized")
    read_s = time.perf_counter() - begun
    profile_of(gwp)
    whole_s = time.perf_counter() - begun
    assert gwp.records == records
    return {
        "name": "pioneer.characterize_records_per_s",
        "value": round(records / whole_s),
        "unit": f"records/s, {records} of {RANKS} ranks, from trace.parquet to the profile",
        "baseline": f"goal {GOAL}; to the generic workload path alone: {records / read_s:.0f}",
        "ratio": round(records / whole_s / GOAL, 3),
        "path_requests": len(gwp),
    }
