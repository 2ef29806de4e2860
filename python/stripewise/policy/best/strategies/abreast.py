"""The strategy for few processes: the swiftest kinds of servers serve requests side by side, unlike ones together.

With a free channel for whatever comes, a request takes as long as the last of its pieces. It is over soonest where the
pieces of all servers end together: widths w_i with a_i + b_i w_i = T for those whose startup a_i is below T, and sum
w_i the request's bytes. Of a kind's n servers with c channels each, m serve a request of p in flight: they are busy for
m T of every n c T / p, so m = n c / p keeps nobody waiting. The hottest spans lie so on the swiftest kinds as one team,
the others on one kind each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ....layout import STRIPES_MAX, Stripes, share_bytes
from ....model.general import Float, Int
from ....units import GRANULE_BYTES
from ..expected.spans import Spans, spans_of
from ..proven.kinds import Kinds, kinds_of
from ..regions.layout import named
from ..tuning import ABREAST_PARTS, ABREAST_STRIPES_MAX, CROWDS, FILLED, SHORT_QUEUES
from .case import Attempt, Case, Piece, Proposals
from .dealing import TYPICAL
from .pieces import widths_of


def abreast(case: Case) -> Proposals:
    """Teams of the swiftest kinds, in widths that end together and in granules; none where queues are long."""
    if case.processes >= SHORT_QUEUES * sum(target.channels for target in case.cluster.active):
        return
    spans = spans_of(case.heats)
    if not spans.asked.any():
        return
    kinds = kinds_of(case.cluster, case.rooms)
    order = np.argsort(TYPICAL @ kinds.figures, kind="stable")
    for crowd in CROWDS:
        for swift in range(1, kinds.count + 1):
            yield _attempts(spans, case, _Teams(case, spans, kinds, order, swift, crowd))


def _attempts(spans: Spans, case: Case, teams: _Teams) -> Iterator[Attempt]:
    started = spans.asked[:, :2].sum(axis=1)
    wanted = np.zeros(len(spans.start))
    np.maximum.at(wanted, spans.run, started * (ABREAST_PARTS * len(case.rooms) / max(float(started.sum()), 1e-300)))
    cut = spans.cut(np.maximum(1, np.ceil(wanted)).astype(np.int64))
    if len(cut.start) * sum(map(sum, teams.many)) > ABREAST_STRIPES_MAX:
        return
    for filled in FILLED:
        chosen = _chosen(cut, teams, filled)
        if chosen is not None:
            yield _laid_out(cut, chosen, teams, case)


class _Teams:
    """Teams of kinds, and how many bytes of a request each of their servers serves.

    With `crowd` a kind gives as many servers as if so many times the processes were in flight; 0: stripes of a granule
    over all of them.
    """

    def __init__(self, case: Case, spans: Spans, kinds: Kinds, order: Int, swift: int, crowd: float) -> None:
        asked, active = spans.asked, case.cluster.active
        writes = float(asked[:, 1].sum() / max(float(asked[:, :2].sum()), 1e-300))
        self.startup_s = np.array(
            [(1 - writes) * each.startup_read_s + writes * each.startup_write_s for each in active]
        )
        self.per_byte_s = np.array(
            [(1 - writes) * each.per_byte_read_s + writes * each.per_byte_write_s for each in active]
        )
        self.rooms, self.crowd = case.rooms, crowd
        groups = [order[:swift], *(order[each : each + 1] for each in range(swift, kinds.count))]
        #: Of every team, the servers of each of its kinds.
        self.kinds = [[np.flatnonzero(kinds.of == kind) for kind in group.tolist()] for group in groups]
        channels = np.array([target.channels for target in active])
        flying = max(1.0, case.processes * crowd)
        self.many = [
            [
                int(np.clip(channels[servers].sum() / flying, number == 0, len(servers))) if crowd else len(servers)
                for number, servers in enumerate(team)
            ]
            for team in self.kinds
        ]
        self.known: dict[tuple[int, int, bool], list[Int]] = {}

    def widths(self, team: int, size: int, whole: bool) -> list[Int]:
        """Of every kind the bytes of as many servers as it gives; `whole`: together as many as are given."""
        key = (team, size, whole)
        if key not in self.known:
            many = self.many[team]
            some = np.concatenate([servers[:count] for servers, count in zip(self.kinds[team], many, strict=True)])
            made = (
                ending_together(self.startup_s[some], self.per_byte_s[some], size)
                if self.crowd or whole
                else np.full(len(some), GRANULE_BYTES, dtype=np.int64)
            )
            self.known[key] = np.split(made, np.cumsum(many)[:-1])
        return self.known[key]

    def part(self, team: int, size: int) -> Float:
        """Of a team's bytes, what each of its servers holds, in their order."""
        made = self.widths(team, size, False)
        each = [
            np.full(len(servers), width.sum() / len(servers))
            for servers, width in zip(self.kinds[team], made, strict=True)
        ]
        share = np.concatenate(each)
        return np.asarray(share / share.sum())


