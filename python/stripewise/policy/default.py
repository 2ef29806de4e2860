"""DEF: every region on all servers of every class with one stripe, as a parallel file system does without advice.

With limited SServer space, regions go on hybrid servers in a seeded random order until the space is used up, the rest
on HServers alone with the same stripe (placement.md, DEF). It is the baseline that every other plan is compared with.
"""

from __future__ import annotations

from ..cluster import Cluster
from ..layout import Stripes
from ..model import parameters
from ..plan import Plan
from ..workload.requests import Workload
from .base import PlanOptions, Policy, register
from .toolkit.build import build_plan, region_name
from .toolkit.hybrid import drawn_order
from .toolkit.pricing import Prices
from .toolkit.regions import RegionTable
from .toolkit.space import Space
from .toolkit.striping import EqualStripes
from .toolkit.windows import window_tables


def place_default(
    table: RegionTable, workload: Workload, cluster: Cluster, options: PlanOptions
) -> tuple[list[Stripes], list[str]]:
    """Stripes and reason of every region under DEF; worked out once per table, cluster and options."""
    held = tuple(sorted(options.reserved_bytes.items()))
    key = ("def", cluster.digest(), options.stripe_bytes, options.seed, held)
    return table.memoized(key, lambda: _place(table, workload, cluster, options))


def _place(
    table: RegionTable, workload: Workload, cluster: Cluster, options: PlanOptions
) -> tuple[list[Stripes], list[str]]:
    space = Space(cluster, options.reserved_bytes)
    # As equals: the first server rotates over all of them, not within its class.
    over_all = EqualStripes(cluster.active, options.stripe_bytes, table.region_bytes)
    over_hdd = EqualStripes(cluster.hservers, options.stripe_bytes, table.region_bytes)
    placed: list[Stripes] = [()] * table.regions
    reasons = [""] * table.regions
    for region in drawn_order(table.regions, options.seed):
        number = int(table.number[region])
        choices = [over_all.of(number)]
        if cluster.sservers and cluster.hservers:
            choices.append(over_hdd.of(number))
        placed[region], choice = space.place(
            choices,
            number,
            options.stripe_bytes * len(cluster.active),
            int(table.valid_bytes[region]),
            region_name(workload, table, region),
        )
        reasons[region] = (
            "all servers, equal stripe"
            if choice == 0
            else "HServers only: no SServer space left in random order"
            if choice == 1 and len(choices) == 2
            else "where room was left: its servers are full"
        )
    return placed, reasons


@register
class Default(Policy):
    """All servers, equal stripe."""

    name = "def"

    def plan(self, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
        table, windows = window_tables(workload, options.region_bytes, None)
        placed, reasons = place_default(table, workload, cluster, options)
        prices = Prices.none(table.regions)
        prices.add(table, parameters(cluster, workload.processes), cluster, placed, placed)
        spans = [each.window for each in windows]
        return build_plan(self.name, table, workload, cluster, options, placed, reasons, prices, spans)
