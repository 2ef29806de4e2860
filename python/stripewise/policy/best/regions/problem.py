"""The regions of a workload and the choices on a cluster as the solver takes them (`toolkit/assignment.py`).

Resources are the servers, the time of requests alone over the processes in flight, and on a network the links and the
connections of servers and nodes: every term of the bound of cost-models section 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....cluster import Cluster
from ....layout import Stripes
from ....model.general import Float, Int
from ....units import round_up
from ...toolkit.assignment import Problem
from ...toolkit.regions import RegionTable
from ...toolkit.space import UNLIMITED_BYTES, Space
from ..proven.limits import Prices
from .choices import Choices
from .cuts import Cuts
from .demand import FEATURES, features
from .heads import heads_of
from .teams import Mix, Team, head_teams, stripes_of, teams_of


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
        """The servers for heads and those for tails; none where sizes are not nested."""
        return head_teams(self.cluster, heads_of(self.whole, self.periods), self.processes)

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
    """A problem, and what its choices and resources stand for; `lean` is by what factor servers count as busier."""

    ground: Ground
    teams: tuple[Team, ...]
    problem: Problem
    network: bool
    lean: Float

    def stripes(self, piece: int, choice: int) -> Stripes:
        """The stripes of a piece under a choice."""
        ground = self.ground
        mix = Mix(float(ground.write_share[piece]))
        turn = int(ground.cuts.region[piece])
        return stripes_of(
            self.teams[choice], int(ground.cuts.length[piece]), int(ground.request_bytes[piece]), mix, turn
        )

    def prices(self, resource: Float) -> Prices:
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
        # A second of a server with several channels is a second of each.
        channels = np.array([target.channels for target in self.ground.cluster.active])
        return Prices(resource[:servers] / channels, float(resource[servers]), link, connect)


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
                    head.features(table, shape[0] - 1) if head else features(table, ground.request_bytes, shape[0])
                )
    network = bool(cluster.network.establish_s or cluster.network.per_byte_s)
    typical, mix = ground.typical
    choice = Choices(cluster, ground.processes, in_flight, typical, mix, network, lean)
    scale = _scale(ground)
    choices = [choice.of(team, shapes.index(team.shape), scale) for team in teams]
    problem = Problem(
        features=made,
        valid_bytes=np.array([round_up(int(valid)) for valid in ground.whole.valid_bytes], dtype=np.float64),
        capacity=ground.capacity,
        choices=tuple(choices),
        resources=choice.resources,
    )
    return Posed(ground, teams, problem, network, choice.lean)


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
