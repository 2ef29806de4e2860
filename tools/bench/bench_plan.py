"""Planning at scale, for `make bench`: ten million records under all policies, and what grouping requests saves."""

import itertools
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench_common import Effort

from stripewise.cluster import Cluster, Network, Target
from stripewise.model import Cycle, parameters, request_cost
from stripewise.policy import POLICIES, PlanOptions, policy_named
from stripewise.policy.toolkit.regions import build_regions
from stripewise.policy.toolkit.vss import grid, search_pairs
from stripewise.workload import REQUEST_DTYPE, FileRequests, Workload
from stripewise.workload.trace import read_trace

FILES, PROCESSES = 100, 64
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
REGION = 64 * MIB
#: Issue to end of the whole: read the trace and plan with every policy.
GOAL_S = 20


def cluster() -> Cluster:
    """12 disks of 3 ms + 100 MB/s and 4 SSDs of 0.1 ms + 400 MB/s that hold a tenth of the data."""
    disks = [Target(f"hdd{n}", "hdd", "dir", Path(f"/hdd{n}"), 0, 3e-3, 3e-3, 1e-8, 1e-8) for n in range(12)]
    ssds = [Target(f"ssd{n}", "ssd", "dir", Path(f"/ssd{n}"), 10 * GIB, 1e-4, 1e-4, 2.5e-9, 2.5e-9) for n in range(4)]
    return Cluster(Path("cluster.toml"), Network(), (*disks, *ssds))


def write_trace(path: Path, records: int) -> None:
    """A collected trace of aligned requests of three sizes, region popularity Zipf-like, one row group per process."""
    rng = np.random.default_rng(1)
    each = records // PROCESSES
    names = [f"/data/file{n:03d}" for n in range(FILES)]
    writer = None
    for rank in range(PROCESSES):
        size = rng.choice([64 * KIB, 256 * KIB, MIB], each)
        start = np.cumsum(rng.integers(100, 2_000_000, each))
        codes = {
            "layer": (np.zeros(each, np.int32), ["posix"]),
            "op": (rng.integers(0, 2, each).astype(np.int32), ["read", "write"]),
            "file": (rng.integers(0, FILES, each).astype(np.int32), names),
        }
        columns = {key: pa.DictionaryArray.from_arrays(*pair).cast(pa.string()) for key, pair in codes.items()}
        columns |= {
            "rank": pa.array(np.full(each, rank, np.int32)),
            "world": pa.array(np.full(each, PROCESSES, np.int32)),
            "pid": pa.array(np.full(each, 1000 + rank, np.int32)),
            "offset": pa.array(rng.zipf(1.3, each) % 64 * REGION + rng.integers(0, 64, each) * MIB),
            "done": pa.array(size),
            "start_ns": pa.array(start),
            "end_ns": pa.array(start + 500_000),
            "flags": pa.array(np.zeros(each, np.int32)),
        }
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def records_per_s(scratch: Path, records: int) -> dict[str, object]:
    """All policies but `best`, which has a time limit instead, on one trace; reading it included."""
    trace = scratch / "trace.parquet"
    write_trace(trace, records)
    on = cluster()
    marks = [("read", time.perf_counter())]
    workload = read_trace(trace)
    names = sorted(set(POLICIES) - {"best"})
    for name in names:
        marks.append((name, time.perf_counter()))
        policy_named(name).plan(workload, on, PlanOptions(region_bytes=REGION))
    marks.append(("end", time.perf_counter()))
    total = marks[-1][1] - marks[0][1]
    parts = ", ".join(f"{name} {after[1] - at:.1f}" for (name, at), after in itertools.pairwise(marks))
    return {
        "name": "plan.records_per_s",
        "value": round(records / total),
        "unit": f"records/s, {records} records on {FILES} files, read and planned by {', '.join(names)}",
        "baseline": f"goal {GOAL_S} s; {total:.1f} s: {parts}",
        "ratio": round(GOAL_S / total, 3),
    }


def grouped_speedup(count: int) -> dict[str, object]:
    """Algorithm 1 over grouped requests against pricing every request under every pair."""
    rng = np.random.default_rng(2)
    requests = np.zeros(count, dtype=REQUEST_DTYPE)
    requests["offset"] = rng.integers(0, 16, count) * REGION + rng.integers(0, 256, count) * 256 * KIB
    requests["size"], requests["write"] = 256 * KIB, rng.random(count) < 0.5
    workload = Workload((FileRequests("/data/file", requests, 16 * REGION),), PROCESSES)
    on = cluster()
    params = parameters(on, PROCESSES)
    started = time.perf_counter()
    found = search_pairs(build_regions(workload, REGION), params, 12, 4, 4 * KIB)
    grouped_s = time.perf_counter() - started
    started = time.perf_counter()
    region = requests["offset"] // REGION
    best = np.full(16, np.inf)
    for h, s in grid(256 * KIB, 12, 4, 4 * KIB):
        each = request_cost(
            params, Cycle.pair(12, 4, h, s), requests["offset"] % REGION, requests["size"], requests["write"]
        )
        best = np.minimum(best, np.bincount(region, weights=each, minlength=16))
    brute_s = time.perf_counter() - started
    assert np.allclose(best, found.cost_s, rtol=1e-9), "grouped and brute force disagree"
    return {
        "name": "model.grouped_speedup",
        "value": round(brute_s / grouped_s, 1),
        "unit": "times faster, grouping included",
        "baseline": f"every request under every pair, vectorised by numpy: {brute_s:.2f} s; grouped {grouped_s:.3f} s",
        "ratio": round(brute_s / grouped_s, 1),
    }


def planning(scratch: Path, effort: Effort) -> list[dict[str, object]]:
    """Both entries."""
    return [records_per_s(scratch, effort.records), grouped_speedup(effort.grouped)]
