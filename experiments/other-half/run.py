"""Requests that the plan has not seen: planned from the first half of a run, run on the second as well. Simulated.

The other experiments run what was planned from, as the papers do. Drawn requests have chance in them, and a plan that
follows it gains from it once. Each process's requests are halved here; a policy is given the first half, and both are
run under its plan. Seeds draw the requests anew; what is said of several seeds has a 95 % interval.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from common import KIB, MIB, Contender, Given, arguments, contenders, finish, home_of, progress, write_result
from emulated import interval
from ours import HOME, uneven_cluster, view_cluster
from pictures import draw_lines
from stripewise.cluster import Cluster
from stripewise.policy import PlanOptions, policy_named
from stripewise.policy.best.trial import Trials
from stripewise.simulate import load_description
from stripewise.units import format_size
from stripewise.workload import Workload
from stripewise.workload.describe import description_from, read_workload_toml

SEEDS, REQUESTS = 4, 4_000
#: Where a place was asked for dozens of times seeds differ by a percent, and a plan takes a minute.
SEEDS_OF_MANY = 3
SIZES = (64 * KIB, MIB, 4 * MIB)
#: Requests of 1 MiB that each process made before the plan.
FEW = (25, 100, 400)
MIXED = [[4 * KIB << shift, 1.0] for shift in range(0, 13, 2)]
HALVES = ("planned_from", "other_half")
REPEATS = "best, for repeats"
#: Of the search of best: more than it takes, so that not the machine's load but the search itself ends it.
TIME_LIMIT_S = 1_800.0


@dataclass(frozen=True)
class Case:
    """A place of another experiment, and how many requests each process makes in either half.

    `seeds` are fewer than are asked for where a run takes long; `repeats` compares best for repeats as well.
    """

    name: str
    cluster: Cluster
    requests: int
    changes: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None
    repeats: bool = False


def cases() -> list[Case]:
    """In the order of the table."""
    view = view_cluster()
    made = [
        *(Case("few requests, 1 MiB", view, each, {"request_bytes": MIB}, repeats=True) for each in FEW),
        Case("few requests, mixed", view, 100, {"request_bytes": MIXED}, repeats=True),
    ]
    many: list[tuple[str, Cluster, int, dict[str, Any]]] = [
        *((f"throughput-view, {shown_size(size)}", view, 4_000, {"request_bytes": size}) for size in SIZES),
        ("uneven, factor 16", uneven_cluster(16), 2_000, {}),
        ("tight, room for 1 %", view_cluster(share=0.01), 2_000, {}),
        ("mixed, all, same count", view, 2_000, {"request_bytes": MIXED}),
    ]
    return [*made, *(Case(*each, seeds=SEEDS_OF_MANY) for each in many)]


def shown_size(size: int) -> str:
    return format_size(size).replace(".0 ", " ")


def halves(workload: Workload) -> tuple[Workload, Workload]:
    """The first and the second half of every process's requests in each file, in its order."""
    files: tuple[list[Any], list[Any]] = ([], [])
    for file in workload.files:
        requests = file.requests[np.lexsort((file.requests["start_ns"], file.requests["rank"]))]
        _, first, count = np.unique(requests["rank"], return_index=True, return_counts=True)
        place = np.arange(len(requests)) - np.repeat(first, count)
        is_second = place >= np.repeat(count, count) // 2
        for half, made in zip((~is_second, is_second), files, strict=True):
            made.append(replace(file, requests=requests[half].copy()))
    seen, unseen = (replace(workload, files=tuple(made)) for made in files)
    return seen, unseen


def run_case(case: Case, seed: int) -> dict[str, tuple[float, float]]:
    """MB/s of both halves under every policy's plan from the first."""
    path = HOME / "zipf.toml"
    changes = {**case.changes, "reads": 2 * case.requests, "seed": seed}
    whole = load_description(description_from(read_workload_toml(path), path, changes)).workload
    both = halves(whole)
    moved = [sum(int(file.requests["size"].sum()) for file in half.files) for half in both]
    made = {}
    for each in compared(case.repeats):
        plan = policy_named(each.policy).plan(both[0], case.cluster, PlanOptions(seed=seed, **each.options))
        seconds = [Trials([half], case.cluster).run(plan)[0].seconds for half in both]
        made[each.label] = (moved[0] / seconds[0] / 1e6, moved[1] / seconds[1] / 1e6)
    return made


def compared(repeats: bool = False) -> tuple[Contender, ...]:
    """All policies, and where it is asked for best told that the run repeats its very requests."""
    told = (Contender(REPEATS, "best", {"smooth": False, "time_limit_s": TIME_LIMIT_S}),) if repeats else ()
    return (*contenders(time_limit_s=TIME_LIMIT_S), *told)


