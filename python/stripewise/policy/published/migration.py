"""DDM: which regions move between two windows (H2DP, section 3.7 and Algorithm 2; placement.md, DDM).

VSS and SDP run on the window's requests. A region that is critical now and was not goes on the incoming list, one whose
place it takes goes on the outgoing list; a region that was not touched keeps its place while no critical region needs
it, and those with the lowest last benefit leave first. Moves are made on paper one by one, outgoing, then restripes,
then incoming, each with both copies held at once: one that would overfill a target is left out, so the order given
never overfills any. RMT[i] is where that ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...cluster import Cluster
from ...layout import Stripes
from ...model import CostParameters
from ...model.general import Float, Int
from ...plan.migrations import pays
from ...units import format_size
from ..base import PlanOptions
from ..toolkit.copying import CopyPrices
from ..toolkit.hybrid import hserver_stripes, hybrid_stripes
from ..toolkit.pricing import region_costs
from ..toolkit.regions import RegionTable
from ..toolkit.space import UNLIMITED_BYTES, Space
from ..toolkit.vss import Pairs, search_pairs


@dataclass(frozen=True)
class RegionMove:
    """Region `region` of the table goes from `old` to `new`."""

    region: int
    old: Stripes
    new: Stripes
    direction: str
    gain_s: float
    cost_s: float
    reason: str


@dataclass(frozen=True)
class _Wish:
    """A move that the window would like, and its rank in its list: the lowest goes first."""

    region: int
    new: Stripes
    rank: tuple[float, float]
    reason: str


class MigrationPlanner:
    """Where every region lies, from window to window."""

    def __init__(
        self,
        cluster: Cluster,
        params: CostParameters,
        options: PlanOptions,
        valid_bytes: Int,
        placed: list[Stripes],
        last_benefit: Float,
    ) -> None:
        self.cluster = cluster
        self.params = params
        self.options = options
        self.valid = valid_bytes
        #: The stripes of every region at present.
        self.placed = list(placed)
        self._last_benefit = last_benefit
        self._ssd = frozenset(target.name for target in cluster.sservers)
        self._prices = CopyPrices(cluster, params)
        self._live = Space(cluster, options.reserved_bytes)
        for region, stripes in enumerate(placed):
            self._live.hold(stripes, int(valid_bytes[region]))

    def on_hybrid(self) -> Int:
        """1 for every region with a stripe on an SServer, else 0."""
        return np.array([any(name in self._ssd for name, _ in stripes) for stripes in self.placed], dtype=np.int64)

    def move(self, table: RegionTable, request_bytes: Int) -> list[RegionMove]:
        """The moves at the beginning of the window with `table`; `request_bytes` is r of every region.

        O(distinct keys) for the prices and O(regions touched or on hybrid servers) for the rest.
        """
        window = _Window(self, table, request_bytes)
        outgoing, restripes, incoming = window.wishes()
        before = window.cost_here
        made: list[tuple[_Wish, str, Stripes]] = []
        for direction, wishes in (("out", outgoing), ("restripe", restripes), ("in", incoming)):
            for wish in sorted(wishes, key=lambda each: (each.rank, each.region)):
                old = self.placed[wish.region]
                if self._live.take(wish.new, int(self.valid[wish.region])):
                    self._live.give(old, int(self.valid[wish.region]))
                    self.placed[wish.region] = wish.new
                    made.append((wish, direction, old))
        after = region_costs(table, self.params, self.cluster, self.placed)
        touched = table.request_bytes > 0
        self._last_benefit[touched] = window.benefit[touched]
        return [
            RegionMove(
                wish.region,
                old,
                wish.new,
                direction,
                float(before[wish.region] - after[wish.region]),
                self.copy_s(wish.region, old, wish.new),
                wish.reason,
            )
            for wish, direction, old in made
        ]

    def copy_s(self, region: int, old: Stripes, new: Stripes) -> float:
        """Seconds for copying a region's data from `old` to `new`."""
        return self._prices.cost_s(old, new, int(self.valid[region]))


