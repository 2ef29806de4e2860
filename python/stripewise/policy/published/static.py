"""The end of every static policy: one placement for the whole run, priced beside DEF's and made a plan."""

from __future__ import annotations

from collections.abc import Sequence

from ...cluster import Cluster
from ...layout import Stripes
from ...model import parameters
from ...plan import Plan, Window
from ...workload.requests import Workload
from ..base import PlanOptions
from ..default import place_default
from ..toolkit.build import build_plan
from ..toolkit.pricing import Prices
from ..toolkit.regions import RegionTable


def static_plan(
    policy: str,
    table: RegionTable,
    workload: Workload,
    cluster: Cluster,
    options: PlanOptions,
    placed: Sequence[Stripes],
    reasons: Sequence[str],
) -> Plan:
    """The plan that puts region g of `table` on `placed[g]` because of `reasons[g]`, with its expected costs.

    `policy` names who decided. The regions' sizes must fit the targets: take them from a `Space` while placing.
    """
    baseline, _ = place_default(table, workload, cluster, options)
    prices = Prices.none(table.regions)
    prices.add(table, parameters(cluster, workload.processes), cluster, placed, baseline)
    return build_plan(policy, table, workload, cluster, options, placed, reasons, prices, [whole_span(workload)])


def whole_span(workload: Workload) -> Window:
    """From the first request's start to the last one's end."""
    used = [file.requests for file in workload.files if len(file.requests)]
    first = min(int(each["start_ns"].min()) for each in used)
    return Window(first, max(first, *(int(each["end_ns"].max()) for each in used)))