def ending_together(startup_s: Float, per_byte_s: Float, size: int) -> Int:
    """Bytes of every server, in whole granules and together `size`, of a request that they serve at once.

    Startups and seconds per byte are of shape (servers,); the request takes least where all pieces end together.
    """
    granules = max(1, -(-size // GRANULE_BYTES))
    order = np.argsort(startup_s, kind="stable")
    pace = np.cumsum(1 / np.maximum(per_byte_s[order], 1e-15))
    begun = np.cumsum(startup_s[order] / np.maximum(per_byte_s[order], 1e-15))
    # With the first k servers all end at T: sum (T - a_i) / b_i = size.
    least = float(((size + begun) / pace).min())
    share = np.maximum(least - startup_s, 0.0) / np.maximum(per_byte_s, 1e-15) / GRANULE_BYTES
    share *= granules / max(float(share.sum()), 1e-300)
    made = np.floor(share).astype(np.int64)
    missing = granules - int(made.sum())
    made[np.argsort(made - share, kind="stable")[:missing]] += 1
    return made * GRANULE_BYTES


def sizes_of(spans: Spans) -> Int:
    """Bytes of a request of every span on average; 0 of those that nobody asks for."""
    started, moved = spans.asked[:, :2].sum(axis=1), spans.asked[:, 2:].sum(axis=1)
    size = np.divide(moved, started, out=np.zeros(len(moved)), where=started > 0)
    return np.asarray(size.astype(np.int64))


def _chosen(spans: Spans, teams: _Teams, filled: float) -> Int | None:
    """The team of every span: the hottest first where they have room in order, the cold ones from behind."""
    length, size = spans.length, sizes_of(spans)
    heat = spans.asked[:, :2].sum(axis=1) / np.maximum(length, 1.0)
    order = np.argsort(-heat, kind="stable")
    chosen = np.full(len(length), -1, dtype=np.int64)
    servers = [np.concatenate(team) for team in teams.kinds]
    left = [teams.rooms[team] * filled for team in servers]
    hot, cold = order[heat[order] > 0], order[heat[order] <= 0]
    for waiting, turn in ((hot, range(len(servers))), (cold, range(len(servers) - 1, -1, -1))):
        rest = waiting
        for team in turn:
            if not len(rest):
                break
            part = teams.part(team, int(size[rest[0]]) or GRANULE_BYTES * len(servers[team]))
            held = np.cumsum(length[rest])
            room = float((left[team] / np.maximum(part, 1e-12)).min())
            fits = int(np.searchsorted(held, room, side="right"))
            chosen[rest[:fits]] = team
            left[team] = left[team] - part * (held[fits - 1] if fits else 0.0)
            rest = rest[fits:]
        if len(rest):
            return None
    return chosen


def _laid_out(spans: Spans, chosen: Int, teams: _Teams, case: Case) -> Attempt:
    """Every run with its spans on their teams, on the servers of each kind that are asked for least so far."""
    names, size = [target.name for target in case.cluster.active], sizes_of(spans)
    number = {name: at for at, name in enumerate(names)}
    busy, held = np.zeros(len(names)), np.zeros(len(names))
    started = spans.asked[:, :2].sum(axis=1)
    first = np.flatnonzero(np.diff(spans.run, prepend=-1)).tolist()
    pieces: list[Piece] = []
    for run, (low, high) in enumerate(zip(first, [*first[1:], len(spans.run)], strict=True)):
        file, start = int(spans.file[run]), int(spans.start[run])
        length = int(spans.slots[run] * spans.slot_bytes[run])
        slot = widths_of(chosen[low:high].tolist(), (spans.high - spans.low)[low:high].tolist())
        alone = len(slot) == 1
        made: Stripes = ()
        for team, width in slot.items():
            request = int(size[low:high].max()) or width if alone else width
            asked = float(started[low:high][chosen[low:high] == team].sum())
            for servers, widths in zip(teams.kinds[team], teams.widths(team, request, not alone), strict=True):
                least = servers[np.lexsort((held[servers], busy[servers]))[: len(widths)]]
                busy[least] += asked * (widths > 0)
                made += tuple(
                    (names[at], each) for at, each in zip(least.tolist(), widths.tolist(), strict=True) if each
                )
        made = made[:STRIPES_MAX]
        for name, share in share_bytes(made, length).items():
            held[number[name]] += share
        before = pieces[-1] if pieces else None
        if alone and before and before.file == file and before.stripes == made:
            pieces[-1] = replace(before, length=before.length + length)
        else:
            reason = f"{named(made, case.cluster)}: pieces of a request that end together"
            pieces.append(Piece(file, start, length, made, reason))
    return pieces
