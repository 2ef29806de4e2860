"""Teams as the solver's choices: what a team's requests cost every server, the requests themselves, and the network.

Seconds per unit of the eight sums that a region's requests have in the team's shape: those of `demand.py` for one
server and for stripes, those of `heads.py` for heads and tails.
"""

from __future__ import annotations

import numpy as np

from ....cluster import Cluster, Target
from ....units import GRANULE_BYTES
from ...toolkit.assignment import Choice
from ...toolkit.copying import COPY_CHUNK_BYTES
from .demand import BYTES, FEATURES, LARGEST, PIECES, REQUESTS
from .heads import Head
from .teams import Mix, Team, split_bytes

#: What a further member or a move must bring: ties go to the simpler layout.
SIMPLER_SHARE = 1e-6


class Choices:
    """Teams as the solver's choices on one cluster; `lean` is that of `pose`."""

    def __init__(
        self,
        cluster: Cluster,
        processes: int,
        in_flight: float,
        typical_bytes: int,
        mix: Mix,
        network: bool,
        lean: float,
    ) -> None:
        self.cluster, self.in_flight, self.typical, self.mix = cluster, in_flight, typical_bytes, mix
        self.network = network
        self.nodes = -(-processes // max(1, cluster.network.processes_per_node))
        self.index = {target.name: number for number, target in enumerate(cluster.active)}
        servers = len(cluster.active)
        self.servers = servers
        alone = np.array([mix.startup_s(target) + typical_bytes * mix.per_byte_s(target) for target in cluster.active])
        #: By what factor every server counts as busier than it is.
        self.lean = (alone / max(float(alone.min()), 1e-12)) ** lean if lean else np.ones(servers)
        self.counted = self.lean / np.array([target.channels for target in cluster.active])
        self.resources = servers + 1 + (2 * servers + 2 if network else 0)

    def of(self, team: Team, shape: int, scale_s: float) -> Choice:
        """One team."""
        if team.head:
            return self._with_head(team, team.head, shape, scale_s)
        shares = self._shares(team)
        g = len(shares)
        entries: list[tuple[int, tuple[float, ...]]] = []
        store: list[tuple[int, float]] = []
        leave: list[tuple[int, float]] = []
        enter: list[tuple[int, float]] = []
        for target, share in shares:
            i = self.index[target.name]
            entries.append((i, _row(1 / g, share, target, float(self.counted[i]))))
            store.append((i, share))
            for moves, startup_s, per_byte_s in (
                (leave, target.startup_read_s, target.per_byte_read_s),
                (enter, target.startup_write_s, target.per_byte_write_s),
            ):
                moves.append((i, (startup_s / COPY_CHUNK_BYTES + share * per_byte_s) / target.channels))
        entries.append((self.servers, self._alone(shares)))
        if self.network:
            entries += self._network(shares)
        penalty = SIMPLER_SHARE * scale_s * (g - 1)
        return Choice(shape, tuple(entries), tuple(store), tuple(leave), tuple(enter), penalty)

    def _with_head(self, team: Team, head: Head, shape: int, scale_s: float) -> Choice:
        """Heads on the first member, the rest on the others: each has its own sums (`Head.features`)."""
        entries: list[tuple[int, tuple[float, ...]]] = []
        store: list[tuple[int, float]] = []
        leave: list[tuple[int, float]] = []
        enter: list[tuple[int, float]] = []
        net = self.cluster.network
        first = self.servers + 1
        parts = len(team.members) - 1
        for number, target in enumerate(team.members):
            i = self.index[target.name]
            column, of = (4, 1 / parts) if number else (0, 1.0)
            share = of * (1 - head.share) if number else head.share
            row = [0.0] * FEATURES
            row[column : column + 4] = (
                of
                * self.counted[i]
                * np.array(
                    [target.startup_read_s, target.startup_write_s, target.per_byte_read_s, target.per_byte_write_s]
                )
            ).tolist()
            entries.append((i, tuple(row)))
            store.append((i, share))
            # Stripes that are wider than the mover's chunk take several of them.
            startups = min(1 / COPY_CHUNK_BYTES, share / min(share * head.period, COPY_CHUNK_BYTES))
            leave.append((i, (startups * target.startup_read_s + share * target.per_byte_read_s) / target.channels))
            enter.append((i, (startups * target.startup_write_s + share * target.per_byte_write_s) / target.channels))
            if self.network:
                entries.append((first + i, _sums(column + 2, of * net.per_byte_s)))
                entries.append((first + self.servers + i, _sums(column, of * net.establish_s)))
        entries.append((self.servers, self._alone_with_head(team, head)))
        if self.network:
            for resource, columns, seconds in ((0, (2, 6), net.per_byte_s), (1, (0, 4), net.establish_s)):
                both = [_sums(column, seconds / self.nodes) for column in columns]
                entries.append((first + 2 * self.servers + resource, tuple(map(sum, zip(*both, strict=True)))))
        return Choice(shape, tuple(entries), tuple(store), tuple(leave), tuple(enter), parts * SIMPLER_SHARE * scale_s)

    def _alone_with_head(self, team: Team, head: Head) -> tuple[float, ...]:
        """Seconds of a request alone: on the first member, and what the others take longer where it reaches them.

        A head that takes longer than their startup hides some of the tail's bytes, as many as there are in the typical
        request's. Those that share a tail are taken to be as busy with it as each other.
        """
        row = np.zeros(FEATURES)
        net = self.cluster.network
        first, *rest = team.members
        parts = len(rest)
        tail_bytes = max(GRANULE_BYTES, self.typical - head.width)
        for operation, kind in enumerate(("read", "write")):
            startup, per_byte = (getattr(first, f"{figure}_{kind}_s") for figure in ("startup", "per_byte"))
            later, tail_byte = (
                max(getattr(each, f"{figure}_{kind}_s") for each in rest) for figure in ("startup", "per_byte")
            )
            tail_byte /= parts
            longer = later - startup - head.width * per_byte
            row[operation] = startup + net.establish_s
            row[2 + operation] = per_byte + net.per_byte_s
            row[4 + operation] = max(0.0, longer) / parts + net.establish_s
            row[6 + operation] = max(0.0, tail_byte + min(0.0, longer) / tail_bytes) + net.per_byte_s
        return tuple((row / self.in_flight).tolist())

    def _shares(self, team: Team) -> list[tuple[Target, float]]:
        """Every member's share of a cycle for the typical request; members that it leaves out keep a granule's."""
        if team.is_one:
            return [(team.members[0], 1.0)]
        widths, _ = split_bytes(team.members, max(self.typical, GRANULE_BYTES), self.mix)
        total = sum(widths)
        return [(target, width / total) for target, width in zip(team.members, widths, strict=True) if width]

    def _alone(self, shares: list[tuple[Target, float]]) -> tuple[float, ...]:
        """Seconds of a request alone over the requests in flight, by the sums: its slowest member's."""
        g = len(shares)
        row = [0.0] * FEATURES
        net = self.cluster.network
        for operation, (startup, per_byte) in enumerate((("startup_read_s", "per_byte_read_s"),
                                                         ("startup_write_s", "per_byte_write_s"))):  # fmt: skip
            slowest = max(
                shares, key=lambda each: getattr(each[0], startup) + each[1] * self.typical * getattr(each[0], per_byte)
            )
            # All members end together on the typical request: any of them may be the slowest on another.
            row[REQUESTS + operation] = getattr(slowest[0], startup) / self.in_flight
            row[LARGEST + operation] = slowest[1] * g * getattr(slowest[0], per_byte) / self.in_flight
            if self.network:
                row[PIECES + operation] += net.establish_s / self.in_flight
                row[BYTES + operation] += net.per_byte_s / self.in_flight
        return tuple(row)

    def _network(self, shares: list[tuple[Target, float]]) -> list[tuple[int, tuple[float, ...]]]:
        net = self.cluster.network
        first, g = self.servers + 1, len(shares)
        entries = []
        for target, share in shares:
            i = self.index[target.name]
            entries.append((first + i, _sums(BYTES, share * net.per_byte_s)))
            entries.append((first + self.servers + i, _sums(PIECES, net.establish_s / g)))
        entries.append((first + 2 * self.servers, _sums(BYTES, net.per_byte_s / self.nodes)))
        entries.append((first + 2 * self.servers + 1, _sums(PIECES, net.establish_s / self.nodes)))
        return entries


def _row(pieces: float, share: float, target: Target, counted: float) -> tuple[float, ...]:
    row = [0.0] * FEATURES
    row[PIECES], row[PIECES + 1] = (counted * pieces * s for s in (target.startup_read_s, target.startup_write_s))
    row[BYTES], row[BYTES + 1] = (counted * share * b for b in (target.per_byte_read_s, target.per_byte_write_s))
    return tuple(row)


def _sums(column: int, seconds: float) -> tuple[float, ...]:
    row = [0.0] * FEATURES
    row[column] = row[column + 1] = seconds
    return tuple(row)
