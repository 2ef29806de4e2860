"""DEF: every region on all servers of every class with one stripe, as a parallel file system does without advice.

With limited SServer space, regions go on hybrid servers in a seeded random order until the space is used up, the rest
on HServers alone with the same stripe (placement.md, DEF). It is the baseline that every other plan is compared with;
`static_plan` does so for one placement of a whole run, and is the end of every static policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..cluster import Cluster, Target
from ..layout import STRIPES_MAX, Stripes
from ..model import parameters
from ..plan import FilePlan, Plan
from ..workload.requests import Workload
from .base import PlanOptions, Policy, register
from .toolkit.build import build_plan, region_name
from .toolkit.hybrid import drawn_order
from .toolkit.pricing import Prices
from .toolkit.regions import RegionTable, build_regions, whole_span
from .toolkit.space import Space

#: The reason of a region that lies as DEF would have all of them.
EVERYWHERE = "all servers, equal stripe"


class EqualStripes:
    """Stripes of one width over `servers` for regions of `region_bytes`; equal cycles are one tuple.

    The first server rotates with the region's number. Where there are more servers than stripes in a region, its cycle
    names those that it reaches, and the next region goes on behind them.
    """

    def __init__(self, servers: Sequence[Target], width: int, region_bytes: int) -> None:
        self.servers = len(servers)
        self.reach = min(self.servers, -(-region_bytes // width), STRIPES_MAX)
        stripes = tuple((server.name, width) for server in servers)
        self._round = stripes + stripes
        self._made: dict[int, Stripes] = {}

    def of(self, number: int) -> Stripes:
        """The stripes of region `number`."""
        first = number * (1 if self.reach == self.servers else self.reach) % self.servers
        if first not in self._made:
            self._made[first] = self._round[first : first + self.reach]
        return self._made[first]


def place_default(
    table: RegionTable, workload: Workload, cluster: Cluster, options: PlanOptions
) -> tuple[list[Stripes], list[str]]:
    """Stripes and reason of every region under DEF; worked out once per table, cluster and options."""
    held = tuple(sorted(options.reserved_bytes.items()))
    room = tuple(target.usable_bytes for target in cluster.active)
    key = ("def", cluster.digest(), room, options.stripe_bytes, options.seed, held)
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
            EVERYWHERE
            if choice == 0
            else "HServers only: no SServer space left in random order"
            if choice == 1 and len(choices) == 2
            else "where room was left: its servers are full"
        )
    return placed, reasons


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


@register
class Default(Policy):
    """All servers, equal stripe; growth, too, unless one of them has no room for another region."""

    name = "def"

    def plan(self, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
        table = build_regions(workload, options.region_bytes)
        placed, reasons = place_default(table, workload, cluster, options)
        made = static_plan(self.name, table, workload, cluster, options, placed, reasons)
        free = Space(cluster, options.reserved_bytes).free
        if any(free[name] - count < options.region_bytes for name, count in made.target_bytes.items()):
            return made
        cycle_bytes = options.stripe_bytes * len(cluster.active)
        over_all = EqualStripes(cluster.active, options.stripe_bytes, cycle_bytes)
        return replace(made, files=tuple(_grown(file, over_all, options) for file in made.files))


def _grown(file: FilePlan, over_all: EqualStripes, options: PlanOptions) -> FilePlan:
    """The file with DEF's own cycle for its growth, where its last planned region lies so."""
    *planned, growth = file.regions
    if planned[-1].reason != EVERYWHERE:
        return file
    stripes = over_all.of(growth.start // options.region_bytes)
    cycle_bytes = sum(width for _, width in stripes)
    length = -(-options.region_bytes // cycle_bytes) * cycle_bytes
    return replace(file, regions=(*planned, replace(growth, len=length, stripes=stripes)))
