"""Plans run in the simulator before one is chosen: what queues do with few processes no bound tells.

The bound is what no schedule beats; how near a layout comes to it depends on how many processes wait where. So the
plans that could be best by their bounds are run by crates/sim on the requests that they are for, and the quickest is
taken. Simulated seconds decide and are told; they are not measured ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ... import native
from ...cluster import Cluster
from ...errors import naming
from ...plan import Plan
from ...simulate.scenario import scenario
from ...workload.requests import Requests, Workload
from .tuning import HOPELESS, TRIAL_REQUESTS_MAX


@dataclass(frozen=True)
class Run:
    """Simulated seconds, and what every server's channels were busy for on average, by its name."""

    seconds: float
    busy_s: Mapping[str, float]


class Trial:
    """The first requests of a workload, a closed loop with the trace's think times, to be run under any plan."""

    def __init__(self, workload: Workload, cluster: Cluster) -> None:
        # Files whose requests moved no byte have no place in a plan.
        files = [file for file in workload.files if (file.requests["size"] > 0).any()]
        self.paths = [file.path for file in files]
        self.tables = [each.tobytes() for each in _dealt([file.requests for file in files], workload.processes)]
        self.most = max(1, TRIAL_REQUESTS_MAX // max(1, workload.processes))
        self.requests = min(TRIAL_REQUESTS_MAX, sum(len(file.requests) for file in files))
        self.source, self.cluster = workload.source, cluster
        self.channels = {target.name: target.channels for target in cluster.targets}

    def run(self, plan: Plan) -> Run:
        """The run under one plan."""
        described = scenario(plan, self.cluster, self.paths)
        with naming(self.source):
            report = native.call("simulate_requests", json.dumps(described), self.tables, self.most)
        busy_s = {each["name"]: float(each["busy_s"]) / self.channels[each["name"]] for each in report["servers"]}
        return Run(float(report["seconds"]), busy_s)


def trial_s(plans: Sequence[Plan], bounds_s: Sequence[float], trial: Trial) -> list[float]:
    """Simulated seconds of the workload under every plan.

    The first plan is always run, the others by their bounds in ascending order, and those that cannot be the quickest
    are not: inf. A run is quicker than its bound where accesses continue others, so what tells is how much so far.
    """
    seconds = [float("inf")] * len(plans)
    spared = float("inf")
    for number in [0, *sorted(range(1, len(plans)), key=lambda each: bounds_s[each])]:
        if number and bounds_s[number] * spared > HOPELESS * min(seconds):
            break
        seconds[number] = trial.run(plans[number]).seconds
        spared = min(spared, seconds[number] / max(bounds_s[number], 1e-300))
    return seconds


def _dealt(tables: Sequence[Requests], processes: int) -> Sequence[Requests]:
    """The requests of all files by rank; dealt in turn where the ranks do not tell as many processes as there were."""
    ranks = {int(rank) for table in tables for rank in np.unique(table["rank"])}
    if len(ranks) >= processes:
        return tables
    dealt = [table.copy() for table in tables]
    order = np.argsort(np.concatenate([table["start_ns"] for table in tables]), kind="stable")
    turn = np.empty(len(order), dtype=np.int32)
    turn[order] = np.arange(len(order)) % processes
    low = 0
    for table in dealt:
        table["rank"] = turn[low : low + len(table)]
        low += len(table)
    return dealt
