"""How full every target is while a plan is made, and where a region goes when its first choice is full.

A plan never overfills a target: every slice is counted on its own target, rounded up to 4 KiB, rotation included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...cluster import Cluster, Target
from ...errors import PlanError
from ...layout import STRIPES_MAX, Stripes, rotate, share_bytes, stripes_over
from ...units import GRANULE_BYTES, format_size, round_up

#: Stands for "what the file system has" (usable_bytes = 0).
UNLIMITED_BYTES = 1 << 63
#: Shares that are kept: what thousands of regions on thousands of targets need again and again.
SHARES_MAX = 2_000_000


class Space:
    """Free bytes per target name."""

    def __init__(self, cluster: Cluster, reserved_bytes: Mapping[str, int] | None = None) -> None:
        self.cluster = cluster
        self._held = 0
        self._known: dict[tuple[int, int], tuple[Stripes, list[tuple[str, int]]]] = {}
        held = reserved_bytes or {}
        self.free: dict[str, int] = {}
        for target in cluster.active:
            if target.usable_bytes:
                self.free[target.name] = max(0, target.usable_bytes - held.get(target.name, 0))
            else:
                self.free[target.name] = UNLIMITED_BYTES

    def _shares(self, stripes: Stripes, valid_bytes: int) -> list[tuple[str, int]]:
        """What a region takes of every target; worked out once for stripes that many regions share."""
        key = (id(stripes), valid_bytes)
        if key not in self._known:
            shares = [(name, round_up(share)) for name, share in share_bytes(stripes, valid_bytes).items() if share]
            self._held += len(shares)
            if self._held > SHARES_MAX:
                self._known.clear()
                self._held = len(shares)
            # The stripes are kept with their shares: their id stands for them.
            self._known[key] = (stripes, shares)
        return self._known[key][1]

    def take(self, stripes: Stripes, valid_bytes: int) -> bool:
        """Takes the space of a region's `valid_bytes` on `stripes`, or nothing and False when it does not fit."""
        if not stripes:
            return False
        free = self.free
        for name, share in self._shares(stripes, valid_bytes):
            if share > free[name]:
                return False
        self.hold(stripes, valid_bytes)
        return True

    def hold(self, stripes: Stripes, valid_bytes: int) -> None:
        """Counts a region that lies there already."""
        free = self.free
        for name, share in self._shares(stripes, valid_bytes):
            free[name] -= share

    def give(self, stripes: Stripes, valid_bytes: int) -> None:
        """Gives back what a region took."""
        free = self.free
        for name, share in self._shares(stripes, valid_bytes):
            free[name] += share

    def place(
        self, choices: Sequence[Stripes], number: int, request_bytes: int, valid_bytes: int, what: str
    ) -> tuple[Stripes, int]:
        """The first of `choices` that fits, else whatever room is left; returns it and its position among the choices.

        `number` rotates the servers, `what` names the region in the error. Raises PlanError when no room is left.
        """
        tried = 0
        for stripes in choices:
            if self.take(stripes, valid_bytes):
                return stripes, tried
            tried += 1
        for servers in (self.cluster.hservers, self.cluster.active):
            room = rotate([target for target in servers if self.free[target.name] >= GRANULE_BYTES], number)
            if len(room) > STRIPES_MAX:
                room = sorted(room, key=lambda target: -self.free[target.name])[:STRIPES_MAX]
            # Fewer and fewer servers, the emptiest last: a nearly full one must not keep a region from the others.
            while room:
                stripes = stripes_over(room, stripe_over(len(room), request_bytes))
                if self.take(stripes, valid_bytes):
                    return stripes, tried
                room.remove(min(room, key=lambda target: self.free[target.name]))
        stripes = self._leftovers(valid_bytes)
        if self.take(stripes, valid_bytes):
            return stripes, tried
        left = sum(self.free.values())
        raise PlanError(
            f"{what}: needs {format_size(valid_bytes)} but the targets of {self.cluster.source} have only "
            f"{format_size(left)} left; raise capacity_bytes or add a target"
        )

    def _leftovers(self, valid_bytes: int) -> Stripes:
        """One cycle that is as wide on each target as it has room, emptiest target first."""
        need = round_up(valid_bytes)
        stripes: list[tuple[str, int]] = []
        order: list[Target] = sorted(self.cluster.active, key=lambda target: -self.free[target.name])
        for target in order:
            width = min(self.free[target.name] // GRANULE_BYTES * GRANULE_BYTES, need)
            if width and len(stripes) < STRIPES_MAX:
                stripes.append((target.name, width))
                need -= width
        return tuple(stripes)


def stripe_over(servers: int, request_bytes: int) -> int:
    """r/M rounded up to 4 KiB: the stripe that spreads a request of r bytes over all of M servers."""
    return round_up(max(1, -(-request_bytes // servers)))
