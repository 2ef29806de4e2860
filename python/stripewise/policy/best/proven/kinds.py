"""Servers of a kind have the same figures: one price each, however many they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....cluster import Cluster, Target
from ....model.general import Float, Int

#: Kinds that are told apart; of more the nearest become one with the best figures of each.
KINDS_MAX = 24


@dataclass(frozen=True)
class Kinds:
    """Kinds of servers, swiftest first.

    `of` is the kind of every active target. `figures`, of shape (4, kinds), are seconds of a read's and a write's
    startup and of a byte read and written; `channels` and `rooms` (bytes, infinite where nothing limits) are those of
    all servers of a kind together.
    """

    of: Int
    figures: Float
    channels: Float
    rooms: Float

    @property
    def count(self) -> int:
        """How many kinds there are."""
        return len(self.channels)


def kinds_of(cluster: Cluster, rooms: Float, continued: bool = False) -> Kinds:
    """The kinds of a cluster; `rooms` are the bytes that every active target can take.

    With `continued` every startup is what an access pays that continues the one before: no access pays less.
    """
    targets = cluster.active
    rows = np.array([(*_figures(target, continued), target.channels) for target in targets])
    unique, of = np.unique(rows, axis=0, return_inverse=True)
    of = _merged(unique, np.asarray(of).ravel())
    figures = np.array([rows[of == kind, :4].min(axis=0) for kind in range(int(of.max()) + 1)])
    swift = np.argsort(figures @ np.array([1.0, 1.0, 65536.0, 65536.0]), kind="stable")
    rank = np.empty(len(swift), dtype=np.int64)
    rank[swift] = np.arange(len(swift))
    of = rank[of]
    channels = np.bincount(of, weights=rows[:, 4])
    held = np.array([rooms[of == kind].sum() for kind in range(len(swift))])
    return Kinds(of, figures[swift].T, channels.astype(np.float64), held)


def are_merged(cluster: Cluster) -> bool:
    """Whether servers are of more kinds than are told apart."""
    return len({(*_figures(target, False), target.channels) for target in cluster.active}) > KINDS_MAX


def _figures(target: Target, continued: bool) -> Sequence[float]:
    paid = target.continued_part if continued else 1.0
    return (
        target.startup_read_s * paid, target.startup_write_s * paid, target.per_byte_read_s, target.per_byte_write_s,
    )  # fmt: skip


def _merged(unique: Float, of: Int) -> Int:
    """The kind of every target, neighbours by speed put together until there are no more than KINDS_MAX."""
    if len(unique) <= KINDS_MAX:
        return of
    pace = (unique[:, :4] @ np.array([1.0, 1.0, 65536.0, 65536.0])) / unique[:, 4]
    order = np.argsort(pace, kind="stable")
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.arange(len(order)) * KINDS_MAX // len(order)
    return group[of]
