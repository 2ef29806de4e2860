"""H2DP paper, section 5.4: what the optimiser itself costs: the map of regions, planning, tracing, data that move.

Measured, nothing is simulated: time to plan the paper's workload (IOR, 128 GiB, regions of 64 MiB), the bytes of the
plan and of the compiled map that the library reads, the bytes that lie elsewhere than under DEF, and a traced run
beside an untraced one: on emulated devices, and on a plain directory, where there is nothing else to wait for.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

HOME = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HOME), str(HOME.parent / "tools")]

from emulated_bench import MPIEXEC, MPIIO, STRIPEWISE, Bench, run

from common import KIB, MIB, Contender, arguments, contenders, finish, home_of, progress, write_result
from emulated import Scene, interval
from h2dp import FILE_BYTES, REGION_BYTES, WORKLOAD, papers_cluster
from pictures import draw_bars
from stripewise.plan import Plan, write_plan
from stripewise.policy import PlanOptions, policy_named
from stripewise.simulate import load_description
from stripewise.workload.describe import Description, description_from, read_workload_toml

#: Section 5.4: bytes of an entry per region, the table's share of the file ("less than 0.001 percent"), and the
#: run-time overhead of tracing ("below 6 percent").
PUBLISHED = {"map_bytes_per_region": 128, "map_share_of_file": 1e-5, "tracing": 0.06}
#: The scaled file whose compiled map is weighed, and on which runs are traced.
SCENE = Scene(6, 2, (0.003, 1e-8), (0.0001, 2.5e-9), 16)
TRACED_BYTES = 64 * KIB
#: Requests of a process in a traced run: about two seconds each.
ON_DEVICES, ON_DIRECTORY = 200, 60_000
REQUESTS, REPEATS = 2_000, 5


def planned(each: Contender, requests: int) -> tuple[Plan, float]:
    """The plan of the paper's workload and the seconds that it took; the trace is read before."""
    described = description_from(read_workload_toml(WORKLOAD), WORKLOAD, {"reads": requests})
    workload, cluster = load_description(described).workload, papers_cluster()
    begun = time.monotonic()
    plan = policy_named(each.policy).plan(workload, cluster, PlanOptions())
    return plan, time.monotonic() - begun


def moved_share(plan: Plan, default: Plan) -> float:
    """The share of the file that lies elsewhere than under DEF, by the ranges where the two differ."""
    ranges = {region.start: region for region in default.files[0].regions}
    starts = sorted(ranges)
    moved = 0
    for region in plan.files[0].regions:
        end = min(region.start + region.len, FILE_BYTES)
        for start in starts[region.start // REGION_BYTES : -(-end // REGION_BYTES)]:
            if ranges[start].stripes != region.stripes:
                moved += max(0, min(end, start + REGION_BYTES) - max(region.start, start))
    return moved / FILE_BYTES


def map_bytes(bench: Bench, name: str) -> float:
    """Bytes per region of the map that the library reads, of a file of 256 regions laid out by the policy."""
    described = Description(
        "zipf", SCENE.processes, ((TRACED_BYTES, 1.0),), SCENE.file_bytes, path=str(bench.path),
        region_bytes=SCENE.region_bytes, reads=ON_DEVICES, writes=0,
    )  # fmt: skip
    options = PlanOptions(region_bytes=SCENE.region_bytes)
    bench.lay_out(policy_named(name).plan(load_description(described).workload, bench.cluster, options))
    (compiled,) = bench.store.root.glob("files/*/layout")
    return compiled.stat().st_size / (SCENE.file_bytes / SCENE.region_bytes)


def slowdown(once: Callable[[Path | None], float], base: Path, repeats: int) -> dict[str, float]:
    """By what share a traced run is slower, pairs of runs one after the other: mean and half its 95 % interval."""
    shares, trace = [], base / "trace"
    for repeat in range(repeats):
        found = {}
        for traced in (False, True) if repeat % 2 == 0 else (True, False):
            shutil.rmtree(trace, ignore_errors=True)
            found[traced] = once(trace if traced else None)
        shares.append(found[False] / found[True] - 1)
    return {"mean": fmean(shares), "interval": interval(shares)}


def on_devices(bench: Bench) -> Callable[[Path | None], float]:
    """MB/s of a run on emulated devices."""
    described = Description(
        "zipf", SCENE.processes, ((TRACED_BYTES, 1.0),), SCENE.file_bytes, path=str(bench.path),
        region_bytes=SCENE.region_bytes, reads=ON_DEVICES, writes=0,
    )  # fmt: skip
    return lambda trace: bench.measure(described, "read", trace).mb_s


def on_directory(base: Path) -> Callable[[Path | None], float]:
    """MB/s of two processes on a file in a plain directory, all of it in memory: tracing has nowhere to hide."""
    file = base / "plain.dat"
    job = [MPIEXEC, "-n", 2, MPIIO, "--file", file, "--file-size", SCENE.file_bytes, "--request-size", TRACED_BYTES]
    run(*job, "--phases", "fill")
    reads = [*job, "--pattern", "random", "--reads", ON_DIRECTORY, "--writes", 0, "--phases", "read", "--no-verify"]

    def once(trace: Path | None) -> float:
        tracing = [] if trace is None else [STRIPEWISE, "run", "--trace", trace, "--"]
        return float(json.loads(run(*tracing, *reads).splitlines()[-1])["read_mb_s"])

    return once


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), 1, REQUESTS, repeats=REPEATS)
    rows: list[dict[str, Any]] = []
    default, _ = planned(Contender("def", "def"), given.requests)
    with tempfile.TemporaryDirectory(prefix="stripewise-experiment-", ignore_cleanup_errors=True) as scratch:
        base = Path(scratch).resolve()
        bench = Bench(base / "bench", SCENE.file_bytes, SCENE.devices())
        for each in contenders(("h2dp", "best")):
            plan, seconds = planned(each, given.requests)
            write_plan(plan, base / "plan.json")
            per_region = map_bytes(bench, each.policy)
            measured = {
                "map_bytes_per_region": per_region,
                "map_share_of_file": per_region / REGION_BYTES,
                "plan_share_of_file": (base / "plan.json").stat().st_size / FILE_BYTES,
                "seconds_to_plan": seconds,
                "moved_share_of_file": moved_share(plan, default),
            }
            rows.append({"policy": each.label, "measured": measured})
            progress(f"{each.label}: {seconds:.2f} s to plan, {per_region:.0f} bytes per region, measured")
        tracing = {
            "emulated devices": slowdown(on_devices(bench), base, given.repeats),
            "plain directory": slowdown(on_directory(base), base, given.repeats),
        }
    for where, share in tracing.items():
        progress(f"tracing, {where}: {share['mean']:+.1%} ± {share['interval']:.1%}, measured")
    write_result(
        given.out,
        {
            "rows": rows,
            "simulated": False,
            "tracing": tracing,
            "published": PUBLISHED,
            "map_share_of_file": f"of a file with regions of {REGION_BYTES // MIB} MiB",
            "options": {"requests_per_process": given.requests, "repeats": given.repeats},
        },
    )
    draw_bars(
        given.out / "result.svg", "What tracing costs (H2DP, section 5.4), measured", "", list(tracing),
        [("", {"slower by": [100 * max(0.0, each["mean"]) for each in tracing.values()]})], "percent",
    )  # fmt: skip


if __name__ == "__main__":
    finish(main)
