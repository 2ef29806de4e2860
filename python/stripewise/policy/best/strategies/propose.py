"""From what strategies propose to plans with their bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ....cluster import Cluster
from ....errors import PlanError
from ....layout import Stripes
from ....model import Bound, parameters
from ....model.general import Int
from ....plan import Plan, Window
from ....workload.requests import Workload
from ...base import PlanOptions
from ...toolkit.build import build_plan
from ...toolkit.pricing import Prices, plan_bound, region_costs
from ...toolkit.regions import build_regions
from ...toolkit.space import Space
from ..proven.prove import whole_bytes
from ..regions.cuts import Cuts, cut_table
from ..regions.merge import merge_neighbours
from .abreast import abreast
from .by_cells import by_cells
from .by_heat import by_heat
from .case import Attempt, Case, Proposals
from .spread import spreads

#: One server's stripe for pricing, whatever the length: regions on the same server are priced together.
ALONE_BYTES = 1 << 60
#: What a proposal takes beside its pieces, in pieces.
PIECES_BESIDE = 50
#: Who has had least so far goes next, of equals in this order.
STRATEGIES: tuple[Callable[[Case], Proposals], ...] = (by_cells, spreads, by_heat, abreast)


def plan_of(
    pieces: Attempt,
    workload: Workload,
    cluster: Cluster,
    options: PlanOptions,
    windows: Sequence[Window],
    cost_def_s: float,
) -> tuple[Plan, Bound]:
    """The plan that lays the files out in pieces, and its bound.

    Raises PlanError where the data do not fit, slices rounded up to granules.
    """
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
    if int(table.count.sum()) > sum(int((file.requests["size"] > 0).sum()) for file in workload.files):
        bound.pieces = _pieces_max(table.file, starts, workload)
    rows = np.repeat(np.arange(table.regions), np.diff(table.first))
    weights = (table.count * table.size).astype(np.float64)
    moved = np.bincount(rows, weights=weights, minlength=table.regions).astype(np.float64)
    prices = Prices(cost, moved * (cost_def_s / max(float(moved.sum()), 1.0)), bound.makespan_s(params.p), 0.0)
    placed, reasons = [piece.stripes for piece in pieces], [piece.reason for piece in pieces]
    spans = list(zip(starts.tolist(), lengths.tolist(), strict=True))
    plan = build_plan("best", table, workload, cluster, options, placed, reasons, prices, windows, (), spans)
    return merge_neighbours(plan), bound


def _pieces_max(file_of: Int, starts: Int, workload: Workload) -> int:
    """In how many pieces a request is cut at most by regions that begin at `starts` of files `file_of`, in order."""
    most = 1
    for number, file in enumerate(workload.files):
        if len(file.requests):
            start = starts[file_of == number]
            behind = np.searchsorted(start, start + int(file.requests["size"].max()), side="left")
            most = max(most, int((behind - np.arange(len(start))).max(initial=0)) + 1)
    return most


def propose(
    case: Case, workload: Workload, options: PlanOptions, windows: Sequence[Window], cost_def_s: float
) -> Iterator[tuple[Plan, Bound]]:
    """The plans of all strategies, each layout once, with its bound; those that do not fit are left out."""
    seen = set()
    left = [(strategy, strategy(case)) for strategy in STRATEGIES]
    spent = dict.fromkeys(STRATEGIES, 0)
    while left:
        # Whenever time ends each has had its share of it: what a proposal takes goes by its pieces.
        turn = min(left, key=lambda each: spent[each[0]])
        proposal = next(turn[1], None)
        if proposal is None:
            left.remove(turn)
            continue
        for attempt in proposal:
            spent[turn[0]] += PIECES_BESIDE + len(attempt)
            layout = tuple((piece.file, piece.start, piece.stripes) for piece in attempt)
            if layout in seen:
                break
            seen.add(layout)
            try:
                yield plan_of(attempt, workload, case.cluster, options, windows, cost_def_s)
            except PlanError:
                continue
            break
