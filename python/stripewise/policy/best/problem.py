"""The regions of a workload and the choices on a cluster as the problem that the solver takes (`policy/assignment.py`).

Resources are the servers, the time of requests alone over the processes in flight, and on a network the links and the
connections of servers and nodes: every term of the bound of cost-models section 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...cluster import Cluster, Target
from ...layout import Stripes
from ...model.general import Float, Int
from ...units import GRANULE_BYTES, round_up
from ..assignment import Choice, Problem
from ..copying import COPY_CHUNK_BYTES
from ..regions import RegionTable
from ..space import UNLIMITED_BYTES, Space
from .cuts import Cuts
from .demand import BYTES, FEATURES, LARGEST, PIECES, REQUESTS, features
from .heads import Head, heads_of
from .limits import Prices
from .teams import Mix, Team, head_teams, split_bytes, stripes_of, teams_of

#: What a further member or a move must bring: ties go to the simpler layout.
SIMPLER_SHARE = 1e-6


@dataclass(frozen=True)
class Ground:
    """What is laid out: pieces of regions, their requests in every window (None: none), and on what.

    `whole` has the requests of all windows together; `request_bytes` is r of every piece, `capacity` the bytes that
    every active target can take, `paths` those of the files, `periods` those at which requests of different sizes begin
    (`heads.py`).
    """

    cluster: Cluster
    processes: int
    cuts: Cuts
    whole: RegionTable
    windows: tuple[RegionTable | None, ...]
    request_bytes: Int
    capacity: Float
    paths: tuple[str, ...]
    periods: tuple[int, ...] = ()

    @cached_property
    def write_share(self) -> Float:
        """Per piece the share of its requests that are writes, 0 to 1."""
        rows = np.repeat(np.arange(self.whole.regions), np.diff(self.whole.first))
        count = self.whole.count.astype(np.float64)
        every = np.bincount(rows, weights=count, minlength=self.whole.regions)
        writes = np.bincount(rows, weights=count * self.whole.write, minlength=self.whole.regions)
        return np.asarray(writes / np.maximum(every, 1.0))

    @cached_property
    def headed(self) -> list[Team]:
        """The pairs of servers for heads and tails; none where sizes are not nested."""
        return head_teams(self.cluster, heads_of(self.whole, self.periods))

    @cached_property
    def typical(self) -> tuple[int, Mix]:
        """The request size that most bytes are moved in, and the share of writes, of all requests together."""
        weights = self.whole.count.astype(np.float64)
        order = np.argsort(self.whole.size, kind="stable")
        moved = np.cumsum((weights * self.whole.size)[order])
        middle = int(self.whole.size[order][np.searchsorted(moved, moved[-1] / 2)])
        return middle, Mix(float((weights * self.whole.write).sum() / weights.sum()))


def capacities(cluster: Cluster, reserved: Space) -> Float:
    """Bytes that every active target can take; infinite where the file system decides."""
    free = [reserved.free[target.name] for target in cluster.active]
    return np.array([np.inf if room >= UNLIMITED_BYTES // 2 else float(room) for room in free])


@dataclass(frozen=True)
class Posed:
    """A problem, and what its choices and resources stand for."""

    ground: Ground
    teams: tuple[Team, ...]
    problem: Problem
    network: bool

    def stripes(self, piece: int, choice: int) -> Stripes:
        """The stripes of a piece under a choice."""
        ground = self.ground
        mix = Mix(float(ground.write_share[piece]))
        turn = int(ground.cuts.region[piece])
        return stripes_of(
            self.teams[choice], int(ground.cuts.length[piece]), int(ground.request_bytes[piece]), mix, turn
        )

    def prices(self, resource: Float, space: Float) -> Prices:
        """A window's prices by what they are for; those of nodes' links and connections fall on every server."""
        servers = len(self.ground.cluster.active)
        link = connect = np.zeros(servers)
        if self.network:
            net = self.ground.cluster.network
            nodes = -(-self.ground.processes // max(1, net.processes_per_node))
            first = servers + 1
            link = (resource[first : first + servers] + resource[first + 2 * servers] / nodes) * net.per_byte_s
            second = first + servers
            connect = resource[second : second + servers] + resource[first + 2 * servers + 1] / nodes
            connect = connect * net.establish_s
        return Prices(resource[:servers], float(resource[servers]), space, link, connect)


def pose(ground: Ground, in_flight: float, lean: float = 0.0) -> Posed:
    """The problem with `in_flight` requests at once; below the real number it asks for layouts of less latency.

    A server that takes k times the swiftest one's time for the typical request counts k^lean times as busy as it is:
    with few processes, those that wait at slow servers are missed at the swift ones.
    """
    cluster = ground.cluster
    teams = tuple(_teams(ground, in_flight))
    by_shape = {team.shape: team for team in teams}
    shapes = sorted(by_shape, key=lambda shape: (shape[1:], shape[0]))
    made = np.zeros((len(ground.windows), ground.cuts.pieces, len(shapes), FEATURES))
    for number, table in enumerate(ground.windows):
        if table is not None:
            for position, shape in enumerate(shapes):
                head = by_shape[shape].head
                made[number, :, position] = (
                    head.features(table) if head else features(table, ground.request_bytes, shape[0])
                )
    network = bool(cluster.network.establish_s or cluster.network.per_byte_s)
    typical, mix = ground.typical
    choice = _Choices(cluster, ground.processes, in_flight, typical, mix, network, lean)
    scale = _scale(ground)
    choices = [choice.of(team, shapes.index(team.shape), scale) for team in teams]
    problem = Problem(
        features=made,
        valid_bytes=np.array([round_up(int(valid)) for valid in ground.whole.valid_bytes], dtype=np.float64),
        capacity=ground.capacity,
        choices=tuple(choices),
        resources=choice.resources,
    )
    return Posed(ground, teams, problem, network)


def _teams(ground: Ground, in_flight: float) -> list[Team]:
    """The teams that are choices.

    Small requests that begin where large ones do always meet the same member of a team, which its sums do not tell. So
    with heads there are teams only where they are needed: while as many requests as servers are in flight, those on
    one server each take no more time over all in flight than the busiest server.
    """
    made = teams_of(ground.cluster, ground.processes)
    is_needed = not ground.headed or in_flight < len(ground.cluster.active)
    return [*(team for team in made if team.is_one or is_needed), *ground.headed]


def _scale(ground: Ground) -> float:
    """Seconds of service of a region's requests on average: what ties are told from."""
    figures = [(t.startup_read_s + t.startup_write_s) / 2 for t in ground.cluster.active]
    return float(ground.whole.count.sum()) * float(np.mean(figures)) / max(1, ground.cuts.pieces)


