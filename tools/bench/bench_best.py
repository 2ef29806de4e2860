"""`best` at scale, for `make bench`: 1,000 uneven targets, 10,000 regions, 6 windows; time, peak memory, gap.

Run in a process of its own, so that the peak is that of planning.
"""

import json
import multiprocessing
import resource
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from bench_common import FULL, Effort

from stripewise.cluster import Cluster, Network, Target
from stripewise.policy import PlanOptions, policy_named
from stripewise.workload import REQUEST_DTYPE, FileRequests, Workload

KIB, MIB = 1 << 10, 1 << 20
REGION = 64 * MIB
WINDOWS = 6
#: Every request stands for as many of its kind, so that windows are long enough for moves to pay.
PROCESSES, WEIGHT = 8_000, 40
WINDOW_NS = 10**12
GOAL_S, GOAL_BYTES = 60.0, 2 << 30


def cluster(rng: np.random.Generator, effort: Effort) -> Cluster:
    """No two targets alike; the SSDs hold a sixth of the data."""
    ssds = effort.best_targets // 4
    hdds = effort.best_targets - ssds
    room = effort.best_regions * REGION // 6 // ssds
    targets = []
    for number in range(hdds + ssds):
        ssd = number >= hdds
        startup = rng.uniform(5e-5, 3e-4) if ssd else rng.uniform(2e-3, 8e-3)
        per_byte = 1 / rng.uniform(2e8, 1e9) if ssd else 1 / rng.uniform(6e7, 1.8e8)
        room_here = int(room * rng.uniform(0.7, 1.3)) // 4096 * 4096 if ssd else 0
        name = f"{'ssd' if ssd else 'hdd'}{number}"
        write = rng.uniform(1.0, 1.5)
        targets.append(
            Target(
                name, name[:3], "dir", Path("/") / name, room_here,
                startup, startup * write, per_byte, per_byte * write,
            )
        )  # fmt: skip
    return Cluster(Path("cluster.toml"), Network(), tuple(targets))


def workload(rng: np.random.Generator, effort: Effort) -> Workload:
    """Zipf 0.8 over the regions, the hot set a twentieth further in every window; sizes by region."""
    regions, each = effort.best_regions, effort.best_requests // WINDOWS
    weight = 1 / np.arange(1, regions + 1) ** 0.8
    order = rng.permutation(regions)
    size_of = rng.choice([64 * KIB, 256 * KIB, MIB], regions)
    requests = np.zeros(each * WINDOWS, dtype=REQUEST_DTYPE)
    for window in range(WINDOWS):
        part = requests[window * each : (window + 1) * each]
        rank = rng.choice(regions, each, p=weight / weight.sum())
        region = order[(rank + window * regions // 20) % regions]
        part["size"] = size_of[region]
        part["offset"] = region * REGION + rng.integers(0, REGION // MIB, each) * MIB
        part["write"] = rng.random(each) < 0.3
        part["rank"] = rng.integers(0, PROCESSES, each)
        part["start_ns"] = window * WINDOW_NS + np.sort(rng.integers(0, WINDOW_NS, each))
        part["end_ns"] = part["start_ns"] + 1000
    return Workload((FileRequests("/data/file", requests, regions * REGION),), PROCESSES, weight=WEIGHT)


def measured(effort: Effort) -> dict[str, object]:
    """One plan."""
    rng = np.random.default_rng(1)
    on, asked = cluster(rng, effort), workload(rng, effort)
    begun = time.perf_counter()
    plan = policy_named("best").plan(
        asked, on, PlanOptions(region_bytes=REGION, window_ns=WINDOW_NS, time_limit_s=effort.best_limit_s)
    )
    seconds = time.perf_counter() - begun
    expected = plan.expected
    moves = sum(len(migration.moves) for migration in plan.migrations)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "name": "best.seconds_1000x10000",
        "value": round(seconds, 1),
        "unit": f"s for {effort.best_targets} uneven targets, {effort.best_regions} regions, {WINDOWS} windows, "
        f"{moves} moves, gap {expected.gap:.2%}, gain over def by the bound {expected.bound_gain:.2f}, "
        f"peak {peak / 2**20:.0f} MiB, {multiprocessing.cpu_count()} cores",
        "baseline": f"goal {GOAL_S:.0f} s and {GOAL_BYTES >> 30} GiB",
        "ratio": round(GOAL_S / seconds, 3),
    }


def at_scale(effort: Effort) -> dict[str, object]:
    """The entry, from a process of its own."""
    words = [json.dumps(asdict(effort))]
    done = subprocess.run([sys.executable, __file__, *words], check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    given = json.loads(sys.argv[1]) if sys.argv[1:] else {}
    print(json.dumps(measured(replace(FULL, **given))))