def run_cases(every: Sequence[Case], seeds: int) -> Iterator[tuple[Case, list[dict[str, tuple[float, float]]]]]:
    """Every case once per seed, on all cores, in their order."""
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(every) * seeds)) as pool:
        waited = [
            [pool.submit(run_case, case, seed) for seed in range(1, min(seeds, case.seeds or seeds) + 1)]
            for case in every
        ]
        try:
            for case, futures in zip(every, waited, strict=True):
                yield case, [future.result() for future in futures]
        finally:
            pool.shutdown(cancel_futures=True)


def row(case: Case, runs: Sequence[Mapping[str, tuple[float, float]]]) -> dict[str, Any]:
    """Means over the seeds, and half the 95 % intervals of leads and of a policy's kept share."""
    made: dict[str, Any] = {"case": case.name, "requests_each": case.requests, "seeds": len(runs)}
    for number, half in enumerate(HALVES):
        made[half] = {name: fmean(run[name][number] for run in runs) for name in runs[0]}
    made["lead"], made["lead_interval"] = {}, {}
    for half, name in [(half, name) for half in HALVES for name in ("best", REPEATS) if name in runs[0]]:
        leads = [lead({other: each[HALVES.index(half)] for other, each in run.items()}, name) for run in runs]
        key = f"{name} {half.replace('_', ' ')}"
        made["lead"][key], made["lead_interval"][key] = fmean(leads), interval(leads)
    kept = {name: [run[name][1] / run[name][0] for run in runs] for name in runs[0]}
    made["kept"] = {name: fmean(values) for name, values in kept.items()}
    made["kept_interval"] = {name: interval(values) for name, values in kept.items()}
    shares = {name: [run[name][1] / run["best"][1] - 1 for run in runs] for name in runs[0] if name != "best"}
    made["ahead_on_other_half"] = {
        name: fmean(values) for name, values in shares.items() if len(runs) > 1 and fmean(values) > interval(values)
    }
    return made


def lead(mb_s: Mapping[str, float], name: str) -> float:
    """best, so or so, over the quickest of the other policies."""
    return mb_s[name] / max(value for other, value in mb_s.items() if other not in ("best", REPEATS))


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    every = [replace(case, requests=min(case.requests, given.requests)) for case in cases()]
    rows = []
    for case, runs in run_cases(every, given.seeds):
        rows.append(row(case, runs))
        told = [f"{name} {rows[-1]['planned_from'][name]:.0f} / {rows[-1]['other_half'][name]:.0f}" for name in runs[0]]
        progress(f"{case.name}, {case.requests} requests each: {', '.join(told)} MB/s, simulated")
    write(given, rows)


def write(given: Given, rows: Sequence[dict[str, Any]]) -> None:
    """The result file, and the picture of the plans from few requests and many."""
    write_result(
        given.out,
        {
            "rows": rows,
            "simulated": True,
            "unit": "MB/s (10^6 bytes), mean over the seeds",
            "requests_each": "of every process in either half; the plan is made from the first",
            "planned_from": "by policy: the half that its plan was made from, run under that plan",
            "other_half": "by policy: the half that it has not seen, under the same plan",
            "lead": "best, or best with --no-smooth, over the quickest other policy of each seed, mean over the seeds",
            "lead_interval": "half the 95 % interval of lead over the seeds (Student's t)",
            "kept": "other half over the half planned from",
            "kept_interval": "half the 95 % interval of kept over the seeds",
            "ahead_on_other_half": "who is ahead of best there beyond the 95 % interval, and by what share",
            "time_limit_s": TIME_LIMIT_S,
            "options": given.as_json,
        },
    )
    by_number = sorted((each for each in rows if is_of_1_mib(each["case"])), key=lambda each: each["requests_each"])
    panels = [
        (half.replace("_", " "), {name: [each[half].get(name, nan) for each in by_number] for name in rows[0][half]})
        for half in HALVES
    ]
    draw_lines(
        given.out / "result.svg", "Requests of 1 MiB that the plan has and has not seen, simulated",
        "requests of each process in the plan", [f"{each['requests_each']:,}" for each in by_number], panels,
    )  # fmt: skip


def is_of_1_mib(case: str) -> bool:
    """Whether the case is throughput-view's at 1 MiB, with many or few requests."""
    return case in ("few requests, 1 MiB", f"throughput-view, {shown_size(MIB)}")


if __name__ == "__main__":
    finish(main)
