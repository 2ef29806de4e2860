"""The strategy by places: heat followed as finely as the trace tells it, dealt out as work that can be divided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...cluster import Cluster
from ...errors import PlanError
from ...layout import Stripes
from ...model import Bound, parameters
from ...model.general import Float
from ...plan import Plan, Window
from ...units import KIB, MIB
from ...workload.requests import Workload
from ..base import PlanOptions
from ..toolkit.build import build_plan
from ..toolkit.pricing import Prices, plan_bound, region_costs
from ..toolkit.regions import build_regions
from ..toolkit.space import Space
from .cuts import Cuts, cut_table
from .dealing import Dealt, Way, deal
from .likely import FileHeat
from .merge import merge_neighbours
from .prove import whole_bytes
from .spans import spans_of

#: One server's stripe for pricing, whatever the length: regions on the same server are priced together.
ALONE_BYTES = 1 << 60
#: With fewer processes per channel than this, layouts for so many times fewer in flight are made as well.
SHORT_QUEUES = 8
LATENCIES = (1.0, 4.0)
#: How much slower than they are slow servers count, as powers (`Way`).
LEANS = (0.0, 0.3, 0.7, 1.5)
#: Stripes over all servers of a kind.
STRIPES = (64 * KIB, 256 * KIB, MIB)
#: Of a server's time, what the longest parts take.
LONG_PARTS = (0.3, 1.0)
#: Of all room, what is tried to be used, until the pieces fit.
FILLED = (1.0, 0.95, 0.8)


def plan_of(
    dealt: Dealt,
    workload: Workload,
    cluster: Cluster,
    options: PlanOptions,
    windows: Sequence[Window],
    cost_def_s: float,
) -> tuple[Plan, Bound]:
    """The plan that lays the files out in pieces, and its bound.

    Raises PlanError where the data do not fit, slices rounded up to granules.
    """
    pieces = dealt.pieces
    if not (length := whole_bytes(workload)):
        raise PlanError("the files are too many, or too large, to be told apart by places")
    whole = build_regions(workload, length)
    region = np.searchsorted(whole.file, [piece.file for piece in pieces])
    starts = np.array([piece.start for piece in pieces], dtype=np.int64)
    lengths = np.array([piece.length for piece in pieces], dtype=np.int64)
    table = cut_table(whole, Cuts(region.astype(np.int64), starts, lengths))
    space = Space(cluster, options.reserved_bytes)
    for piece, valid in zip(pieces, table.valid_bytes.tolist(), strict=True):
        if valid and not space.take(piece.stripes, int(valid)):
            raise PlanError("the pieces do not fit")
    shared: dict[Stripes, Stripes] = {}
    priced = []
    for piece in pieces:
        alone = piece.stripes if len(piece.stripes) > 1 else ((piece.stripes[0][0], ALONE_BYTES),)
        priced.append(shared.setdefault(alone, alone))
    params = parameters(cluster, max(1, workload.processes))
    cost = region_costs(table, params, cluster, priced)
    bound = plan_bound(table, cluster, priced)
    rows = np.repeat(np.arange(table.regions), np.diff(table.first))
    weights = (table.count * table.size).astype(np.float64)
    moved = np.bincount(rows, weights=weights, minlength=table.regions).astype(np.float64)
    prices = Prices(cost, moved * (cost_def_s / max(float(moved.sum()), 1.0)), bound.makespan_s(params.p), 0.0)
    placed = [piece.stripes for piece in pieces]
    spans = list(zip(starts.tolist(), lengths.tolist(), strict=True))
    plan = build_plan("best", table, workload, cluster, options, placed, dealt.reasons, prices, windows, (), spans)
    return merge_neighbours(plan), bound


def places(
    workload: Workload,
    heats: Sequence[FileHeat | None],
    cluster: Cluster,
    options: PlanOptions,
    rooms: Float,
    windows: Sequence[Window],
    cost_def_s: float,
) -> Iterator[tuple[Plan, Bound]]:
    """Plans for as many processes as there are, and for fewer where queues are short, each with its bound."""
    spans = spans_of(heats)
    for way in _ways(cluster, max(1, workload.processes)):
        for filled in FILLED:
            dealt = deal(spans, cluster, rooms, replace(way, filled=filled))
            if dealt is None:
                continue
            try:
                yield plan_of(dealt, workload, cluster, options, windows, cost_def_s)
            except PlanError:
                continue
            break


def _ways(cluster: Cluster, processes: int) -> Iterator[Way]:
    """The ways that are tried: all of them where queues are short, for there no bound tells."""
    channels = sum(target.channels for target in cluster.active)
    yield Way(processes)
    # What goes through a file in sequence is served without startups where a server has a long part of it.
    for part in LONG_PARTS:
        yield Way(processes, part=part)
    if processes >= SHORT_QUEUES * channels:
        return
    for lean in LEANS:
        for latency in LATENCIES:
            if (lean, latency) != (0.0, 1.0):
                yield Way(processes / latency, lean)
        for stripe in STRIPES:
            yield Way(processes, lean, stripe)
