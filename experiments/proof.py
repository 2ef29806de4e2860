"""How near `best` comes to what no layout beats: the proven bound, the optimiser's gap, and what queueing costs.

With few processes per server queues are empty by chance now and then, whatever the layout, and no plan reaches its
bound. So the same plan is also run with MANY processes per server: what it gains there was lost to queueing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stripewise.cluster import Cluster
from stripewise.errors import StripewiseError
from stripewise.plan import Plan
from stripewise.simulate import Settings, load_description, simulate_plan
from stripewise.workload.describe import description_from

#: Processes per server from which queues are hardly ever empty.
MANY = 8
#: Kinds whose requests are drawn each by itself: more processes make more of them.
DRAWN = ("zipf", "random")


@dataclass(frozen=True)
class Proof:
    """Of one planned run: what is proven, the gap, the layout's own bound, and bound over seconds with MANY processes.

    `many_share` is None where the run itself has as many, or its requests cannot be dealt to more.
    """

    proven_s: float
    gap: float
    bound_s: float
    processes_per_server: float
    many_share: float | None


def proof_of(
    plan: Plan, bound_s: float, described: Mapping[str, Any], source: Path, changes: Mapping[str, Any],
    cluster: Cluster, seed: int,
) -> Proof | None:  # fmt: skip
    """The proof of a plan, None where its policy proves nothing. `bound_s` is that of the run's report."""
    if plan.expected.proven_s is None or plan.expected.gap is None:
        return None
    processes, servers = description_from(described, source, changes).processes, len(cluster.active)
    share = None
    if processes < MANY * servers:
        more = _dealt_to_many({**described, **changes}, processes, math.ceil(MANY * servers / processes))
        try:
            load = load_description(description_from(described, source, {**changes, **more}))
            report = simulate_plan(load, cluster, plan, Settings(seed=seed)).report
        except StripewiseError:
            # A grid of processes, or a file too small for more of them.
            report = None
        # Where windows wait for their time, a whole run tells nothing of queues.
        if report is not None and not {**described, **changes}.get("window_seconds"):
            share = report["bound_s"] / report["seconds"]
    return Proof(plan.expected.proven_s, plan.expected.gap, bound_s, processes / servers, share)


def _dealt_to_many(data: Mapping[str, Any], processes: int, factor: int) -> dict[str, Any]:
    """So many times the processes: with as many requests each where they are drawn, else the same ones dealt out."""
    more: dict[str, Any] = {"processes": processes * factor}
    if data["kind"] not in DRAWN:
        more |= {key: math.ceil(data[key] / factor) for key in ("reads", "writes") if data.get(key)}
    return more


def proof_row(runs: list[tuple[float, float, list[Proof]]]) -> dict[str, float]:
    """What a row says: `runs` are (bytes, seconds, proofs of the phases) per seed; ratios are means over the seeds.

    Bandwidths in MB/s. `ratio_many` is what optimiser and queues leave of the proven bound with MANY processes per
    server: the proven bound over the layout's own, times that over the seconds of the run with so many. The bound
    counts a startup for every access; where a disk that goes on where it stopped is spared it, a run can be quicker,
    and the row says `beaten`, by what factor, instead.
    """
    count = len(runs)
    proven = [sum(each.proven_s for each in proofs) for _, _, proofs in runs]
    bounds = [sum(each.bound_s for each in proofs) for _, _, proofs in runs]
    row = {
        "proven_mb_s": sum(size / each / 1e6 for (size, _, _), each in zip(runs, proven, strict=True)) / count,
        "ratio": sum(each / seconds for (_, seconds, _), each in zip(runs, proven, strict=True)) / count,
        "gap": max(each.gap for _, _, proofs in runs for each in proofs),
        "processes_per_server": min(each.processes_per_server for _, _, proofs in runs for each in proofs),
    }
    if row["ratio"] > 1:
        return {"beaten": row["ratio"], "gap": row["gap"], "processes_per_server": row["processes_per_server"]}
    shares = [[each.many_share for each in proofs] for _, _, proofs in runs]
    if all(share is not None for each in shares for share in each):
        total = 0.0
        for (_, _, proofs), each_proven, bound in zip(runs, proven, bounds, strict=True):
            seconds = sum(each.bound_s / (each.many_share or 1.0) for each in proofs)
            total += each_proven / bound * (bound / seconds)
        row["ratio_many"] = total / count
    return row
