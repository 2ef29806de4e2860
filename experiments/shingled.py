"""What the experiments with shingled disks share: the drives, the requests, the runs over seeds on all cores, the rows.

Drives and real traces lie beside the checkout, in ../shared/data, and are never copied. Everything is simulated;
look-alikes are made from the statistics that the thesis prints of traces that could not be had.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from common import finish, progress
from stripewise.errors import UsageError
from stripewise.swd.disk import Disk, read_disk
from stripewise.swd.simulate import Fill, Scheme, Setup, simulate_disk
from stripewise.swd.workload import BlockWorkload, made_workload, trace_workload

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
GB = 10**9
BLOCK_BYTES = 512
#: Logical blocks of the thesis's drive under any static mapping: 3,000 tracks of 1,000 blocks, 4 of 5 hold data.
STATIC_BLOCKS = 2_400_000
#: Beyond the HDD's mean response by at most this share, a scheme counts as near it.
NEAR = 0.5
#: Busy for more than this share of a run, or responding later than this: a queue that only grows.
SATURATED, SATURATED_MS = 0.98, 10_000
#: The static mappings that the thesis adds to the conventional 1234.
NEW = ("R(4123)", "124R(3)", "14R(23)")
#: What the time of a write is made of; `waiting` is in queues, for commands and the bus.
PARTS = ("own", "amplification", "collection", "upkeep", "waiting")
Report = Mapping[str, Any]


def finish_with_data(main: Callable[[], None]) -> None:
    """Runs an experiment's `main` where the shared drives are there; says so where not, and leaves the kept result."""
    if not (DATA / "disks").is_dir():
        progress("not run: ../shared/data/disks is not there; put the shared data beside the checkout")
        return
    finish(main)


def drive(name: str) -> Disk:
    """A drive of the shared data. Raises UsageError where that is not there."""
    path = DATA / "disks" / f"{name}.toml"
    if not path.is_file():
        raise UsageError(f"../shared/data/disks/{path.name} is not there; put the shared data beside the checkout")
    return read_disk(path)


def with_facts(disk: Disk, name: str, **changes: Any) -> Disk:
    """The drive with some facts changed; None takes one away."""
    facts = {key: value for key, value in {**disk.facts, **changes}.items() if value is not None}
    return replace(disk, name=name, facts=facts)


def static_setup() -> Setup:
    """Chapter 4: the HP C3323A's mechanics with 3,000 tracks of 1,000 blocks on one surface; one command at a time."""
    disk = with_facts(
        drive("hp_c3323a"), "hp_c3323a, 3,000 x 1,000", cylinders=3000, surfaces=1, zones=[[0, 1000]], blocks=None
    )
    return Setup(disk, queue="fcfs", queue_depth=1, cache="reads")


