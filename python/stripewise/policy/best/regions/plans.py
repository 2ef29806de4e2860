"""Layouts of regions as plans: what every piece costs in every window, the moves between them, and why.

The other way round, another policy's plan is a layout of whole regions, which is held against the same windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....cluster import Cluster
from ....layout import Stripes
from ....model import parameters
from ....model.general import Float
from ....plan import Plan, Window, WindowFigures
from ....plan.migrations import Migration, Move
from ....workload.requests import Workload
from ...base import PlanOptions
from ...toolkit.build import build_plan
from ...toolkit.copying import CopyPrices
from ...toolkit.pricing import Prices as RegionPrices
from ...toolkit.pricing import region_costs
from ...toolkit.regions import RegionTable, WindowTable
from .layout import Layout, named
from .merge import merge_neighbours
from .problem import Ground


@dataclass(frozen=True)
class Builder:
    """What plans of one search have in common: `whole` are the regions uncut, `baseline` is DEF's placement of them."""

    workload: Workload
    cluster: Cluster
    options: PlanOptions
    whole: RegionTable
    windows: Sequence[WindowTable]
    baseline: Sequence[Stripes]

    def build(self, ground: Ground, layout: Layout, texts: list[str], bound_s: float) -> Plan:
        """The plan of a layout of this ground's pieces, each with its reason."""
        params = parameters(self.cluster, max(1, self.workload.processes))
        pieces = ground.cuts.pieces
        cost, cost_def = np.zeros(pieces), np.zeros(self.whole.regions)
        spans, migrations = [], []
        copies = CopyPrices(self.cluster, params)
        for number, (each, table) in enumerate(zip(self.windows, ground.windows, strict=True)):
            here = static = np.zeros(pieces)
            if table is not None:
                here = region_costs(table, params, self.cluster, layout.placed[number])
                static = here if not number else region_costs(table, params, self.cluster, layout.first)
                assert each.table is not None
                cost_def += region_costs(each.table, params, self.cluster, self.baseline)
            cost += here
            if number:
                start_ns = each.window.start_ns - self.windows[0].window.start_ns
                before = layout.placed[number - 1]
                moves = layout.moves[number - 1]
                old_cost = np.zeros(pieces) if table is None else region_costs(table, params, self.cluster, before)
                made = tuple(
                    self._move(ground, move, float(old_cost[move[0]] - here[move[0]]), copies) for move in moves
                )
                migrations.append(Migration(number, start_ns, made))
            spans.append(
                each.window if len(self.windows) == 1 else self._figures(each, table, layout, number, here, static)
            )
        start = ground.cuts.region - np.searchsorted(self.whole.file, self.whole.file)[ground.cuts.region]
        where = [
            (int(first) * self.whole.region_bytes + int(inner), int(length))
            for first, inner, length in zip(start, ground.cuts.start, ground.cuts.length, strict=True)
        ]
        prices = RegionPrices(cost, _shared(cost_def, ground), bound_s, 0.0)
        plan = build_plan(
            "best", ground.whole, self.workload, self.cluster, self.options, layout.first, texts, prices, spans,
            migrations, where,
        )  # fmt: skip
        return merge_neighbours(plan)

    def _move(self, ground: Ground, move: tuple[int, Stripes, Stripes], gain_s: float, copies: CopyPrices) -> Move:
        piece, old, new = move
        region = int(ground.cuts.region[piece])
        start = int(self.whole.number[region]) * self.whole.region_bytes + int(ground.cuts.start[piece])
        valid = int(ground.whole.valid_bytes[piece])
        ssd = {target.name: target.is_ssd for target in self.cluster.targets}
        was, becomes = (any(ssd[name] for name, _ in stripes) for stripes in (old, new))
        direction = "in" if becomes and not was else "out" if was and not becomes else "restripe"
        where = named(new, self.cluster, ground.periods)
        reason = f"{where}: the busiest resource of this window and the later ones gets less to do"
        return Move(
            self.workload.files[int(ground.whole.file[piece])].path, start, int(ground.cuts.length[piece]), new,
            direction, valid, gain_s, copies.cost_s(old, new, valid), reason,
        )  # fmt: skip

    def _figures(
        self, each: WindowTable, table: RegionTable | None, layout: Layout, number: int, here: Float, static: Float
    ) -> Window:
        ssd = {target.name for target in self.cluster.sservers}
        hybrid, at_first = (
            np.array([any(name in ssd for name, _ in stripes) for stripes in placed])
            for placed in (layout.placed[number], layout.first)
        )
        requests = np.zeros(len(hybrid), dtype=np.int64)
        if table is not None:
            np.add.at(requests, np.repeat(np.arange(table.regions), np.diff(table.first)), table.count)
        figures = WindowFigures(
            requests=int(requests.sum()),
            hybrid_regions=int(hybrid.sum()),
            hybrid_requests=int(requests[hybrid].sum()),
            hybrid_requests_static=int(requests[at_first].sum()),
            cost_s=float(here.sum()),
            cost_static_s=float(static.sum()),
        )
        return replace(each.window, figures=figures)


def _shared(cost_def: Float, ground: Ground) -> Float:
    """DEF's cost of a region, on its pieces by the bytes that their requests move."""
    rows = np.repeat(np.arange(ground.whole.regions), np.diff(ground.whole.first))
    moved = np.bincount(
        rows, weights=(ground.whole.count * ground.whole.size).astype(np.float64), minlength=ground.whole.regions
    )
    every = np.bincount(ground.cuts.region, weights=moved, minlength=len(cost_def))
    return np.asarray(cost_def[ground.cuts.region] * moved / np.maximum(every, 1.0)[ground.cuts.region])


def layout_of(plan: Plan, ground: Ground) -> Layout | None:
    """Another policy's plan as a layout of whole regions; None where its regions are others."""
    first = np.searchsorted(ground.whole.file, np.arange(len(ground.paths) + 1))
    now: list[Stripes] = []
    position: dict[tuple[str, int], int] = {}
    planned = {file.path: file for file in plan.files}
    for number, path in enumerate(ground.paths):
        count = int(first[number + 1] - first[number])
        if not count:
            continue
        regions = planned[path].regions[:count]
        if len(regions) < count or any(region.len != ground.whole.region_bytes for region in regions):
            return None
        for region in regions:
            position[path, region.start] = len(now)
            now.append(region.stripes)
    placed, moves = [tuple(now)], []
    by_window = {migration.window: migration for migration in plan.migrations}
    for window in range(1, len(ground.windows)):
        made = []
        for move in by_window[window].moves if window in by_window else ():
            piece = position[move.file, move.start]
            made.append((piece, now[piece], move.stripes))
            now[piece] = move.stripes
        moves.append(tuple(made))
        placed.append(tuple(now))
    return Layout(tuple(placed), tuple(moves))
