"""SLAL, segment-level adaptive layout (its paper, section III): a stripe per segment of a file, in five steps.

Chunk the file; take the mean request size of every chunk; from it the optimal stripe (section IV); where that loads the
servers unevenly, another one near it (section V); merge neighbours with equal stripes. The n servers are of one class,
or all taken as equals (`PlanOptions.servers`). A merged segment begins on server 0: nothing rotates, because the stripe
was balanced for requests counted from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...cluster import Cluster, Target
from ...errors import PlanError
from ...layout import STRIPES_MAX, Stripes, stripes_over
from ...model import parameters
from ...model.segment import mean_startup, optimal_stripe
from ...plan import Plan
from ...units import GRANULE_BYTES, STRIPE_FALLBACK_BYTES, format_size, round_up
from ...workload.requests import Workload
from ..base import PlanOptions, Policy, register
from ..default import place_default
from ..toolkit.build import build_plan, region_name
from ..toolkit.pricing import Prices, baseline_prices, plan_bound, region_costs
from ..toolkit.regions import RegionTable, build_regions, whole_span
from ..toolkit.segments import ChunkMeans, Segment, Servers, chunk_means, merged_table, sigma_of
from ..toolkit.space import Space

#: Above this imbalance another stripe is tried (SLAL, section V.B).
SIGMA_DEFAULT = 0.20
#: Iteration i tries s*f^i and s/f^i.
ADJUSTMENT_FACTOR = 0.5
ITERATIONS_MAX = 8


@dataclass(frozen=True)
class Choice:
    """The stripe of a chunk after step 4, step 3's, and the imbalance of both; step 3's where nothing balances."""

    stripe_bytes: int
    optimal_bytes: int
    sigma: float
    sigma_optimal: float


@register
class Slal(Policy):
    """The five steps."""

    name = "slal"
    takes = frozenset({"sigma", "servers"})
    rotates = False

    def plan(self, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
        chunks = build_regions(workload, options.region_bytes)
        means = chunk_means(chunks, workload)
        servers = equal_servers(cluster, options.servers)
        choices = choose_stripes(chunks, means, servers, SIGMA_DEFAULT if options.sigma is None else options.sigma)
        segments = place_segments(chunks, choices, workload, cluster, servers, options)
        table = merged_table(chunks, segments)
        placed = [segment.stripes for segment in segments]
        reasons = [_reason(table, number, segment, means, choices, cluster) for number, segment in enumerate(segments)]
        length = options.region_bytes
        return build_plan(
            self.name,
            table,
            workload,
            cluster,
            options,
            placed,
            reasons,
            _prices(chunks, table, placed, segments, workload, cluster, options),
            [whole_span(workload)],
            spans=[(int(chunks.number[s.first]) * length, (s.end - s.first) * length) for s in segments],
        )


def equal_servers(cluster: Cluster, servers: str | None) -> Servers:
    """The n servers: `hdd` and `ssd` are a class, `all` every active target; by default HServers where there are any.

    Of more than a cycle holds the first ones are taken: segments do not rotate. Raises PlanError where the cluster has
    none of that class.
    """
    by_name = {"hdd": cluster.hservers, "ssd": cluster.sservers, "all": cluster.active}
    chosen: tuple[Target, ...] = by_name[servers] if servers else cluster.hservers or cluster.sservers
    if not chosen:
        others = " or ".join(name for name, targets in by_name.items() if targets)
        raise PlanError(f"{cluster.source}: has no active target for --servers {servers}; use --servers {others}")
    return Servers(chosen[:STRIPES_MAX])


def choose_stripes(table: RegionTable, means: ChunkMeans, servers: Servers, sigma_max: float) -> list[Choice | None]:
    """Steps 3 and 4 for every chunk; None where no request starts."""
    return [
        _choose(table, chunk, servers, float(means.size_bytes[chunk]), float(means.write_share[chunk]), sigma_max)
        if means.requests[chunk]
        else None
        for chunk in range(table.regions)
    ]


def _choose(
    table: RegionTable, chunk: int, servers: Servers, mean_bytes: float, write_share: float, sigma_max: float
) -> Choice:
    t_min_s, t_max_s = servers.startup_s(write_share)
    per_byte_s = servers.per_byte_s(write_share)
    optimal = optimal_stripe(mean_bytes, len(servers.targets), t_min_s, t_max_s, per_byte_s)

    def sigma(stripe_bytes: int) -> float:
        stripes = stripes_over(servers.targets, stripe_bytes)
        return sigma_of(table, chunk, stripes, mean_startup(t_min_s, t_max_s), per_byte_s)

    at_optimal = sigma(optimal)
    if at_optimal > sigma_max:
        for step in range(1, ITERATIONS_MAX + 1):
            pair = _alternatives(optimal, step, table.region_bytes)
            best = min(((sigma(stripe), stripe) for stripe in pair), default=None)
            if best is not None and best[0] <= sigma_max:
                return Choice(best[1], optimal, best[0], at_optimal)
    return Choice(optimal, optimal, at_optimal, at_optimal)


def _alternatives(stripe_bytes: int, step: int, chunk_bytes: int) -> list[int]:
    """s*f^i and s/f^i in whole granules; narrower than one, or wider than a chunk, there is nothing to try."""
    factor = ADJUSTMENT_FACTOR**step
    narrow, wide = round(stripe_bytes * factor), round(stripe_bytes / factor)
    return [round_up(width) for width in (narrow, wide) if GRANULE_BYTES <= width <= chunk_bytes]


def place_segments(
    table: RegionTable,
    choices: Sequence[Choice | None],
    workload: Workload,
    cluster: Cluster,
    servers: Servers,
    options: PlanOptions,
) -> list[Segment]:
    """Step 5, with space: a chunk joins the segment before it when its stripes are equal and the whole still fits.

    A chunk where no request starts takes the stripe before it in the file, or after it. Raises PlanError, naming file
    and region, when the data do not fit.
    """
    space = Space(cluster, options.reserved_bytes)
    widths = _filled(table, choices)
    segments: list[Segment] = []
    held = 0
    for chunk in range(table.regions):
        valid = int(table.valid_bytes[chunk])
        wanted = stripes_over(servers.targets, widths[chunk])
        last = segments[-1] if segments and table.file[segments[-1].first] == table.file[chunk] else None
        if last is not None and last.stripes == wanted:
            # A merged segment has other shares than its chunks apart: it begins on server 0 once.
            space.give(wanted, held)
            if space.take(wanted, held + valid):
                segments[-1] = Segment(last.first, chunk + 1, wanted)
                held += valid
                continue
            space.hold(wanted, held)
        request_bytes = max(1, int(table.request_bytes[chunk]))
        placed, _ = space.place([wanted], 0, request_bytes, valid, region_name(workload, table, chunk))
        segments.append(Segment(chunk, chunk + 1, placed))
        held = valid
    return segments


def _filled(table: RegionTable, choices: Sequence[Choice | None]) -> list[int]:
    """The stripe of every chunk, those without requests taking their neighbour's."""
    widths = [choice.stripe_bytes if choice else 0 for choice in choices]
    for order in (range(1, len(widths)), range(len(widths) - 2, -1, -1)):
        for chunk in order:
            neighbour = chunk - order.step
            if not widths[chunk] and table.file[neighbour] == table.file[chunk]:
                widths[chunk] = widths[neighbour]
    return [width or STRIPE_FALLBACK_BYTES for width in widths]


