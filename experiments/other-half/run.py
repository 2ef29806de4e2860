"""Requests that the plan has not seen: planned from the first half of a run, run on the second as well. Simulated.

The other experiments run what was planned from, as the papers do. Drawn requests have chance in them, and a plan that
follows it gains from it once. Each process's requests are halved here; a policy is given the first half, and both are
run under its plan.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from common import KIB, MIB, TIE, Contender, Given, arguments, contenders, finish, home_of, progress, write_result
from ours import HOME, uneven_cluster, view_cluster
from pictures import draw_lines
from stripewise.cluster import Cluster
from stripewise.policy import PlanOptions, policy_named
from stripewise.policy.best.trial import Trials
from stripewise.simulate import load_description
from stripewise.units import format_size
from stripewise.workload import Workload
from stripewise.workload.describe import description_from, read_workload_toml

SEEDS, REQUESTS = 2, 4_000
SIZES = (64 * KIB, 256 * KIB, 512 * KIB, MIB, 4 * MIB)
#: Requests of 1 MiB that each process made before the plan.
FEW = (25, 100, 400, 1_600)
#: As in the experiment `scale`: servers, and requests of each process; one seed, as there.
SCALE, SCALE_REQUESTS = 256, 640
SCALE_FILE_BYTES = 512 * 64 * MIB
MIXED = [[4 * KIB << shift, 1.0] for shift in range(0, 13, 2)]
HALVES = ("planned_from", "other_half")
REPEATS = "best, for repeats"


@dataclass(frozen=True)
class Case:
    """A place of another experiment, and how many requests each process makes in either half.

    `seeds` are fewer than are asked for where a run takes long.
    """

    name: str
    cluster: Cluster
    requests: int
    changes: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None


def cases() -> list[Case]:
    """In the order of the table."""
    view = view_cluster()
    made = [Case(f"throughput-view, {shown_size(size)}", view, 4_000, {"request_bytes": size}) for size in SIZES]
    made += [Case("few requests, 1 MiB", view, each, {"request_bytes": MIB}) for each in FEW]
    made += [
        Case("few requests, mixed", view, 100, {"request_bytes": MIXED}),
        Case("uneven, factor 16", uneven_cluster(16), 2_000),
        Case("tight, room for 1 %", view_cluster(share=0.01), 2_000),
        Case("mixed, all, same count", view, 2_000, {"request_bytes": MIXED}),
    ]
    cluster = view_cluster(SCALE - SCALE // 4, SCALE // 4, SCALE_FILE_BYTES)
    changes = {"processes": SCALE, "request_bytes": MIB, "file_bytes": SCALE_FILE_BYTES}
    return [*made, Case(f"scale, {SCALE} servers", cluster, SCALE_REQUESTS, changes, seeds=1)]


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
    for each in compared():
        plan = policy_named(each.policy).plan(both[0], case.cluster, PlanOptions(seed=seed, **each.options))
        seconds = [Trials([half], case.cluster).run(plan)[0].seconds for half in both]
        made[each.label] = (moved[0] / seconds[0] / 1e6, moved[1] / seconds[1] / 1e6)
    return made


def compared() -> tuple[Contender, ...]:
    """All policies, and best told that the run repeats its very requests."""
    return (*contenders(), Contender(REPEATS, "best", {"smooth": False}))


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
    """Means over the seeds; the errors are those of the mean of a policy's kept share."""
    made: dict[str, Any] = {"case": case.name, "requests_each": case.requests}
    for number, half in enumerate(HALVES):
        made[half] = {name: fmean(run[name][number] for run in runs) for name in runs[0]}
    made["lead"] = {
        f"{name} {half.replace('_', ' ')}": lead(made[half], name) for half in HALVES for name in ("best", REPEATS)
    }
    kept = {name: [run[name][1] / run[name][0] for run in runs] for name in runs[0]}
    made["kept"] = {name: fmean(values) for name, values in kept.items()}
    made["kept_error"] = {
        name: stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0 for name, values in kept.items()
    }
    unseen = made["other_half"]
    made["ahead_on_other_half"] = {
        name: unseen[name] / unseen["best"] - 1 for name in unseen if unseen[name] > unseen["best"] * (1 + TIE)
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
            "lead": "best, with --no-smooth as well, over the quickest other policy, on either half",
            "kept": "other half over the half planned from",
            "kept_error": "standard error of kept over the seeds",
            "ahead_on_other_half": f"who is ahead of best there by more than {TIE:.1%}, and by what share",
            "options": given.as_json,
        },
    )
    by_number = sorted((each for each in rows if is_of_1_mib(each["case"])), key=lambda each: each["requests_each"])
    panels = [
        (half.replace("_", " "), {name: [each[half][name] for each in by_number] for name in rows[0][half]})
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
