"""What the experiments share: who is compared, runs over several seeds on all cores, the result file.

An experiment is a folder: README.md, run.py and what it needs (workload.toml, cluster.toml), and what run.py writes:
result.json and result.svg. Everything that is run from here is simulated.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from proof import MANY, Proof, proof_of, proof_row
from stripewise.cluster import Cluster
from stripewise.errors import StripewiseError
from stripewise.files.parts import write_durably
from stripewise.policy import POLICIES, PlanOptions, policy_named
from stripewise.policy.base import OWN_OPTIONS
from stripewise.simulate import Settings, load_description, simulate_plan
from stripewise.workload.describe import description_from, read_workload_toml

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
#: Compared everywhere, in this order; those that are not there yet are left out.
COMPARED = ("def", "padp", "psa", "h2dp", "slal", "best")
#: Bandwidths that differ by less are the same: what the search itself takes as a tie.
TIE = 0.002
#: Of real-emulated runs: Student's t is tabled for so many.
REPEATS_MAX = 10


@dataclass(frozen=True)
class Contender:
    """A policy under a name of its own, with its options (PlanOptions). `is_still` leaves out the plan's moves."""

    label: str
    policy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    is_still: bool = False


def contenders(names: Sequence[str] = COMPARED, **options: Any) -> tuple[Contender, ...]:
    """The policies of `names` that exist; each gets those of `options` that it takes."""
    return tuple(
        Contender(name, name, {key: value for key, value in options.items() if _takes(name, key)})
        for name in names
        if name in POLICIES
    )


def _takes(policy: str, option: str) -> bool:
    return option not in OWN_OPTIONS or option in policy_named(policy).takes


@dataclass(frozen=True)
class Point:
    """One place on an axis: a cluster, what runs on it, who is compared.

    `phases` are workloads that run one after another, each planned by itself: changes of the keys of `workload`.
    `in_flight` counts as a run's seconds only those in which a process has a request in flight, the mean over
    processes: where windows wait for their time, the rest is idle.
    """

    workload: Path
    cluster: Cluster
    contenders: tuple[Contender, ...]
    changes: Mapping[str, Any] = field(default_factory=dict)
    phases: tuple[Mapping[str, Any], ...] = ({},)
    in_flight: bool = False


@dataclass(frozen=True)
class Run:
    """One simulated run: bytes, seconds, what no schedule of this layout beats, busy seconds of each server."""

    bytes: int
    seconds: float
    bound_s: float
    moved_bytes: int
    hdd_busy_s: tuple[float, ...]
    ssd_busy_s: tuple[float, ...]
    proofs: tuple[Proof, ...] = ()

    @property
    def mb_s(self) -> float:
        return self.bytes / self.seconds / 1e6


@dataclass(frozen=True)
class Series:
    """One contender at one point: a run per seed."""

    runs: tuple[Run, ...]

    @property
    def mb_s(self) -> float:
        """MB/s, the mean over the seeds."""
        return fmean(run.mb_s for run in self.runs)

    @property
    def bound(self) -> float:
        """MB/s that no schedule of these layouts beats (cost models, section 7), the mean over the seeds."""
        return fmean(run.bytes / run.bound_s / 1e6 for run in self.runs)

    @property
    def error(self) -> float:
        """The standard error of the mean as a share of it: what is left of chance after all seeds."""
        return stdev(run.mb_s for run in self.runs) / len(self.runs) ** 0.5 / self.mb_s if len(self.runs) > 1 else 0.0

    @property
    def proof(self) -> dict[str, float]:
        """How near the runs come to what is proven (proof.py); empty where nothing is."""
        if not all(run.proofs for run in self.runs):
            return {}
        return proof_row([(run.bytes, run.seconds, list(run.proofs)) for run in self.runs])

    @property
    def moved(self) -> float:
        """Bytes that were copied between windows over bytes that the program moved, the mean over the seeds."""
        return fmean(run.moved_bytes / run.bytes for run in self.runs)

    @property
    def moved_bytes(self) -> float:
        """Bytes that were copied between windows, the mean over the seeds."""
        return fmean(run.moved_bytes for run in self.runs)


