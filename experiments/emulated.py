"""The real-emulated part of an experiment: mpiio under the preloaded library, on emulated devices, scaled down.

Every policy has a store of its own with the same devices. All plan from the same requests; a run is the first of these,
as many as last for SECONDS in the simulator, whose figure for the very same run stands beside. Runs are interleaved:
each policy once, in turn, then each again. What comes out is written to emulated.json, apart from what was simulated.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from emulated_bench import Bench, Device, Measured

from common import COMPARED, KIB, MIB, contenders, progress, write_result
from stripewise.plan import Plan
from stripewise.policy import PlanOptions, policy_named
from stripewise.simulate import Settings, load_description, simulate_plan
from stripewise.workload.describe import Description

#: Two-sided 95 % points of Student's t for 1, 2, .. degrees of freedom.
STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
#: How long a run is meant to last.
SECONDS = 2.0
#: A run whose devices stood idle for this share of it more than simulated was held up by the machine.
IDLE_SHARE = 0.05
#: So often a held-up run is made again.
AGAIN_MAX = 2
SEED = 1


@dataclass(frozen=True)
class Scene:
    """The devices and the file: `hdd` and `ssd` are startup in s and s per byte."""

    hservers: int
    sservers: int
    hdd: tuple[float, float]
    ssd: tuple[float, float]
    processes: int
    file_bytes: int = 256 * MIB
    region_bytes: int = MIB
    share: float = 1 / 6
    kind: str = "zipf"

    def devices(self) -> list[Device]:
        """HServers without a limit, SServers with room for `share` of the file together and what planners keep back."""
        each = int(self.file_bytes * self.share) // self.sservers
        room = each + each // 1000 + self.region_bytes // 256 + 4 * KIB
        return [
            *(Device(f"hdd{number}", "hdd", *self.hdd) for number in range(self.hservers)),
            *(Device(f"ssd{number}", "ssd", *self.ssd, room) for number in range(self.sservers)),
        ]

    def requests(self, request_bytes: int, seconds: float) -> int:
        """Per process, with which no layout is done sooner: every device serves whole requests all the time."""
        served = sum(1 / (each.startup_s + each.per_byte_s * request_bytes) for each in self.devices())
        return max(1, round(served * seconds / self.processes))

    def as_json(self) -> dict[str, Any]:
        """What the result file says of the scene."""
        return {
            "hservers": self.hservers, "sservers": self.sservers, "hdd_startup_s": self.hdd[0],
            "hdd_per_byte_s": self.hdd[1], "ssd_startup_s": self.ssd[0], "ssd_per_byte_s": self.ssd[1],
            "processes": self.processes, "file_bytes": self.file_bytes, "region_bytes": self.region_bytes,
            "ssd_share": self.share, "seconds": SECONDS,
        }  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One row: how the row is called, what is asked."""

    keys: Mapping[str, Any]
    request_bytes: int
    operation: str = "read"


@dataclass
class Lane:
    """A policy at one case: its plan, what it runs, what is simulated and what was measured of that."""

    name: str
    bench: Bench
    plan: Plan
    described: Description
    simulated: Mapping[str, Any]
    measured: list[Measured] = field(default_factory=list)
    again: int = 0

    def run(self, operation: str) -> None:
        """Measures once; where the machine was busy with something else, again."""
        for _ in range(AGAIN_MAX):
            found = self.bench.measure(self.described, operation)
            if self._idle_share(found) < IDLE_SHARE:
                break
            self.again += 1
        else:
            found = self.bench.measure(self.described, operation)
        self.measured.append(found)

    def _idle_share(self, found: Measured) -> float:
        """By how much the devices' mean utilisation is below the simulated one."""
        busy = sum(server["busy_s"] for server in self.simulated["servers"]) / self.simulated["seconds"]
        return float(1 - sum(found.busy_s.values()) / found.seconds / busy)

    @property
    def mb_s(self) -> list[float]:
        """Of each run."""
        return [each.mb_s for each in self.measured]


def interval(values: Sequence[float]) -> float:
    """Half the 95 % interval of the mean (Student's t); 0 where one value tells nothing of it."""
    return STUDENT_T[len(values) - 2] * stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def behind(lanes: Sequence[Lane], name: str = "best") -> list[str]:
    """Whom the policy is behind for sure: the mean of the differences, repeat by repeat, is below 0 by its interval."""
    by_name = {lane.name: lane.mb_s for lane in lanes}
    if name not in by_name:
        return []
    differences = {
        other: [mine - theirs for mine, theirs in zip(by_name[name], values, strict=True)]
        for other, values in by_name.items()
        if other != name
    }
    return [other for other, values in differences.items() if fmean(values) + interval(values) < 0]


