"""Figure 11 of paper 000 (H2DP), modelled: what dynamic migration (DDM) gains at four request sizes.

The paper's set-up (sections 5.1, 5.2.1, 5.3): 32 processes read a shared 128 GB file, Zipf 0.8 over 64 MiB regions,
"the access frequencies change at run-time"; 12 HServers, 4 SServers that hold 1/6 of the data, Gigabit Ethernet. It
does not say how the hot set moves, how long a window is or what its devices can do; here --shift, --windows,
--window-seconds and --cluster say so. Nothing is run: costs are sums of request costs of the model, with every request
drawn as workloads/mpiio.c draws it. --out writes for every size the plan and the mpiio options that belong to it, so
that a run on emulated devices can follow.

"without" is H2DP without DDM: every region stays where window 0 puts it. "foresight" is H2DP planned once for the whole
trace. A gain is cost without over cost with, less 1; "copies in" adds the copies' cost, as if none of it were hidden;
"by the bound" compares the bounds on the makespan, without a network. docs/figure11.md says what came out.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path

from stripewise.cluster import Cluster, Network, Target, read_cluster
from stripewise.errors import StripewiseError, UsageError
from stripewise.plan import Plan, write_plan
from stripewise.policy import PlanOptions, policy_named
from stripewise.policy.toolkit.pricing import plan_bound
from stripewise.policy.toolkit.regions import window_tables
from stripewise.units import KIB, MIB, format_size, parse_size, parse_span
from stripewise.workload.zipf import ZipfRun

SIZES = (64 * KIB, 256 * KIB, MIB, 4 * MIB)
#: Section 5.3, reads; the paper gives no others in numbers.
PUBLISHED = {
    64 * KIB: {"gain": 0.26, "moved": 0.17, "more_requests_on_hybrid": 0.32},
    4 * MIB: {"gain": 0.05},
}
#: Requests per rank and window of the first plan, which only tells what a request costs.
PILOT_REQUESTS = 200
SSDS, HDDS = 4, 12


def papers_cluster(
    file_bytes: int, region_bytes: int, gbit_s: float, establish_s: float, hservers: int = HDDS, sservers: int = SSDS
) -> Cluster:
    """12 HServers of 3 ms + 100 MB/s, 4 SServers of 0.1 ms + 400 MB/s with 1/6 of the data, a process on each node.

    The paper has a network of 1 Gbit/s; the devices' figures are those of the project's other simulations.
    """
    sixth = -(-file_bytes // (6 * sservers))
    # What the planner keeps for the file system comes on top.
    room = sixth + sixth // 1000 + region_bytes // 256
    targets = [
        Target(f"hdd{n}", "hdd", "emulated", Path(f"hdd{n}"), 0, 0.003, 0.003, 1e-8, 1e-8) for n in range(hservers)
    ]
    targets += [
        Target(f"ssd{n}", "ssd", "emulated", Path(f"ssd{n}"), room, 1e-4, 1e-4, 2.5e-9, 2.5e-9) for n in range(sservers)
    ]
    return Cluster(
        Path("the paper's cluster"), Network(establish_s, 8e-9 / gbit_s if gbit_s else 0.0, 1), tuple(targets)
    )


def with_requests(run: ZipfRun, each: int, writing: bool) -> ZipfRun:
    """`run` with so many requests per rank and window."""
    total = each * run.windows
    return replace(run, writes=total, reads=0) if writing else replace(run, reads=total, writes=0)


def planned(run: ZipfRun, cluster: Cluster, path: str, window: bool = True, min_gain: float | None = None) -> Plan:
    options = PlanOptions(
        region_bytes=run.region_bytes,
        window_ns=round(run.window_s * 1e9) if window else None,
        min_gain=min_gain,
    )
    return policy_named("h2dp").plan(run.workload(path), cluster, options)


def gains(plan: Plan) -> dict[str, float]:
    """What DDM gains over window 0's placement, and what it moves, as shares."""
    figures = [window.figures for window in plan.windows if window.figures is not None]
    moves = [move for migration in plan.migrations for move in migration.moves]
    size = sum(file.size for file in plan.files)
    cost, static = sum(f.cost_s for f in figures), sum(f.cost_static_s for f in figures)
    copies = sum(move.cost_s for move in moves)
    requests = sum(f.requests for f in figures)
    hybrid, hybrid_static = sum(f.hybrid_requests for f in figures), sum(f.hybrid_requests_static for f in figures)
    return {
        "gain": static / cost - 1,
        "gain_copies_in": static / (cost + copies) - 1,
        "moved_in": sum(move.bytes for move in moves if move.direction == "in") / size,
        "moved": sum(move.bytes for move in moves) / size,
        "hybrid_with": hybrid / requests,
        "hybrid_without": hybrid_static / requests,
        "more_requests_on_hybrid": hybrid / max(1, hybrid_static) - 1,
        "cost_s": cost,
    }


def bound_gain(run: ZipfRun, plan: Plan, cluster: Cluster, path: str) -> float:
    """The gain by the bound on the makespan (busiest server, or concurrency), which holds for any number in flight.

    It has no network and lets requests overlap: what a run on emulated devices can show.
    """
    _, tables = window_tables(run.workload(path), run.region_bytes, round(run.window_s * 1e9))
    static = [region.stripes for region in plan.layout_in_window(path, 0)]
    with_s = without_s = 0.0
    for number, each in enumerate(tables):
        if each.table is not None:
            placed = [region.stripes for region in plan.layout_in_window(path, number)]
            with_s += plan_bound(each.table, cluster, placed).makespan_s(run.processes)
            without_s += plan_bound(each.table, cluster, static).makespan_s(run.processes)
    return without_s / with_s - 1