def _prices(
    chunks: RegionTable,
    table: RegionTable,
    placed: Sequence[Stripes],
    segments: Sequence[Segment],
    workload: Workload,
    cluster: Cluster,
    options: PlanOptions,
) -> Prices:
    """Seconds of every segment, beside DEF's of the chunks in it."""
    params = parameters(cluster, workload.processes)
    baseline, _ = place_default(chunks, workload, cluster, options)
    costs_def, bound_def_s = baseline_prices(chunks, params, cluster, baseline)
    return Prices(
        region_costs(table, params, cluster, placed),
        np.add.reduceat(costs_def, [segment.first for segment in segments]),
        plan_bound(table, cluster, placed).makespan_s(params.p),
        bound_def_s,
    )


def _reason(
    table: RegionTable,
    number: int,
    segment: Segment,
    means: ChunkMeans,
    choices: Sequence[Choice | None],
    cluster: Cluster,
) -> str:
    """The stripe with its mean request and the imbalance of the segment as it is merged."""
    inside = range(segment.first, segment.end)
    widths = {width for _, width in segment.stripes}
    mine = [choices[chunk] for chunk in inside if choices[chunk] is not None]
    stripe = format_size(max(widths))
    if not mine:
        return f"stripe {stripe}: no request starts here in the trace"
    weights = means.requests[segment.first : segment.end]
    mean_bytes = float(np.average(means.size_bytes[segment.first : segment.end], weights=weights))
    write_share = float(np.average(means.write_share[segment.first : segment.end], weights=weights))
    by_name = {target.name: target for target in cluster.active}
    servers = Servers(tuple(by_name[name] for name, _ in segment.stripes))
    sigma = sigma_of(
        table, number, segment.stripes, mean_startup(*servers.startup_s(write_share)), servers.per_byte_s(write_share)
    )
    said = f"stripe {stripe} for requests of {mean_bytes:.0f} B on average, sigma {sigma:.3f}"
    worst = max((choice for choice in mine if choice), key=lambda choice: choice.sigma_optimal)
    if widths != {choice.stripe_bytes for choice in mine if choice}:
        return f"{said}: where room was left, its servers are full"
    if worst.stripe_bytes != worst.optimal_bytes:
        return f"{said}; the optimal {format_size(worst.optimal_bytes)} would have {worst.sigma_optimal:.3f}"
    if worst.sigma > SIGMA_DEFAULT and worst.stripe_bytes == worst.optimal_bytes:
        return f"{said}; no stripe near it balances better than the threshold"
    return said
