"""PADP, performance-aware: H2DP's stripe pairs, but the regions on hybrid servers are drawn (placement.md, PADP).

A baseline of H2DP (section 4): varied-size striping, with the regions on hybrid servers "randomly chosen". Every
region has a pair from VSS; in a seeded random order they go on hybrid servers until SServer space is used up, the rest
on HServers with stripe r/M. Static.

Like DEF it draws from all regions: a policy without an eye for the pattern does not know that a region is hardly used.
One that the trace does not touch has no pair of its own and takes the one that most regions of its file have.
"""

from __future__ import annotations

from collections import Counter

from ...cluster import Cluster
from ...layout import Stripes
from ...model import parameters
from ...plan import Plan
from ...units import format_size
from ...workload.requests import Workload
from ..base import PlanOptions, Policy, register
from ..default import static_plan
from ..toolkit.hybrid import Ground, Landing, drawn_order, hybrid_stripes, walk
from ..toolkit.regions import RegionTable, build_regions, region_requests
from ..toolkit.vss import Pairs, search_pairs


@register
class Padp(Policy):
    """VSS without SDP."""

    name = "padp"

    def plan(self, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
        table = build_regions(workload, options.region_bytes)
        params = parameters(cluster, workload.processes)
        pairs = search_pairs(table, params, len(cluster.hservers), len(cluster.sservers), options.step_bytes)
        chosen = _pairs_of_all(table, pairs)
        wanted: list[Stripes] = [
            hybrid_stripes(cluster, int(table.number[g]), h, s) if s else () for g, (h, s) in enumerate(chosen)
        ]
        ground = Ground(table, workload, cluster, options, region_requests(table, table))
        placed, landings = walk(ground, drawn_order(table.regions, options.seed), wanted)
        reasons = [_reason(landing, *pair) for landing, pair in zip(landings, chosen, strict=True)]
        return static_plan(self.name, table, workload, cluster, options, placed, reasons)


def _pairs_of_all(table: RegionTable, pairs: Pairs) -> list[tuple[int, int]]:
    """The pair of every region; one that was not touched takes its file's most frequent, the smallest among equals."""
    own = list(zip(pairs.h.tolist(), pairs.s.tolist(), strict=True))
    seen: dict[int, Counter[tuple[int, int]]] = {}
    for file, pair in zip(table.file.tolist(), own, strict=True):
        if pair[1]:
            seen.setdefault(file, Counter())[pair] += 1
    common = {file: min(counts, key=lambda pair: (-counts[pair], pair)) for file, counts in seen.items()}
    return [pair if pair[1] else common.get(file, (0, 0)) for file, pair in zip(table.file.tolist(), own, strict=True)]


def _reason(landing: Landing, h: int, s: int) -> str:
    pair = f"h {format_size(h)}, s {format_size(s)}"
    if landing is Landing.HYBRID:
        return f"hybrid servers: drawn, with {pair}"
    if landing is Landing.CROWDED_OUT:
        return f"HServers: drawn after SServer space was used up (it would have {pair})"
    if landing is Landing.HSERVERS:
        return "HServers: there is no pair to search"
    return "where room was left: its first choice is full"