class _Window:
    """The prices of one window and the walk down the benefits (section 3.6) over them."""

    def __init__(self, owner: MigrationPlanner, table: RegionTable, request_bytes: Int) -> None:
        self.owner, self.table = owner, table
        cluster, params = owner.cluster, owner.params
        self.touched = table.request_bytes > 0
        self.resident = owner.on_hybrid() > 0
        # Where there is one class of servers nothing can change its class.
        self.two_classes = bool(cluster.hservers and cluster.sservers)
        self.cost_here = region_costs(table, params, cluster, owner.placed)
        self.on_hdd: dict[int, Stripes] = {
            g: hserver_stripes(cluster, int(table.number[g]), int(request_bytes[g]))
            for g in np.flatnonzero(self.touched | self.resident).tolist()
        }
        self.pairs: Pairs = search_pairs(
            table, params, len(cluster.hservers), len(cluster.sservers), owner.options.step_bytes
        )
        self.cost_hdd = self.cost_here
        if cluster.hservers:
            on_hdd = [self.on_hdd.get(g, ()) for g in range(table.regions)]
            self.cost_hdd = region_costs(table, params, cluster, on_hdd)
        has_pair = np.isfinite(self.pairs.cost_s)
        self.benefit = np.where(has_pair, self.cost_hdd - np.where(has_pair, self.pairs.cost_s, 0.0), 0.0)

    def wishes(self) -> tuple[list[_Wish], list[_Wish], list[_Wish]]:
        """The outgoing list, the restripes and the incoming list."""
        outgoing: list[_Wish] = []
        restripes: list[_Wish] = []
        incoming: list[_Wish] = []
        room = self._sserver_room()
        last = self.owner._last_benefit
        worth = {g: self._place_value_s(g) for g in self.on_hdd}
        for g in sorted(worth, key=lambda g: (-worth[g], -float(last[g]), g)):
            valid = int(self.table.valid_bytes[g])
            if not self.two_classes:
                restripes += self._restriped(g, self._pair_stripes(g) or self.on_hdd[g])
            elif not self.resident[g]:
                if worth[g] > 0 and room.take(self._pair_stripes(g), valid):
                    incoming.append(_Wish(g, self._pair_stripes(g), (-worth[g], 0.0), self._critical(g)))
                elif self.touched[g]:
                    restripes += self._restriped(g, self.on_hdd[g])
            elif worth[g] > 0 or (worth[g] == 0 and not self.touched[g]):
                better = self._restriped(g, self._pair_stripes(g)) if self.benefit[g] > 0 else []
                if better and room.take(better[0].new, valid):
                    restripes += better
                elif not room.take(self.owner.placed[g], valid):
                    outgoing.append(self._leaving(g, "its place is needed"))
            else:
                outgoing.append(self._leaving(g, "no benefit from SServers"))
        return outgoing, restripes, incoming

    def _place_value_s(self, g: int) -> float:
        """Seconds that the place on hybrid servers is worth to region g: B, or less what the move there costs.

        With `min_gain` = f a region from outside must bring f times its copy, and one inside is worth f times the copy
        that its leaving would cost: so a swap is made only when it gains more than f times what both copies cost.
        """
        factor = self.owner.options.min_gain
        if factor is None or not self.two_classes:
            return float(self.benefit[g])
        here = self.owner.placed[g]
        if self.resident[g]:
            return float(self.benefit[g]) + factor * self.owner.copy_s(g, here, self.on_hdd[g])
        pair = self._pair_stripes(g)
        if self.benefit[g] <= 0 or not pair:
            return 0.0
        return float(self.cost_here[g] - self.pairs.cost_s[g]) - factor * self.owner.copy_s(g, here, pair)

    def _pair_stripes(self, g: int) -> Stripes:
        h, s = int(self.pairs.h[g]), int(self.pairs.s[g])
        return hybrid_stripes(self.owner.cluster, int(self.table.number[g]), h, s) if s else ()

    def _restriped(self, g: int, new: Stripes) -> list[_Wish]:
        """The move to other stripes of the same class, when it gains more than the copy costs."""
        old = self.owner.placed[g]
        if not new or new == old or not self.touched[g]:
            return []
        to_pair = new == self._pair_stripes(g)
        gain = float(self.cost_here[g] - (self.pairs.cost_s[g] if to_pair else self.cost_hdd[g]))
        cost = self.owner.copy_s(g, old, new)
        if not pays(gain, cost, self.owner.options.min_gain) or gain <= 0:
            return []
        widths = ", ".join(format_size(width) for width in dict.fromkeys(width for _, width in new))
        return [_Wish(g, new, (-gain, 0.0), f"restripe to {widths}: gain {gain:.6g} s for a copy of {cost:.6g} s")]

    def _critical(self, g: int) -> str:
        h, s = format_size(int(self.pairs.h[g])), format_size(int(self.pairs.s[g]))
        return f"critical: benefit {self.benefit[g]:.6g} s with h {h}, s {s}"

    def _leaving(self, g: int, why: str) -> _Wish:
        last = float(self.owner._last_benefit[g])
        if self.touched[g]:
            reason, rank = f"{why}: benefit {self.benefit[g]:.6g} s", (float(self.benefit[g]), last)
        else:
            reason, rank = f"{why}: not touched, last benefit {last:.6g} s", (0.0, last)
        return _Wish(g, self.on_hdd[g], rank, reason)

    def _sserver_room(self) -> Space:
        """Empty SServers; what HServers hold is no matter of the walk, only of the moves."""
        room = Space(self.owner.cluster, self.owner.options.reserved_bytes)
        free: Mapping[str, int] = {target.name: UNLIMITED_BYTES for target in self.owner.cluster.hservers}
        room.free.update(free)
        return room
