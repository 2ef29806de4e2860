"""The choices for a region: one server, or a team of servers with stripes in between.

With many requests in flight a request that is cut pays more startups than it saves, so every server alone is a choice;
with few, its own time counts, and teams of 2, 4, 8 and more servers of one class serve it side by side. The widths of a
team's stripes are those that let all members end together on a request of r bytes: x_i = (T - a_i) / b_i with their
sum r, faster servers taking wider stripes, and slow ones none where r is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....cluster import Cluster, Target
from ....layout import STRIPES_MAX, Stripes
from ....units import GRANULE_BYTES, round_up
from ..tuning import BUSY, MANY, SIZES_OF_MANY
from .heads import Head, pairs


@dataclass(frozen=True)
class Mix:
    """What of a region's requests are writes, 0 to 1; device figures are taken in that proportion."""

    write_share: float

    def startup_s(self, target: Target) -> float:
        """a_i, seconds."""
        return (1 - self.write_share) * target.startup_read_s + self.write_share * target.startup_write_s

    def per_byte_s(self, target: Target) -> float:
        """b_i, seconds per byte."""
        return (1 - self.write_share) * target.per_byte_read_s + self.write_share * target.per_byte_write_s


@dataclass(frozen=True)
class Team:
    """Servers that serve a region together; one server is a team too.

    With a `head` the first member has the heads of all periods, the others the rest in equal parts.
    """

    members: tuple[Target, ...]
    head: Head | None = None

    @property
    def is_one(self) -> bool:
        """Whether it is one server."""
        return len(self.members) == 1

    @property
    def shape(self) -> tuple[int, int, int]:
        """What cuts requests alike has the same shape: how many members, period and width of heads."""
        return (len(self.members), self.head.period, self.head.width) if self.head else (len(self.members), 0, 0)


def teams_of(cluster: Cluster, processes: int) -> list[Team]:
    """Every server alone, then the teams that `processes` in flight can make use of; disjoint within one size."""
    teams = [Team((target,)) for target in cluster.active]
    if processes >= BUSY * len(cluster.active):
        return teams
    seen = {team.members for team in teams}
    for servers in (cluster.hservers, cluster.sservers, cluster.active):
        swift = sorted(servers, key=_pace)
        for size in _sizes(len(swift)):
            for low in range(0, len(swift), size):
                members = tuple(swift[max(0, min(low, len(swift) - size)) :][:size])
                if members not in seen and (servers is not cluster.active or size == len(swift)):
                    seen.add(members)
                    teams.append(Team(members))
    return teams


def head_teams(cluster: Cluster, heads: Sequence[Head], processes: int) -> list[Team]:
    """For every head a server that has the heads and one that has the rest.

    With fewer processes than servers a request's own time counts, and several share the rest as well.
    """
    periods = {head.period for head in heads}
    widths = -(-len(heads) // max(1, len(periods)))
    sizes = _sizes(len(cluster.hservers)) if processes < len(cluster.active) else []
    of = [pair for parts in (1, *sizes) for pair in pairs(cluster, widths, parts)]
    ssds, hdds = cluster.sservers, cluster.hservers
    return [Team((ssds[first], *(hdds[number] for number in rest)), head) for head in heads for first, rest in of]


def _sizes(servers: int) -> list[int]:
    if servers < 2:
        return []
    if servers > MANY:
        return list(SIZES_OF_MANY)
    sizes = [1 << power for power in range(1, servers.bit_length()) if 1 << power < servers]
    return [
        *sizes,
        *([servers // 2] if servers % 2 == 0 and servers // 2 not in sizes and servers > 2 else []),
        servers,
    ]


def _pace(target: Target) -> tuple[float, float]:
    return (target.per_byte_read_s + target.per_byte_write_s, target.startup_read_s + target.startup_write_s)


def split_bytes(members: Sequence[Target], request_bytes: int, mix: Mix) -> tuple[list[int], float]:
    """How many bytes of a request every member serves so that all end together, in whole granules, and that time in s.

    A member whose startup alone is longer serves nothing; the granules' rounding goes to the swiftest. A request of
    fewer granules than members is served by some of them, each with one: the sum is larger than the request then.
    """
    startup = np.array([mix.startup_s(target) for target in members])
    per_byte = np.maximum([mix.per_byte_s(target) for target in members], 1e-18)
    order = np.argsort(startup, kind="stable")
    # T with the k quickest starters at work: (r + sum a/b) / sum 1/b; the right k is the last whose T reaches its a.
    speed, work = np.cumsum(1 / per_byte[order]), np.cumsum((startup / per_byte)[order])
    times = (request_bytes + work) / speed
    working = int(np.flatnonzero(times >= startup[order])[-1]) + 1
    served = np.zeros(len(members), dtype=np.int64)
    granules = -(-request_bytes // GRANULE_BYTES)
    if granules < working:
        # Too few granules for all: a granule to everyone who is as quick with it as those that it takes; requests go
        # round.
        each = startup + per_byte * GRANULE_BYTES
        slowest = float(np.sort(each)[granules - 1])
        served[each <= slowest * (1 + 1e-9)] = GRANULE_BYTES
        return served.tolist(), slowest
    exact = (times[working - 1] - startup) / per_byte
    for position in order[:working].tolist():
        served[position] = max(0, round(float(exact[position]) / GRANULE_BYTES)) * GRANULE_BYTES
    short = round_up(request_bytes) - int(served.sum())
    if short > 0 or not served.any():
        served[int(per_byte.argmin())] += max(short, GRANULE_BYTES if not served.any() else 0)
    used = served > 0
    return served.tolist(), float((startup + served * per_byte)[used].max())


def stripes_of(team: Team, length: int, request_bytes: int, mix: Mix, turn: int) -> Stripes:
    """The stripes of a region of `length` bytes on a team; the first member rotates with `turn`."""
    if team.head:
        return team.head.stripes(team.members[0].name, [target.name for target in team.members[1:]], length)
    if team.is_one or request_bytes >= length * len(team.members):
        members = team.members if team.is_one else team.members[:1]
        return ((members[0].name, length),)
    widths, _ = split_bytes(team.members, max(1, request_bytes), mix)
    stripes = [(target.name, width) for target, width in zip(team.members, widths, strict=True) if width]
    if len(stripes) == 1:
        return ((stripes[0][0], length),)
    first = turn % len(stripes)
    return tuple([*stripes[first:], *stripes[:first]][:STRIPES_MAX])