def _run(point: Point, seed: int) -> dict[str, Run]:
    """Every contender at a point under one seed, which draws requests, random orders and devices.

    A policy plans from the requests that are then run, as in the papers: the traced run is repeated.
    """
    made: dict[str, list[dict[str, Any]]] = {each.label: [] for each in point.contenders}
    proofs: dict[str, list[Proof]] = {each.label: [] for each in point.contenders}
    described = read_workload_toml(point.workload)
    for number, phase in enumerate(point.phases):
        changes = {**point.changes, **phase, "seed": seed * len(point.phases) + number}
        load = load_description(description_from(described, point.workload, changes))
        for each in point.contenders:
            plan = policy_named(each.policy).plan(load.workload, point.cluster, PlanOptions(seed=seed, **each.options))
            if each.is_still:
                plan = replace(plan, migrations=())
            report = dict(simulate_plan(load, point.cluster, plan, Settings(seed=seed)).report)
            made[each.label].append(report)
            bound_s = report["bound_s"]
            proof = proof_of(plan, bound_s, described, point.workload, changes, point.cluster, seed)
            proofs[each.label] += [] if proof is None else [proof]
    ssds = {target.name for target in point.cluster.sservers}
    return {
        label: replace(_summed(reports, ssds, point.in_flight), proofs=tuple(proofs[label]))
        for label, reports in made.items()
    }


def _summed(reports: Sequence[Mapping[str, Any]], ssds: set[str], in_flight: bool) -> Run:
    """Phases one after another as one run."""
    busy: dict[str, float] = {}
    for report in reports:
        for server in report["servers"]:
            busy[server["name"]] = busy.get(server["name"], 0.0) + server["busy_s"]
    return Run(
        bytes=sum(report["bytes_read"] + report["bytes_written"] for report in reports),
        seconds=sum(_in_flight_s(report) if in_flight else report["seconds"] for report in reports),
        bound_s=sum(report["bound_s"] for report in reports),
        moved_bytes=sum(report["moved_bytes"] for report in reports),
        hdd_busy_s=tuple(seconds for name, seconds in busy.items() if name not in ssds),
        ssd_busy_s=tuple(seconds for name, seconds in busy.items() if name in ssds),
    )


def _in_flight_s(report: Mapping[str, Any]) -> float:
    """Seconds that a process has a request in flight, the mean over processes; the run only reads or only writes."""
    (latency,) = [each for each in report["latency_s"].values() if each]
    return float(latency["mean"] * report["requests"] / report["processes"])


def run_points(points: Sequence[Point], seeds: int) -> Iterator[dict[str, Series]]:
    """Simulates every contender at every point once per seed, on all cores; what comes is in the order of `points`."""
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(points) * seeds)) as pool:
        waited = [[pool.submit(_run, point, seed) for seed in range(1, seeds + 1)] for point in points]
        try:
            for point, futures in zip(points, waited, strict=True):
                runs = [future.result() for future in futures]
                yield {each.label: Series(tuple(run[each.label] for run in runs)) for each in point.contenders}
        finally:
            pool.shutdown(cancel_futures=True)


def figures(series: Mapping[str, Series], bounded: bool = True) -> dict[str, Any]:
    """What every row holds: MB/s by contender, their bounds where `bounded`, and how far chance may have moved them."""
    made: dict[str, Any] = {
        **{name: each.mb_s for name, each in series.items()},
        "standard_error": {name: each.error for name, each in series.items()},
    }
    if "best" in series:
        made["proof"] = series["best"].proof
        made["best_behind"] = {name: share for name in series if (share := ahead(series[name], series["best"])) > 0}
    if bounded:
        bounds = {name: each.bound for name, each in series.items()}
        best = max(bounds, key=lambda name: bounds[name])
        made |= {"bound": bounds[best], "bound_of": best, "bounds": bounds}
    return made


def ahead(other: Series, mine: Series) -> float:
    """By what share the other is quicker, the mean over the seeds; 0 where that is a tie or may be chance.

    Chance is what is within two standard errors of the differences, seed by seed.
    """
    shares = [gain(theirs.mb_s, ours.mb_s) for theirs, ours in zip(other.runs, mine.runs, strict=True)]
    error = stdev(shares) / len(shares) ** 0.5 if len(shares) > 1 else 0.0
    return fmean(shares) if fmean(shares) > max(TIE, 2 * error) else 0.0


