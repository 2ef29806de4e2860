"""The strategy that spreads whole files: one cycle over all servers, wider on those that are quicker or have more room.

Where a file is gone through in sequence every server of a cycle goes through its own bytes in sequence, so accesses
continue each other on all of them at once, which parts of the file on single servers do only one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....cluster import Cluster
from ....layout import STRIPES_MAX, Stripes
from ....model.general import Float
from ....units import GRANULE_BYTES, round_up
from ..expected.heats import FileHeat
from ..proven.kinds import kinds_of
from ..regions.layout import named
from ..tuning import SPREAD_FILLED, SPREAD_KINDS, SPREAD_WIDTHS
from .case import Attempt, Case, Piece, Proposals
from .dealing import TYPICAL


def spreads(case: Case) -> Proposals:
    """Stripes of every width, shares by what accesses take that pay their startups, and that continue."""
    heats, cluster = case.heats, case.cluster
    known = [heat for heat in heats if heat is not None]
    total = float(sum(heat.end for heat in known))
    sizes = np.concatenate([heat.size for heat in known]) if known else np.zeros(0)
    if not len(sizes):
        return
    writes = float(np.concatenate([heat.write for heat in known]).mean())
    typical = float((sizes.astype(np.float64) ** 2).sum() / sizes.sum())
    for continued in (False, True):
        share = _shares(cluster, case.rooms * SPREAD_FILLED / total, typical, writes, continued)
        yield iter([_ranges(heats, share, cluster)])
        if any(heat.in_sequence for heat in known):
            for swift_first in (False, True):
                for striped in (False, True):
                    yield iter([_in_order(heats, share, cluster, swift_first, striped, int(typical))])
    for continued in (False, True):
        for width in SPREAD_WIDTHS:
            share = _shares(cluster, case.rooms * SPREAD_FILLED / total, min(typical, float(width)), writes, continued)
            many = int((share > 0).sum())
            widths = np.round(share * many * width / GRANULE_BYTES).astype(np.int64) * GRANULE_BYTES
            stripes: Stripes = tuple(
                (target.name, each) for target, each in zip(cluster.active, widths.tolist(), strict=True) if each
            )[:STRIPES_MAX]
            if stripes:
                yield iter([_laid_out(heats, stripes, cluster)])
    kinds = kinds_of(cluster, case.rooms)
    for kind in np.argsort(TYPICAL @ kinds.figures, kind="stable").tolist()[:SPREAD_KINDS]:
        names = [cluster.active[at].name for at in np.flatnonzero(kinds.of == kind).tolist()][:STRIPES_MAX]
        for width in SPREAD_WIDTHS:
            yield iter([_laid_out(heats, tuple((name, width) for name in names), cluster)])


def _shares(cluster: Cluster, rooms: Float, size: float, writes: float, continued: bool) -> Float:
    """Of all bytes, every server's: as quick as it is with accesses of `size` bytes, and no more than it has room for.

    `rooms` are shares of all bytes too.
    """
    speed = []
    for target in cluster.active:
        startup = (1 - writes) * target.startup_read_s + writes * target.startup_write_s
        per_byte = (1 - writes) * target.per_byte_read_s + writes * target.per_byte_write_s
        paid = target.continued_part if continued else 1.0
        speed.append(target.channels * size / max(startup * paid + per_byte * size, 1e-12))
    rate, share = np.array(speed), np.zeros(len(speed))
    free = np.ones(len(speed), dtype=bool)
    while free.any():
        wanted = (1 - share[~free].sum()) * rate / max(float(rate[free].sum()), 1e-300)
        full = free & (wanted > rooms)
        if not full.any():
            share[free] = np.maximum(wanted[free], 0.0)
            break
        share[full] = rooms[full]
        free &= ~full
    return share


def _ranges(heats: Sequence[FileHeat | None], share: Float, cluster: Cluster) -> Attempt:
    """All files one behind the other, every server's share of them in one piece: it goes through few parts at once."""
    total = sum(round_up(heat.end) for heat in heats if heat is not None)
    edges = np.round(np.cumsum(share) * total / GRANULE_BYTES).astype(np.int64) * GRANULE_BYTES
    edges[-1] = total
    pieces, before = [], 0
    for number, heat in enumerate(heats):
        if heat is None:
            continue
        end, at = before + round_up(heat.end), before
        for server in np.flatnonzero(edges > before).tolist():
            high = min(int(edges[server]), end)
            if high > at:
                name = cluster.active[server].name
                reason = f"whole on {name}: its share of all files, by how quick every server is"
                pieces.append(Piece(number, at - before, high - at, ((name, high - at),), reason))
                at = high
        before = end
    return pieces


def _in_order(
    heats: Sequence[FileHeat | None], share: Float, cluster: Cluster, swift_first: bool, striped: bool, typical: int
) -> Attempt:
    """The same kind by kind of servers; `striped`: a kind's part on all of its servers, a request on each.

    Streams that lie with a kind whole leave the others alone: what is left goes on in order there.
    """
    paces = np.array([target.startup_read_s + target.per_byte_read_s * typical for target in cluster.active])
    order = np.argsort(paces if swift_first else -paces, kind="stable")
    kinds = np.split(order, np.flatnonzero(np.diff(paces[order])) + 1)
    total = sum(round_up(heat.end) for heat in heats if heat is not None)
    width = round_up(typical)
    cycles: list[Stripes] = []
    edges: list[int] = []
    for members in kinds if striped else [np.array([each]) for each in order]:
        cycles.append(tuple((cluster.active[int(each)].name, width) for each in members)[:STRIPES_MAX])
        edges.append(int(share[members].sum() * total) // width * width + (edges[-1] if edges else 0))
    edges[-1] = total
    pieces, before = [], 0
    for number, heat in enumerate(heats):
        if heat is None:
            continue
        end, at = before + round_up(heat.end), before
        for cycle, edge in zip(cycles, edges, strict=True):
            high = min(edge, end)
            if high <= at:
                continue
            stripes = cycle if len(cycle) > 1 else ((cycle[0][0], high - at),)
            reason = f"{named(stripes, cluster)}: their share of all files, one kind of servers after the other"
            pieces.append(Piece(number, at - before, high - at, stripes, reason))
            at = high
        before = end
    return pieces


def _laid_out(heats: Sequence[FileHeat | None], stripes: Stripes, cluster: Cluster) -> Attempt:
    reason = f"{named(stripes, cluster)}: the whole file, by how quick every server is"
    return [
        Piece(number, 0, round_up(heat.end), stripes, reason) for number, heat in enumerate(heats) if heat is not None
    ]