def row(run: ZipfRun, cluster: Cluster, given: argparse.Namespace) -> dict[str, object]:
    """One request size."""
    pilot = with_requests(run, PILOT_REQUESTS, given.write)
    cost_s = planned(pilot, cluster, given.path, window=False).expected.cost_s / (
        PILOT_REQUESTS * run.windows * run.processes
    )
    each = given.requests or max(PILOT_REQUESTS, round(run.window_s / cost_s))
    run = with_requests(run, each, given.write)
    plan = planned(run, cluster, given.path)
    found = gains(plan)
    foresight_s = planned(run, cluster, given.path, window=False).expected.cost_s
    paying = gains(planned(run, cluster, given.path, min_gain=1.0))
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        name = format_size(run.request_bytes).replace(".0 ", "").replace(" ", "")
        write_plan(plan, given.out / f"plan-{name}.json")
        (given.out / f"mpiio-{name}.txt").write_text(shlex.join(run.mpiio_options()) + "\n")
    return {
        "request_bytes": run.request_bytes,
        "modelled": True,
        "requests_per_rank_and_window": each,
        **found,
        "gain_over_foresight": foresight_s / found["cost_s"] - 1,
        "bound_gain": bound_gain(run, plan, cluster, given.path),
        "min_gain_1": paying,
        "published": PUBLISHED.get(run.request_bytes, {}),
    }


def percent(share: object) -> str:
    return "-" if share is None else f"{100 * float(str(share)):.0f} %"


HEAD = (
    "request", "requests/window", "gain", "published", "copies in", "min_gain 1, copies in", "by the bound",
    "over foresight",
    "moved in", "moved in+out", "published", "on hybrid", "without", "more", "published",
)  # fmt: skip


def printed(found: dict[str, object], processes: int) -> str:
    published, paying = found["published"], found["min_gain_1"]
    assert isinstance(published, dict) and isinstance(paying, dict)
    cells = [
        format_size(float(str(found["request_bytes"]))),
        f"{int(str(found['requests_per_rank_and_window'])) * processes:,}",
        percent(found["gain"]),
        percent(published.get("gain")),
        percent(found["gain_copies_in"]),
        percent(paying["gain_copies_in"]),
        percent(found["bound_gain"]),
        percent(found["gain_over_foresight"]),
        percent(found["moved_in"]),
        percent(found["moved"]),
        percent(published.get("moved")),
        percent(found["hybrid_with"]),
        percent(found["hybrid_without"]),
        percent(found["more_requests_on_hybrid"]),
        percent(published.get("more_requests_on_hybrid")),
    ]
    return " | ".join(f"{cell:>{max(9, len(head))}}" for cell, head in zip(cells, HEAD, strict=True))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster", type=Path, help="cluster.toml or a store, instead of the paper's cluster")
    parser.add_argument("--gbit", type=float, default=1.0, help="the paper's network in Gbit/s; 0 leaves it out")
    parser.add_argument("--establish", type=float, default=0.0, help="its seconds per connection, the model's e")
    parser.add_argument("--file-size", default=f"{2048 * 64}MiB")
    parser.add_argument("--region-size", default="64MiB")
    parser.add_argument("--processes", type=int, default=32)
    parser.add_argument("--alpha", type=float, default=0.8)
    parser.add_argument("--windows", type=int, default=4)
    parser.add_argument("--shift", type=int, default=114, help="regions that the hot set moves by between windows")
    parser.add_argument("--window", default="10min", help="length of a window")
    parser.add_argument("--requests", type=int, help="requests per rank and window (default: what fills the window)")
    parser.add_argument("--size", action="append", help="request size, repeatable (default: the paper's four)")
    parser.add_argument("--write", action="store_true", help="write instead of read")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--path", default="/data/zipf.dat", help="the file that the plans name")
    parser.add_argument("--out", type=Path, help="write plans and mpiio options here")
    parser.add_argument("--json", type=Path, help="write the rows as JSON here")
    return parser.parse_args()


def run_of(given: argparse.Namespace) -> ZipfRun:
    """The run that the options describe, its request size still open."""
    return ZipfRun(
        processes=given.processes,
        file_bytes=parse_size(given.file_size, "--file-size"),
        region_bytes=parse_size(given.region_size, "--region-size"),
        alpha=given.alpha,
        windows=given.windows,
        shift=given.shift,
        window_s=parse_span(given.window, "--window") / 1e9,
        seed=given.seed,
    )


def main() -> None:
    given = arguments()
    sizes = [parse_size(text, "--size") for text in given.size or []] or SIZES
    run = run_of(given)
    if any(run.region_bytes % size for size in sizes) or run.regions < 1 or run.windows < 1 or run.processes < 1:
        raise UsageError("regions must be multiples of every request size, and all counts at least 1; see --help")
    if given.cluster:
        cluster = read_cluster(given.cluster)
    else:
        cluster = papers_cluster(run.file_bytes, run.region_bytes, given.gbit, given.establish)
    print(f"figure 11, modelled, nothing was run: {cluster.source}, {run.windows} windows, shift {run.shift}")
    print(" | ".join(f"{head:>9}" for head in HEAD))
    rows = []
    for size in sizes:
        rows.append(row(replace(run, request_bytes=size), cluster, given))
        print(printed(rows[-1], run.processes), flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except StripewiseError as error:
        sys.exit(f"figure11: {error}")
