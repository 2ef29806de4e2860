"""When a copy is better than a better home: one file, several uses, homes and copies in equal space. Simulated."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import GIB, KIB, MIB, Given, arguments, finish, home_of, progress, write_result
from copies import FILE, Use, checkpoint, four_uses, one_column, read_mostly, rows_and_columns, zipf
from emulated import interval
from stripewise.cluster import Cluster, Network, Target
from stripewise.layout import Layout, target_bytes, whole_file
from stripewise.policy import PlanOptions, policy_named
from stripewise.replicas import Candidate, Options, Setting, decide
from stripewise.replicas.jointly import LEFT_FOR_COPIES, Wanted, plan_jointly
from stripewise.replicas.simulated import simulate_served
from stripewise.report import new_figure, save_figure
from stripewise.simulate import Settings

HDDS, SSDS = 6, 2
#: Of the data, that the SSDs hold together.
ROOM = 1 / 8
STRIPE = 64 * KIB
#: A file server's read-ahead of what a process reads in sequence, of all servers together.
READ_AHEAD_BYTES = (HDDS + SSDS) * 128 * KIB
SEEDS, REQUESTS = 3, 256
#: Homes and copies of each: `choices`.
SCHEMES = (
    "def", "best", "copies", "copies on SSDs", "best with copies", "copies, no bound", "both, half each",
    "both, copies no bound",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A use by so many processes: a function of them, of requests of each where they are random, and of the seed."""

    name: str
    processes: int
    use: Callable[[int, int, int], Use]
    has_read_ahead: bool = True
    #: Of each search of `best`.
    time_limit_s: float = 2.5


