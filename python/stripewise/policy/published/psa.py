"""PSA, performance- and space-aware: narrow stripes on SServers, so that more regions fit there (placement.md, PSA).

A baseline of H2DP (section 4). One pair (h, s) with h >= s per file, the one that minimises

    f*T_hybrid(h, s) + (1 - f)*T_HServers,    f = min(1, free SServer bytes / (bytes * N*s/(M*h + N*s)))

over a grid; the share f of the file's regions, drawn by the seed, goes on hybrid servers, the rest on HServers with
stripe r/M. Decision: several files share the free bytes by their sizes, so `bytes` are those of all files. Decision:
where no pair is cheaper than HServers alone, the file stays there. The search mirrors Algorithm 1's: s in steps up to
r/(M+N), h from s up to r/M.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...cluster import Cluster
from ...layout import Stripes
from ...model import CostParameters, parameters
from ...model.keyed import Keys, cheapest_pairs
from ...plan import Plan
from ...units import format_size, round_up
from ...workload.requests import Workload
from ..base import PlanOptions, Policy, register
from ..default import static_plan
from ..toolkit.hybrid import Ground, Landing, drawn_order, hybrid_stripes, walk
from ..toolkit.pricing import region_costs
from ..toolkit.regions import RegionTable, build_regions, region_requests
from ..toolkit.space import Space

#: Beyond so many steps of h the step is coarsened.
STEPS_MAX = 128


@dataclass(frozen=True)
class Share:
    """A file's pair and the share f of its regions on hybrid servers; T of all its requests on those and on HServers.

    f = 0 keeps the file on HServers.
    """

    h: int
    s: int
    f: float
    hybrid_s: float
    hservers_s: float


def psa_grid(request_bytes: int, M: int, N: int, step_bytes: int) -> list[tuple[int, int]]:
    """The pairs with h >= s > 0 for requests of r bytes; h = 0 where there are no HServers."""
    if N == 0 or request_bytes <= 0:
        return []
    widest = round_up(-(-request_bytes // max(M, 1)), step_bytes)
    step = round_up(max(step_bytes, widest // STEPS_MAX), step_bytes)
    s_last = max(step, request_bytes // (M + N))
    if M == 0:
        return [(0, s) for s in range(step, s_last + 1, step)]
    return [(h, s) for s in range(step, s_last + 1, step) for h in range(s, max(s, widest) + 1, step)]


def space_share(h: int, s: int, M: int, N: int, free_bytes: int, all_bytes: int) -> float:
    """f: the share of the regions for which SServers have space at the pair (h, s)."""
    return min(1.0, free_bytes / (all_bytes * N * s / (M * h + N * s)))


@register
class Psa(Policy):
    """One pair per file, its regions drawn."""

    name = "psa"

    def plan(self, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
        table = build_regions(workload, options.region_bytes)
        params = parameters(cluster, workload.processes)
        ground = Ground(table, workload, cluster, options, region_requests(table, table))
        shares = _shares(ground, params)
        order = drawn_order(table.regions, options.seed)
        drawn = _drawn(table, order, shares)
        wanted: list[Stripes] = [()] * table.regions
        for g in drawn:
            share = shares[int(table.file[g])]
            wanted[g] = hybrid_stripes(cluster, int(table.number[g]), share.h, share.s)
        placed, landings = walk(ground, order, wanted)
        reasons = [_reason(landing, shares[int(table.file[g])]) for g, landing in enumerate(landings)]
        return static_plan(self.name, table, workload, cluster, options, placed, reasons)


def _shares(ground: Ground, params: CostParameters) -> list[Share]:
    """The pair and f of every file."""
    table, cluster, files = ground.table, ground.cluster, len(ground.workload.files)
    M, N = len(cluster.hservers), len(cluster.sservers)
    free = Space(cluster, ground.options.reserved_bytes).free
    free_bytes, all_bytes = sum(free[target.name] for target in cluster.sservers), int(table.valid_bytes.sum())
    cost = region_costs(table, params, cluster, ground.on_hservers()) if M else np.zeros(table.regions)
    hservers_s = np.bincount(table.file, weights=cost, minlength=files)
    largest = np.zeros(files, dtype=np.int64)
    np.maximum.at(largest, table.file, table.request_bytes)
    by_grid: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for file, request_bytes in enumerate(largest.tolist()):
        by_grid.setdefault(tuple(psa_grid(request_bytes, M, N, ground.options.step_bytes)), []).append(file)
    shares = [Share(0, 0, 0.0, 0.0, 0.0)] * files
    for pairs, members in by_grid.items():
        if not pairs:
            continue
        weights = [space_share(h, s, M, N, free_bytes, all_bytes) for h, s in pairs]
        hservers_only_s = np.asarray(hservers_s[members], dtype=np.float64)
        # Without HServers there is nothing else: the pair alone counts.
        chosen, seconds = cheapest_pairs(
            params, M, N, pairs, _of_files(table, members), weights if M else (), hservers_only_s if M else np.zeros(0)
        )
        for file, pair, hybrid_s, hdd_s in zip(
            members, chosen.tolist(), seconds.tolist(), hservers_only_s.tolist(), strict=True
        ):
            f = weights[pair] if not M or hybrid_s < hdd_s else 0.0
            h, s = pairs[pair]
            shares[file] = Share(h, s, f, hybrid_s, hdd_s)
    return shares


def _of_files(table: RegionTable, files: list[int]) -> Keys:
    """The keys of whole files, as if each were one region: the pair is the file's."""
    regions = np.flatnonzero(np.isin(table.file, files))
    keys = table.keys.of(regions)
    last = np.searchsorted(table.file[regions], files, side="right")
    return replace(keys, first=np.concatenate([[0], keys.first[last]]))


def _drawn(table: RegionTable, order: list[int], shares: list[Share]) -> list[int]:
    """The first f of every file's regions in the drawn order, rounded to whole regions."""
    counts = np.bincount(table.file, minlength=len(shares))
    left = [round(share.f * int(count)) for share, count in zip(shares, counts, strict=True)]
    drawn = []
    for g in order:
        file = int(table.file[g])
        if left[file]:
            left[file] -= 1
            drawn.append(g)
    return drawn


def _reason(landing: Landing, share: Share) -> str:
    pair = f"h {format_size(share.h)}, s {format_size(share.s)}"
    if landing is Landing.HYBRID:
        return f"hybrid servers: drawn, with {pair} for a share {share.f:.3f} of the regions"
    if landing is Landing.CROWDED_OUT:
        return f"HServers: drawn for {pair}, but its SServers are full"
    if landing is Landing.ELSEWHERE:
        return "where room was left: its first choice is full"
    if not share.s:
        return "HServers: there is no pair to search"
    if share.f:
        return f"HServers: not drawn, the share {share.f:.3f} of the regions has {pair}"
    return f"HServers: no pair is cheaper ({share.hybrid_s:.6g} s at best, HServers {share.hservers_s:.6g} s)"