#: What the keys of `figures` mean, for the end of every result file.
MEANINGS = {
    "simulated": True,
    "unit": "MB/s (10^6 bytes), mean over the seeds",
    "bound": "the largest of the row's `bounds`: what no schedule beats on the best of these layouts",
    "bounds": "by policy, for its own layout: max(busiest server's demand, sum of requests alone / processes)",
    "standard_error": "of the mean, as a share of it",
    "proof": "of best: the bound that no layout beats (proven_mb_s), best over it (ratio), the optimiser's gap, "
    f"the same layout's ratio with {MANY} processes per server (ratio_many); beaten instead, by what factor, where "
    "accesses that continue the one before are spared the startup that the bound counts",
    "best_behind": f"who is ahead of best by more than {TIE:.1%} and two standard errors, and by what share",
}


def gain(of: float, over: float) -> float:
    """By what share `of` is faster than `over`: 1.43 is the papers' "143 percent"."""
    return of / over - 1


def rounded(value: Any) -> Any:
    """Floats to five digits: more would only tell machines apart."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value


def write_result(folder: Path, result: Mapping[str, Any], name: str = "result.json") -> None:
    """Writes the result file, the rows one a line so that results can be compared."""
    rows = ",\n  ".join(json.dumps(row) for row in rounded(result["rows"]))
    others = {key: value for key, value in result.items() if key != "rows"}
    rest = "".join(f',\n "{key}": {json.dumps(rounded(value))}' for key, value in others.items())
    write_durably(folder / name, f'{{"rows": [\n  {rows}\n ]{rest}\n}}\n')


def progress(text: str) -> None:
    """A line on stderr: what is being run."""
    print(text, file=sys.stderr, flush=True)


def shown(head: str, row: Mapping[str, Any], names: Sequence[str]) -> None:
    """A row as a line of progress."""
    told = [name for name in (*names, "bound") if name in row]
    progress(f"{head}: " + ", ".join(f"{name} {row[name]:.1f}" for name in told) + " MB/s, simulated")


@dataclass(frozen=True)
class Given:
    """The options of every run.py."""

    seeds: int
    requests: int
    out: Path
    sizes: tuple[int, ...] = ()
    part: str = "simulated"
    repeats: int = 0
    limit_s: float | None = None

    @property
    def as_json(self) -> dict[str, int]:
        return {"seeds": self.seeds, "requests_per_process": self.requests}


def arguments(what: str, home: Path, seeds: int, requests: int, sizes: Sequence[int] = (), repeats: int = 0) -> Given:
    """Reads the command line: a shorter or longer run, written elsewhere. `home` is the experiment's folder.

    Where `sizes` are given, so can be --size, for some of them only, and --limit; where `repeats` are, the experiment
    has a real-emulated part, and --part chooses.
    """
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--seeds", type=int, default=seeds, help=f"runs per point (default {seeds})")
    parser.add_argument("--requests", type=int, default=requests, help=f"per process (default {requests})")
    parser.add_argument("--out", type=Path, default=home, help="folder for result.json and result.svg (default: here)")
    if sizes:
        parser.add_argument("--size", type=int, action="append", choices=sizes, help="request size, repeatable")
        parser.add_argument("--limit", type=float, help="seconds for every search of best (default: its own)")
    if repeats:
        parser.add_argument("--part", choices=("simulated", "emulated", "both"), default="both", help="(default both)")
        parser.add_argument("--repeats", type=int, default=repeats, help=f"real-emulated runs each (default {repeats})")
    given = parser.parse_args()
    part, repeats = getattr(given, "part", "simulated"), getattr(given, "repeats", 0)
    if part != "simulated" and not 2 <= repeats <= REPEATS_MAX:
        parser.error(f"--repeats is 2 to {REPEATS_MAX}")
    if given.seeds < 1 or given.requests < 1:
        parser.error("--seeds and --requests are at least 1")
    try:
        given.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out {given.out}: {error.strerror}; name a folder that can be written")
    limit_s = getattr(given, "limit", None)
    chosen = tuple(getattr(given, "size", None) or sizes)
    return Given(given.seeds, given.requests, given.out, chosen, part, repeats, limit_s)


def home_of(file: str) -> Path:
    """The folder of the run.py at `file`."""
    return Path(file).resolve().parent


def finish(main: Any) -> None:
    """Runs an experiment's `main`; what the program can explain ends in one line."""
    try:
        main()
    except StripewiseError as error:
        sys.exit(f"experiment: {error}")
