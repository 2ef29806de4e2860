"""Plans run in the simulator before one is chosen: what queues do with few processes no bound tells.

The bound is what no schedule beats; how near a layout comes to it depends on how many processes wait where. So the plans
that could be best by their bounds are run by crates/sim on the requests that they are for, and the quickest is taken.
Simulated seconds decide and are told; they are not measured ones.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ... import native
from ...cluster import Cluster
from ...errors import StoreError, WorkloadError
from ...plan import Plan
from ...simulate.scenario import scenario
from ...workload.requests import Workload

#: Requests that a trial runs at most, all processes together.
REQUESTS_MAX = 400_000


def trial_s(plans: Sequence[Plan], workload: Workload, cluster: Cluster) -> list[float]:
    """Simulated seconds of the workload's first requests under every plan, a closed loop with the trace's think times."""
    files = [file for file in workload.files if len(file.requests)]
    tables = [file.requests.tobytes() for file in files]
    most = max(1, REQUESTS_MAX // max(1, workload.processes))
    seconds = []
    for plan in plans:
        described = scenario(plan, cluster, [file.path for file in files])
        try:
            report = native.call("simulate_requests", json.dumps(described), tables, most)
        except StoreError as error:
            raise WorkloadError(f"{workload.source}: {error}") from error
        seconds.append(float(report["seconds"]))
    return seconds
