"""The third row of the table: hot regions whole on one SServer each, others whole on one HServer each, in turn.

The policy of docs/writing-a-policy.md without its exception for large requests, which stripes their regions.
"""

import numpy as np

from stripewise.policy import (
    Cluster,
    Plan,
    PlanOptions,
    Space,
    Stripes,
    Workload,
    build_regions,
    region_name,
    register,
    rotate,
    static_plan,
)


@register
def whole_region(workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
    """Every region whole on one server, the most used ones on SServers."""
    table = build_regions(workload, options.region_bytes)
    space = Space(cluster, options.reserved_bytes)
    uses = np.array([table.count[a:b].sum() for a, b in zip(table.first[:-1], table.first[1:], strict=True)])
    placed: list[Stripes] = [()] * table.regions
    reasons = [""] * table.regions
    for g in np.argsort(-uses, kind="stable").tolist():
        number = int(table.number[g])
        servers = rotate(cluster.sservers, number) + rotate(cluster.hservers, number)
        choices: list[Stripes] = [((target.name, options.region_bytes),) for target in servers]
        placed[g], _ = space.place(choices, number, 1, int(table.valid_bytes[g]), region_name(workload, table, g))
        reasons[g] = f"{int(uses[g])} requests: whole on {placed[g][0][0]}"
    return static_plan("whole-region", table, workload, cluster, options, placed, reasons)
