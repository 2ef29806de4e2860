"""The bound that no layout undercuts, whatever its regions, widths and cycles.

Cells are maximal runs of pages that the same requests touch; a page that a request touches in part is a cell of its
own. Every page lies on one server, so a layout is a way to deal out the pages. A request pays a startup on every server
that has some of its cells: at least its startup there times the share of its bytes that they are. So what the requests
of a cell keep servers busy for is linear in where its pages lie, and the least makespan of cells that may be divided
(`duality.py`) undercuts every layout's, which only rounds its slices up and pays more startups.

What is assumed is printed with a plan: service times are the figures' (cost-models section 7), and an access pays its
startup unless `continued`, in which case every access is taken to continue the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....cluster import Cluster
from ....model.general import Bool, Float, Int
from ....units import GRANULE_BYTES
from . import limits
from .duality import Prices, alike, prices_of
from .kinds import Kinds, kinds_of

#: Cells beyond which prices are found on a sample of them; the bound is that of all cells at these prices.
SAMPLED = 300_000
#: Cells beyond which room is taken to be free, which proves less.
ROOM_CELLS_MAX = 12_000_000
#: Elements of the largest table at a time.
AT_ONCE = 4_000_000
#: Of the bound, for what floating point rounds.
ROUNDING = 1e-9
#: Shares of startups are rounded down to multiples of this, so that cells that are alike are seen to be.
SHARE = 1e-9


@dataclass(frozen=True)
class Touched:
    """Requests on one file: bytes, read or write, and how many requests each stands for; `size_bytes` of the file."""

    offset: Int
    size: Int
    write: Bool
    count: Float
    size_bytes: int


@dataclass(frozen=True)
class Demand:
    """Cells: shares of read and write startups and bytes read and written (columns of `asked`), bytes of room."""

    asked: Float
    length: Float
    many: Float


def demand_of(files: Sequence[Touched]) -> Demand | None:
    """The cells of all files; None where they are too many."""
    if sum(4 * len(file.offset) for file in files) > ROOM_CELLS_MAX:
        return None
    return cells_of(files)


def least_s(
    files: Sequence[Touched], demand: Demand | None, cluster: Cluster, rooms: Float, continued: bool = False
) -> float:
    """Seconds that no layout of these requests undercuts on the servers' time; `rooms` are bytes of active targets."""
    kinds = kinds_of(cluster, rooms, continued)
    if demand is None:
        return _without_rooms(files, kinds)
    prices = _prices(demand, kinds)
    priced = np.where(kinds.rooms > 0, prices.of(demand.asked @ kinds.figures, demand.length), np.inf)
    limited = np.isfinite(kinds.rooms)
    held = float((prices.byte[limited] * kinds.rooms[limited]).sum())
    return max(0.0, float(priced.min(axis=1) @ demand.many) - held) * (1 - ROUNDING)


@dataclass(frozen=True)
class Priced:
    """Prices of every server's time and of what lies before it, and of its room in seconds per byte."""

    prices: limits.Prices
    space: Float


def priced_s(demand: Demand, cluster: Cluster, rooms: Float, priced: Priced) -> float:
    """The bound at the prices of every single server: sharper where servers are of more kinds than are told apart."""
    targets, prices = cluster.active, priced.prices
    startup = np.array([[t.startup_read_s for t in targets], [t.startup_write_s for t in targets]])
    per_byte = np.array([[t.per_byte_read_s for t in targets], [t.per_byte_write_s for t in targets]])
    cost = np.concatenate([prices.server * startup + prices.connect, prices.server * per_byte + prices.link])
    # Room without a limit is worth nothing, whatever a solver says of it.
    space = np.where(np.isfinite(rooms), np.maximum(priced.space, 0.0), 0.0)
    total, step = 0.0, max(1, AT_ONCE // len(targets))
    for low in range(0, len(demand.many), step):
        part = slice(low, low + step)
        each = demand.asked[part] @ cost + demand.length[part, None] * space
        total += float(each.min(axis=1) @ demand.many[part])
    held = float((space * np.where(np.isfinite(rooms), rooms, 0.0)).sum())
    return max(0.0, total - held) * (1 - ROUNDING)


def _prices(demand: Demand, kinds: Kinds) -> Prices:
    asked, length, many = demand.asked, demand.length, demand.many
    if len(length) > SAMPLED:
        step = -(-len(length) // SAMPLED)
        asked, length, many = asked[::step], length[::step], many[::step] * step
    return prices_of(asked @ kinds.figures, length, many, kinds.channels, kinds.rooms)


def _without_rooms(files: Sequence[Touched], kinds: Kinds) -> float:
    """The bound where every request may lie wherever it is served best; it needs no cells."""
    rows = []
    for file in files:
        moved = (file.size * file.count)[:, None]
        reads = (~file.write)[:, None]
        started = file.count[:, None]
        rows.append(np.hstack([started * reads, started * ~reads, moved * reads, moved * ~reads]))
    asked, _, many = alike(np.concatenate(rows))
    free = np.full(kinds.count, np.inf)
    work = asked @ kinds.figures
    found = prices_of(work, np.zeros(len(work)), many, kinds.channels, free)
    return float(found.of(work, np.zeros(len(work))).min(axis=1) @ many) * (1 - ROUNDING)


def cells_of(files: Sequence[Touched]) -> Demand:
    """The cells of all files, those that are alike once."""
    made = [_cells_of_file(file) for file in files]
    rows, _, many = alike(np.concatenate(made))
    return Demand(rows[:, :4], rows[:, 4], many)


def _cells_of_file(file: Touched) -> Float:
    """A row per cell: shares of read and write startups, bytes read and written, bytes of room."""
    page = GRANULE_BYTES
    low, high = file.offset, file.offset + file.size
    end = max(-(-file.size_bytes // page) * page, int(-(-high.max() // page) * page) if len(high) else 0)
    ends = [low // page * page, -(-low // page) * page, high // page * page, -(-high // page) * page]
    edges = np.unique(np.concatenate([[0, end], *ends]))
    steps = np.unique(np.concatenate([edges, low, high]))
    # Between two steps the same requests are asked for; the steps of a cell are summed.
    first, last = np.searchsorted(steps, low), np.searchsorted(steps, high)
    columns = []
    for weight in (1 / file.size, np.ones(len(low))):
        for chosen in (~file.write, file.write):
            each = np.where(chosen, file.count * weight, 0.0)
            begun = np.bincount(first, weights=each, minlength=len(steps))
            ended = np.bincount(last, weights=each, minlength=len(steps))
            dense = np.maximum(np.cumsum(begun - ended)[:-1], 0.0)
            columns.append(np.add.reduceat(dense * np.diff(steps), np.searchsorted(steps, edges[:-1])))
    shares = [np.floor(each / SHARE + 1e-3) * SHARE for each in columns[:2]]
    moved = [np.rint(each) for each in columns[2:]]
    return np.column_stack([*shares, *moved, np.diff(edges).astype(np.float64)])