CASES = (
    *(Case("one column", n, lambda n, _r, _s: one_column(n)) for n in (16, 1)),
    Case("one column, no read-ahead", 16, lambda n, _r, _s: one_column(n), False),
    Case("rows and columns of a ninth", 16, lambda n, _r, _s: rows_and_columns(n, "ninth", 256 * MIB // 9)),
    Case("rows and columns of all", 16, lambda n, _r, _s: rows_and_columns(n, "all", 256 * MIB)),
    Case("row, column, cube, time", 16, lambda n, _r, _s: four_uses(n), True, 20.0),
    Case("Zipf 0.8", 16, lambda n, r, s: zipf(n, r, s)),
    Case("column, 10 % writes", 16, lambda n, _r, _s: read_mostly(n, 9)),
    Case("column, 50 % writes", 16, lambda n, _r, _s: read_mostly(n, 1)),
    *(Case("checkpoint", n, lambda n, _r, _s: checkpoint(n)) for n in (16, 1)),
)


def cluster_of(room_bytes: int) -> Cluster:
    """The servers; `room_bytes` is what the SSDs hold together, 0 without a bound."""
    targets = []
    for number in range(HDDS + SSDS):
        is_ssd = number >= HDDS
        name = f"ssd{number - HDDS}" if is_ssd else f"hdd{number}"
        startup_s, per_byte_s = (1e-4, 2.5e-9) if is_ssd else (3e-3, 1e-8)
        room = room_bytes // SSDS if is_ssd else 0
        klass = "ssd" if is_ssd else "hdd"
        targets.append(Target(name, klass, "dir", Path(name), room, startup_s, startup_s, per_byte_s, per_byte_s))
    return Cluster(Path("copy-or-home"), Network(), tuple(targets))


def home_by(policy: str, use: Use, cluster: Cluster, seed: int, time_limit_s: float | None = None) -> Layout:
    """The policy's layout for all phases of the use together."""
    options = PlanOptions(
        region_bytes=4 * MIB, seed=seed, time_limit_s=time_limit_s, smooth=False if policy == "best" else None
    )
    (file,) = policy_named(policy).plan(use.whole(seed), cluster, options).files
    return Layout(file.layout)


def copies_by(use: Use, cluster: Cluster, home: Layout, space_bytes: int | None) -> tuple[Candidate, ...]:
    """RADAR's."""
    return decide("radar", use.found(), Setting(cluster, {FILE: home}), Options(space_bytes)).chosen


def jointly(use: Use, cluster: Cluster, seed: int, case: Case) -> tuple[Layout, tuple[Candidate, ...]]:
    """What `best` chooses with copies within the room of the SSDs (`plan --replicas`)."""
    usable = sum(each.usable_bytes for each in cluster.sservers)
    wanted = Wanted("radar", Options(usable), READ_AHEAD_BYTES if case.has_read_ahead else 0)
    # Each of its searches has the time of the one above.
    limit_s = case.time_limit_s * len(LEFT_FOR_COPIES)
    options = PlanOptions(region_bytes=4 * MIB, seed=seed, time_limit_s=limit_s, smooth=False)
    chosen = plan_jointly(use.whole(seed), use.found(), cluster, policy_named("best"), options, wanted).chosen
    (file,) = chosen.plan.files
    return Layout(file.layout), chosen.decision.chosen


def choices(use: Use, seed: int, case: Case) -> dict[str, tuple[Layout, tuple[Candidate, ...]]]:
    """Home and copies of every scheme."""
    time_limit_s = case.time_limit_s
    room = int(use.file_bytes * ROOM)
    bounded, halved, free = cluster_of(room), cluster_of(room // 2), cluster_of(0)
    by_def = home_by("def", use, bounded, seed)
    by_best, by_half = (home_by("best", use, cluster, seed, time_limit_s) for cluster in (bounded, halved))
    on_disks = whole_file(bounded.hservers, STRIPE, GIB)
    usable = sum(each.usable_bytes for each in bounded.sservers)
    copies = copies_by(use, bounded, on_disks, usable)
    on_ssds = whole_file(bounded.sservers, STRIPE, GIB)
    return {
        "def": (by_def, ()),
        "best": (by_best, ()),
        "copies": (on_disks, copies),
        "copies on SSDs": (on_disks, tuple(replace(each, layout=on_ssds) for each in copies)),
        "best with copies": jointly(use, bounded, seed, case),
        "copies, no bound": (by_def, copies_by(use, free, by_def, None)),
        "both, half each": (by_half, copies_by(use, halved, by_half, usable // 2)),
        "both, copies no bound": (by_best, copies_by(use, free, by_best, None)),
    }


@dataclass(frozen=True)
class Ran:
    """A scheme under one seed: seconds of each phase, copies and their bytes, the model's seconds to make them."""

    seconds: tuple[float, ...]
    copies: int
    copied_bytes: int
    build_s: float
    on_ssds: float
    #: Of all bytes moved, those that copies served or took.
    copies_share: float


def run_case(number: int, requests: int, seeds: int) -> list[dict[str, Ran]]:
    """Every scheme, seed by seed; what does not depend on the seed is planned once."""
    case = CASES[number]
    found = []
    made: dict[str, tuple[Layout, tuple[Candidate, ...]]] = {}
    for seed in range(1, seeds + 1):
        use = case.use(case.processes, requests, seed)
        if not made or use.phases[0].is_random:
            made = choices(use, seed, case)
        found.append({name: _ran(use, *made[name], seed, case.has_read_ahead) for name in SCHEMES})
    return found


def _ran(use: Use, home: Layout, copies: tuple[Candidate, ...], seed: int, has_read_ahead: bool) -> Ran:
    cluster = cluster_of(0)
    runs = []
    for phase in range(len(use.phases)):
        settings = Settings(seed, READ_AHEAD_BYTES if has_read_ahead else 0)
        choice = [("copies", copies)] if copies else []
        runs += simulate_served(use.workload(phase, seed), cluster, {FILE: home}, choice, settings, not copies)
    held = target_bytes(home.regions, use.file_bytes)
    return Ran(
        tuple(run.seconds for run in runs),
        len(copies),
        sum(part.bytes for each in copies for part in each.blocks),
        sum(each.build_s for each in copies),
        sum(held.get(each.name, 0) for each in cluster.sservers) / use.file_bytes,
        sum(run.replica_bytes for run in runs) / sum(run.bytes for run in runs),
    )


def row_of(case: Case, use: Use, runs: list[dict[str, Ran]]) -> dict[str, Any]:
    """A row: MB/s of each scheme, times def with its interval, seconds by phase, and what was copied."""
    moved = sum(each.bytes for each in use.phases)
    mb_s = {name: [moved / sum(run[name].seconds) / 1e6 for run in runs] for name in SCHEMES}
    times = {name: [a / b for a, b in zip(mb_s[name], mb_s["def"], strict=True)] for name in SCHEMES[1:]}
    first = runs[0]
    return {
        "use": case.name,
        "processes": case.processes,
        **{name: fmean(values) for name, values in mb_s.items()},
        "lead": {name: fmean(values) for name, values in times.items()},
        "interval": {name: interval(values) for name, values in times.items()},
        "phases_s": {
            name: {each.words: fmean(run[name].seconds[n] for run in runs) for n, each in enumerate(use.phases)}
            for name in SCHEMES
        },
        "copied_share": {name: each.copied_bytes / use.file_bytes for name, each in first.items() if each.copies},
        "served_share": {name: each.copies_share for name, each in first.items() if each.copies},
        "build_s": {name: each.build_s for name, each in first.items() if each.copies},
        "home_on_ssds": {name: each.on_ssds for name, each in first.items()},
    }


def all_runs(given: Given) -> Iterator[list[dict[str, Ran]]]:
    """The cases in order, on all cores."""
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(CASES))) as pool:
        waited = [pool.submit(run_case, number, given.requests, given.seeds) for number in range(len(CASES))]
        for future in waited:
            yield future.result()


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    rows = []
    for case, runs in zip(CASES, all_runs(given), strict=True):
        row = row_of(case, case.use(case.processes, given.requests, 1), runs)
        told = ", ".join(f"{k} {v:.2f} ± {row['interval'][k]:.2f}" for k, v in row["lead"].items())
        progress(f"{case.name}, {case.processes}: def {row['def']:.1f} MB/s; times def: {told}, simulated")
        rows.append(row)
    result = {
        "rows": rows,
        "simulated": True,
        "unit": "MB/s (10^6 bytes) of all phases, mean over the seeds",
        "lead": "over def, the mean over the seeds; interval: half the 95 % interval of it (Student's t)",
        "phases_s": "seconds of each phase, mean over the seeds",
        "copied_share": "bytes of RADAR's copies over those of the file; a scheme without copies is left out",
        "served_share": "part of the bytes moved that copies served, or took where they are written",
        "build_s": "to make the copies once, by the model; not in the MB/s",
        "home_on_ssds": "part of the file whose home is on SSDs",
        "options": given.as_json,
    }
    write_result(given.out, result)
    draw(given.out / "result.svg", [row for row in rows if row["processes"] > 1])


def draw(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """A group of bars per use, the 95 % intervals over them."""
    figure = new_figure(13.0, 4.8)
    axes = figure.subplots()
    width = 0.8 / len(SCHEMES[1:])
    for number, name in enumerate(SCHEMES[1:]):
        at = [place - 0.4 + (number + 0.5) * width for place in range(len(rows))]
        half = [row["interval"][name] for row in rows]
        axes.bar(at, [row["lead"][name] for row in rows], width, label=name, yerr=half, capsize=2)
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
    ticks = [row["use"].replace(" and ", "\nand ").replace(", ", ",\n").replace(" of ", "\nof ") for row in rows]
    axes.set_xticks(range(len(rows)), ticks, fontsize="small")
    axes.set_ylabel("times def, simulated")
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside right center", fontsize="small")
    title = "Copies and homes, 16 processes, simulated"
    figure.suptitle(title)
    save_figure(figure, path, title, ("use",), [])


if __name__ == "__main__":
    finish(main)
