"""One point of the simulator's validation: the MPI workload on emulated devices, and the same simulated.

A store of emulated targets holds one file, filled through the library. `Bench.point` plans for a described workload,
lays the file out so, runs mpiio under the library and sets what it reached beside the simulation of the same
description, plan and cluster. The devices' own counters tell what differs where something does: their service time
(what was cut into which accesses, which of these continued one another) or the time they stood idle (the clients').
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from emulated_bench import ROOT, STRIPEWISE, Device, Measured, run
from emulated_bench import Bench as FileBench

from stripewise.cluster import Cluster
from stripewise.plan import Plan
from stripewise.policy import PlanOptions, policy_named
from stripewise.simulate import Load, load_description, load_trace, simulate_plan
from stripewise.units import KIB, MIB
from stripewise.workload.describe import Description

#: Regions of the layouts, and of the Zipf law.
REGION_BYTES = MIB
#: Of every process, to find how many make a run of the wanted length.
PILOT_REQUESTS = 64
#: Mean think time, exponential, of the simulations beside: what a scheduler may well add.
JITTER_S = 1e-4
#: Name, class, startup in s, s per byte, the part of the file that it can hold (0: all).
DEVICES = [
    *((f"hdd{n}", "hdd", 0.003, 1e-8, 0.0) for n in range(4)),
    *((f"ssd{n}", "ssd", 0.0001, 2.5e-9, 1 / 12) for n in range(2)),
]


@dataclass(frozen=True)
class Point:
    """A workload and a layout: a policy's name, or `user` for the one of docs/writing-a-policy.md."""

    kind: str
    operation: str
    request_bytes: int
    processes: int
    layout: str
    #: Whether the run is traced, and the trace simulated instead of the description.
    traced: bool = False

    @property
    def name(self) -> str:
        """As the table has it."""
        words = [self.kind, self.operation, f"{self.request_bytes // KIB}KiB", f"p{self.processes}", self.layout]
        return "-".join([*words, "trace"] if self.traced else words)

    def description(self, path: Path, file_bytes: int, requests: int) -> Description:
        """So many requests of every process on the file at `path`."""
        reads = requests if self.operation == "read" else 0
        return Description(
            self.kind, self.processes, ((self.request_bytes, 1.0),), file_bytes, path=str(path),
            region_bytes=REGION_BYTES, reads=reads, writes=requests - reads, source=self.name,
        )  # fmt: skip


def other_simulations(described: Description, cluster: Cluster, plan: Plan) -> dict[str, float]:
    """Bandwidths of two other simulations, for points in which processes race for a sequence on one disk.

    In the one every access pays its startup, in the other processes think for a short time drawn by chance.
    """
    targets = (replace(each, device=replace(each.device, sequential_discount=0.0)) for each in cluster.targets)
    strict = replace(cluster, targets=tuple(targets))
    thinking = replace(described, think_s=JITTER_S, think="exponential")
    return {
        "sequential_discount = 0": simulate_plan(load_description(described), strict, plan).report["mb_s"],
        f"think times of {JITTER_S * 1e3:g} ms": simulate_plan(load_description(thinking), cluster, plan).report[
            "mb_s"
        ],
    }


def compared(simulated: Mapping[str, Any], measured: Measured) -> dict[str, Any]:
    """Both bandwidths, and from the devices' counters what they did: service time, accesses, startups."""
    busy_s, served = measured.busy_s, measured.served
    servers = simulated["servers"]
    of_servers = {key: sum(server[key] for server in servers) for key in ("busy_s", "accesses", "startups")}
    return {
        "measured_mb_s": measured.mb_s,
        "simulated_mb_s": simulated["mb_s"],
        "ratio": measured.mb_s / simulated["mb_s"],
        "requests": simulated["requests"],
        "seconds": measured.seconds,
        "measured_busy_s": sum(busy_s.values()),
        "simulated_busy_s": of_servers["busy_s"],
        "measured_accesses": sum(row["accesses_read"] + row["accesses_write"] for row in served.values()),
        "simulated_accesses": of_servers["accesses"],
        "measured_startups": sum(row["startups"] for row in served.values()),
        "simulated_startups": of_servers["startups"],
        "measured_utilisation": max(busy_s.values()) / measured.seconds,
        "simulated_utilisation": max(server["busy_s"] for server in servers) / simulated["seconds"],
    }


class Bench(FileBench):
    """The devices of the validation, and what is asked of them point by point."""

    def __init__(self, base: Path, file_bytes: int) -> None:
        devices = [
            Device(name, klass, startup_s, per_byte_s, int(file_bytes * part))
            for name, klass, startup_s, per_byte_s, part in DEVICES
        ]
        super().__init__(base, file_bytes, devices)
        page = (ROOT / "docs/writing-a-policy.md").read_text()
        (base / "user.py").write_text(page.split("```python\n")[1].split("```")[0])

    def planned(self, load: Load, layout: str) -> Plan:
        """The plan of the layout's policy for a load."""
        policy = policy_named(str(self.base / "user.py") if layout == "user" else layout)
        return policy.plan(load.workload, self.cluster, PlanOptions(region_bytes=REGION_BYTES))

    def point(self, point: Point, seconds: float, repeat: int) -> dict[str, Any]:
        """Measures and simulates a point; the run lasts so many seconds if the simulation is right."""
        pilot = load_description(point.description(self.path, self.file_bytes, PILOT_REQUESTS))
        plan = self.planned(pilot, point.layout)
        each_s = simulate_plan(pilot, self.cluster, plan).report["seconds"] / PILOT_REQUESTS
        described = point.description(self.path, self.file_bytes, max(1, round(seconds / each_s)))
        load = load_description(described)
        plan = self.planned(load, point.layout)
        self.lay_out(plan)
        runs = [self._run(point, described, plan, load) for _ in range(repeat)]
        # The run of the median ratio: a traced run is held against its own trace.
        chosen = sorted(runs, key=lambda each: each["ratio"])[(len(runs) - 1) // 2]
        ratio = statistics.median(each["ratio"] for each in runs)
        others = {} if point.traced else other_simulations(described, self.cluster, plan)
        return {
            "point": point.name, **chosen, "ratio": ratio, "ratios": [each["ratio"] for each in runs], "beside": others,
        }  # fmt: skip

    def _run(self, point: Point, described: Description, plan: Plan, load: Load) -> dict[str, Any]:
        trace = self.base / "trace" if point.traced else None
        run("rm", "-rf", self.base / "trace")
        measured = self.measure(described, point.operation, trace)
        if trace is not None:
            run(STRIPEWISE, "collect", trace)
            load = load_trace(trace)
        return compared(simulate_plan(load, self.cluster, plan).report, measured)