def cheetah_setup(part: int = 1) -> Setup:
    """Chapter 5: the Cheetah 15K.5, 2 GB of random access zone and 2 GB of E-region; eight commands, shortest first.

    `part` cuts it to that part of its cylinders and areas, for workloads that do not seek.
    """
    disk = drive("cheetah15k5")
    if part > 1:
        cylinders = disk.facts["cylinders"] // part
        zones = [[first // part, sectors] for first, sectors in disk.facts["zones"]]
        zones = [
            zone for at, zone in enumerate(zones) if zone[0] < cylinders and (not at or zone[0] > zones[at - 1][0])
        ]
        disk = with_facts(disk, f"{disk.name}, 1/{part}", cylinders=cylinders, zones=zones, blocks=None)
    return Setup(
        disk, random_access=2 * GB // part, e_region=2 * GB // part, queue="sptf", queue_depth=8, cache="reads"
    )


@dataclass(frozen=True)
class Load:
    """Requests under the name that a row has: `words` of a generated workload, or the file of a shared `trace`.

    `stretch` multiplies times of arrival, `lba_factor` addresses before they are folded into the used space.
    """

    name: str
    words: str = ""
    trace: str = ""
    stretch: float = 1.0
    requests: int | None = None
    lba_factor: int = 1
    trace_format: str | None = None

    @property
    def seeded(self) -> bool:
        """Whether a seed makes another run of it; a trace is what it is, and SYN differs in its gaps only."""
        return bool(self.words)

    def made(self, seed: int) -> BlockWorkload:
        """The requests as the engine takes them."""
        if self.trace:
            path = DATA / "block" / self.trace
            return trace_workload(path, self.trace_format, stretch=self.stretch, requests=self.requests)
        made = made_workload(self.words, requests=self.requests, stretch=self.stretch, seed=seed)
        return replace(made, lba_factor=self.lba_factor)


def look_alike(name: str, stretch: float, requests: int) -> Load:
    """The look-alike of a published trace."""
    return Load(f"{name} look-alike", f"look-alike:{name}", stretch=stretch, requests=requests)


#: The shared real traces with stretches at which neither chapter's slowest scheme is saturated for long: postmark comes
#: in bursts, DTRS100M does not need one (the unit of its times is not confirmed).
TRACES = (
    Load("postmark trace x32", trace="postmark-aligned.trace", stretch=32.0),
    Load("DTRS100M trace", trace="DTRS100M.trace", trace_format="dtrs"),
)


def shared_traces(traces: Sequence[Load] = TRACES) -> tuple[Load, ...]:
    """Those of the shared traces that are there."""
    for load in traces:
        if not (DATA / "block" / load.trace).is_file():
            progress(f"not run: ../shared/data/block/{load.trace} is not there")
    return tuple(load for load in traces if (DATA / "block" / load.trace).is_file())


@dataclass(frozen=True)
class Case:
    """One row: its keys, what is run, and who is compared by the name of its column."""

    keys: Mapping[str, Any]
    setup: Setup
    schemes: Mapping[str, Scheme]
    fill: Fill
    load: Load
    seeds: int = 1


@dataclass(frozen=True)
class Outcome:
    """One scheme at one row: a report per seed."""

    reports: tuple[Report, ...] = field(repr=False)

    def mean(self, of: Callable[[Report], float]) -> float:
        """The mean over the seeds."""
        return fmean(of(report) for report in self.reports)

    def error(self, of: Callable[[Report], float]) -> float | None:
        """The standard error of that mean as a share of it; None of a single run."""
        values = [of(report) for report in self.reports]
        return stdev(values) / len(values) ** 0.5 / fmean(values) if len(values) > 1 else None


def schemes(*names: str) -> dict[str, Scheme]:
    """Schemes with the seed's parameters."""
    return {name: Scheme(name) for name in names}


def used(blocks: int, label: str) -> Fill:
    """So many blocks in use: the same requests for every scheme."""
    return Fill(label, used_bytes=blocks * BLOCK_BYTES)


def response_ms(report: Report) -> float:
    """Mean response time of all requests."""
    return float(report["response_s"]["mean"]) * 1e3


def amplification(report: Report) -> float:
    """WAR: requests that writing took over those that a plain disk would have made."""
    return float(report["amplification"])


def is_saturated(outcome: Outcome) -> bool:
    """Whether a disk could not keep up: its response then says how long the run was."""
    return outcome.mean(lambda report: report["utilisation"]) > SATURATED or outcome.mean(response_ms) > SATURATED_MS


def split_ms(outcome: Outcome) -> dict[str, float]:
    """Mean time of a write by what it is made of (figure 5.4)."""
    return {
        part: outcome.mean(lambda report, part=part: report["write_time"][f"{part}_s"] / max(1, report["writes"]) * 1e3)  # type: ignore[misc]
        for part in PARTS
    }


def rows_of(experiment: str) -> list[dict[str, Any]]:
    """The kept rows of another experiment. Raises UsageError where it was not run."""
    file = Path(__file__).resolve().parent / experiment / "result.json"
    if not file.is_file():
        raise UsageError(f"experiments/{experiment}/result.json is not there; run: make experiment NAME={experiment}")
    found: list[dict[str, Any]] = json.loads(file.read_text())["rows"]
    return found


def run_cases(cases: Sequence[Case]) -> Iterator[tuple[Case, dict[str, Outcome]]]:
    """Runs every scheme of every case once per seed, on all cores; what comes is in the order of `cases`."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:

        def wait(case: Case, scheme: Scheme) -> list[Future[Report]]:
            seeds = range(1, case.seeds + 1 if case.load.seeded else 2)
            made = [case.load.made(seed) for seed in seeds]
            return [pool.submit(simulate_disk, case.setup, scheme, case.fill, load) for load in made]

        waited = [{name: wait(case, scheme) for name, scheme in case.schemes.items()} for case in cases]
        try:
            for case, futures in zip(cases, waited, strict=True):
                found = {name: Outcome(tuple(each.result() for each in some)) for name, some in futures.items()}
                yield case, found
        finally:
            pool.shutdown(cancel_futures=True)


def row(case: Case, found: Mapping[str, Outcome], of: Callable[[Report], float] = response_ms) -> dict[str, Any]:
    """The row's keys, a figure for each scheme, WAR, and how far chance may have moved the figures."""
    errors = {name: outcome.error(of) for name, outcome in found.items()}
    return {
        **case.keys,
        **{name: outcome.mean(of) for name, outcome in found.items()},
        "war": {name: outcome.mean(amplification) for name, outcome in found.items()},
        "standard_error": {name: error for name, error in errors.items() if error is not None},
    }


def told(made: Mapping[str, Any], names: Sequence[str], unit: str = "ms") -> None:
    """A row as a line of progress."""
    head = ", ".join(str(value) for value in made.values() if isinstance(value, str | int))
    progress(
        f"{head}: " + ", ".join(f"{name} {made[name]:.4g}" for name in names if name in made) + f" {unit}, simulated"
    )


#: What the keys of the rows mean, for the end of a result file.
MEANINGS = {
    "simulated": True,
    "unit": "ms, mean response time over all requests, mean over the seeds",
    "column_label": "ms, simulated",
    "war": "write amplification ratio: requests that writing took over those that a plain disk would have made",
    "standard_error": "of the mean over the seeds, as a share of it; traces are run once",
}