class _Choices:
    """Teams as the solver's choices on one cluster."""

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
        self.counted = (alone / max(float(alone.min()), 1e-12)) ** lean if lean else np.ones(servers)
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
                moves.append((i, startup_s / COPY_CHUNK_BYTES + share * per_byte_s))
        entries.append((self.servers, self._alone(shares)))
        if self.network:
            entries += self._network(shares)
        penalty = SIMPLER_SHARE * scale_s * (g - 1)
        return Choice(shape, tuple(entries), tuple(store), tuple(leave), tuple(enter), penalty)

    def _with_head(self, team: Team, head: Head, shape: int, scale_s: float) -> Choice:
        """Heads on the first member, the rest on the second: each has its own sums (`Head.features`)."""
        entries: list[tuple[int, tuple[float, ...]]] = []
        store: list[tuple[int, float]] = []
        leave: list[tuple[int, float]] = []
        enter: list[tuple[int, float]] = []
        net = self.cluster.network
        first = self.servers + 1
        for target, share, column in zip(team.members, (head.share, 1 - head.share), (0, 4), strict=True):
            i = self.index[target.name]
            row = [0.0] * FEATURES
            row[column : column + 4] = (
                self.counted[i]
                * np.array(
                    [target.startup_read_s, target.startup_write_s, target.per_byte_read_s, target.per_byte_write_s]
                )
            ).tolist()
            entries.append((i, tuple(row)))
            store.append((i, share))
            # Stripes that are wider than the mover's chunk take several of them.
            startups = min(1 / COPY_CHUNK_BYTES, share / min(share * head.period, COPY_CHUNK_BYTES))
            leave.append((i, startups * target.startup_read_s + share * target.per_byte_read_s))
            enter.append((i, startups * target.startup_write_s + share * target.per_byte_write_s))
            if self.network:
                entries.append((first + i, _sums(column + 2, net.per_byte_s)))
                entries.append((first + self.servers + i, _sums(column, net.establish_s)))
        entries.append((self.servers, self._alone_with_head(team, head)))
        if self.network:
            for resource, columns, seconds in ((0, (2, 6), net.per_byte_s), (1, (0, 4), net.establish_s)):
                both = [_sums(column, seconds / self.nodes) for column in columns]
                entries.append((first + 2 * self.servers + resource, tuple(map(sum, zip(*both, strict=True)))))
        return Choice(shape, tuple(entries), tuple(store), tuple(leave), tuple(enter), SIMPLER_SHARE * scale_s)

    def _alone_with_head(self, team: Team, head: Head) -> tuple[float, ...]:
        """Seconds of a request alone: on the first member, and what the second takes longer where it reaches that.

        A head that takes longer than the second member's startup hides some of the tail's bytes, as many as there are
        in the typical request's.
        """
        row = np.zeros(FEATURES)
        net = self.cluster.network
        first, rest = team.members
        tail_bytes = max(GRANULE_BYTES, self.typical - head.width)
        for operation, kind in enumerate(("read", "write")):
            startup, per_byte = (getattr(first, f"{figure}_{kind}_s") for figure in ("startup", "per_byte"))
            later, tail_byte = (getattr(rest, f"{figure}_{kind}_s") for figure in ("startup", "per_byte"))
            longer = later - startup - head.width * per_byte
            row[operation] = startup + net.establish_s
            row[2 + operation] = per_byte + net.per_byte_s
            row[4 + operation] = max(0.0, longer) + net.establish_s
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