def _described(scene: Scene, case: Case, path: Path, requests: int) -> Description:
    reads = requests if case.operation == "read" else 0
    return Description(
        scene.kind, scene.processes, ((case.request_bytes, 1.0),), scene.file_bytes, path=str(path),
        region_bytes=scene.region_bytes, reads=reads, writes=requests - reads, seed=SEED, source=str(case.keys),
    )  # fmt: skip


def _lane(name: str, bench: Bench, scene: Scene, case: Case) -> Lane:
    """Plans, lays the file out, and finds how many requests last for SECONDS."""
    whole = _described(scene, case, bench.path, scene.requests(case.request_bytes, SECONDS))
    load = load_description(whole)
    plan = policy_named(name).plan(load.workload, bench.cluster, PlanOptions(region_bytes=scene.region_bytes))
    seconds = simulate_plan(load, bench.cluster, plan, Settings(seed=SEED)).report["seconds"]
    requests = max(1, round(scene.requests(case.request_bytes, SECONDS) * min(1.0, SECONDS / seconds)))
    described = _described(scene, case, bench.path, requests)
    simulated = simulate_plan(load_description(described), bench.cluster, plan, Settings(seed=SEED)).report
    bench.lay_out(plan)
    return Lane(name, bench, plan, described, simulated)


def row_of(case: Case, lanes: Sequence[Lane]) -> dict[str, Any]:
    """Simulated MB/s by policy, and measured ones with their 95 % interval."""
    return {
        **case.keys,
        **{lane.name: float(lane.simulated["mb_s"]) for lane in lanes},
        "emulated": {lane.name: fmean(lane.mb_s) for lane in lanes},
        "emulated_interval": {lane.name: interval(lane.mb_s) for lane in lanes},
        "emulated_runs": {lane.name: lane.mb_s for lane in lanes},
        "made_again": {lane.name: lane.again for lane in lanes},
        "requests_per_process": {lane.name: lane.described.reads or lane.described.writes for lane in lanes},
        "best_behind": behind(lanes),
    }


def run_cases(scene: Scene, cases: Sequence[Case], repeats: int, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows, as they come."""
    with tempfile.TemporaryDirectory(prefix="stripewise-experiment-", ignore_cleanup_errors=True) as scratch:
        base = Path(scratch).resolve()
        present = [each.label for each in contenders(names)]
        benches = {name: Bench(base / name, scene.file_bytes, scene.devices()) for name in present}
        for case in cases:
            lanes = [_lane(name, bench, scene, case) for name, bench in benches.items()]
            for repeat in range(repeats):
                # Another policy is first each time, so that none always follows the same one.
                for lane in (*lanes[repeat % len(lanes) :], *lanes[: repeat % len(lanes)]):
                    lane.run(case.operation)
            yield row_of(case, lanes)


def run_emulated(
    out: Path, scene: Scene, cases: Sequence[Case], repeats: int, names: Sequence[str] = COMPARED
) -> list[dict[str, Any]]:
    """Runs the real-emulated part and writes emulated.json."""
    rows = []
    begun = os.getloadavg()[0]
    for row in run_cases(scene, cases, repeats, names):
        rows.append(row)
        said = ", ".join(
            f"{name} {value:.0f} ± {row['emulated_interval'][name]:.0f} ({row[name]:.0f})"
            for name, value in row["emulated"].items()
        )
        progress(f"{' '.join(str(value) for value in row.values() if isinstance(value, str | int))}: {said} MB/s, "
                 "real-emulated (simulated)")  # fmt: skip
    write_result(
        out,
        {
            "rows": rows,
            "emulated": "MB/s (10^6 bytes) of mpiio under the library on emulated devices, mean of the repeats",
            "emulated_interval": "half of its 95 % interval (Student's t)",
            "made_again": f"runs repeated since devices stood idle by {IDLE_SHARE:.0%} more than simulated",
            "best_behind": "policies that best is behind beyond the 95 % interval of the differences, repeat by repeat",
            "scene": scene.as_json(),
            "repeats": repeats,
            "load_average": begun,
        },
        "emulated.json",
    )
    return rows
