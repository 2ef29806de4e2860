"""What requests take on a cluster: between what they take if all that can overlap does, and if nothing does.

Every server's work is that of DEF, which deals stripes of 64 KiB round robin over all servers: a piece pays its
startup, a byte its transfer (cost-models section 7); work is taken to spread evenly. B is the busiest server's work
over its channels, A the longest that one process waits for its own requests, one after the other, each as long as its
slowest piece. A run takes max(B, A) where service of others and own waiting overlap, B + A where they add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cluster import Cluster
from ..cluster.cluster import Network, Target
from ..units import STRIPE_FALLBACK_BYTES

Bytes = npt.NDArray[np.int64]


def _disk(name: str, klass: str, startup_s: float, per_byte_s: float) -> Target:
    return Target(name, klass, "dir", Path("/"), 0, startup_s, startup_s, per_byte_s, per_byte_s)


#: Where nobody names a cluster: the devices of docs/models.md.
DEFAULT_CLUSTER = Cluster(
    Path("4 HDDs of 3 ms and 100 MB/s, 2 SSDs of 0.1 ms and 400 MB/s"),
    Network(),
    (
        *(_disk(f"hdd{number}", "hdd", 0.003, 1e-8) for number in range(4)),
        *(_disk(f"ssd{number}", "ssd", 0.0001, 2.5e-9) for number in range(2)),
    ),
)


@dataclass(frozen=True)
class Seconds:
    """From the least to the most that a model says."""

    low: float
    high: float

    @property
    def text(self) -> str:
        """For people."""
        return f"{_seconds(self.low)} to {_seconds(self.high)} s"


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


@dataclass(frozen=True)
class Load:
    """Work of every server over its channels, and what every process waits for its own requests alone; seconds."""

    busy: npt.NDArray[np.float64]
    alone: npt.NDArray[np.float64]

    def __add__(self, other: Load) -> Load:
        return Load(self.busy + other.busy, self.alone + other.alone)

    @property
    def seconds(self) -> Seconds:
        """What the run takes."""
        busy, alone = float(self.busy.max(initial=0.0)), float(self.alone.max(initial=0.0))
        return Seconds(max(busy, alone), busy + alone)


@dataclass(frozen=True)
class Asked:
    """Requests to be priced: arrays of one length, a row for `count` alike; `rank` counts from 0, below `ranks`."""

    size: Bytes
    write: npt.NDArray[np.bool_]
    rank: npt.NDArray[np.int64]
    ranks: int
    count: npt.NDArray[np.float64]

    @classmethod
    def each(cls, size: Bytes, write: npt.NDArray[np.bool_], rank: npt.NDArray[np.int64], ranks: int) -> Asked:
        """A row for each request."""
        return cls(size, write, rank, ranks, np.ones(len(size)))

    def of(self, chosen: npt.NDArray[np.bool_]) -> Asked:
        """Some of them."""
        return Asked(self.size[chosen], self.write[chosen], self.rank[chosen], self.ranks, self.count[chosen])

    def joined(self, size: int) -> Asked:
        """The same bytes of every rank, and of reads and writes, in requests of `size` bytes and what remains."""
        key = self.rank * 2 + self.write
        moved = np.bincount(key, weights=self.size * self.count, minlength=2 * self.ranks).astype(np.int64)
        whole, rest = np.divmod(moved, size)
        sizes = np.concatenate([np.full(len(moved), size), rest])
        count = np.concatenate([whole, rest > 0]).astype(np.float64)
        of = np.tile(np.arange(2 * self.ranks), 2)
        used = count > 0
        return Asked(sizes[used], (of % 2).astype(bool)[used], (of // 2)[used], self.ranks, count[used])

    def shared(self, ranks: int) -> Asked:
        """The same requests dealt out to so many ranks in turn."""
        return Asked(self.size, self.write, np.arange(len(self.size)) % ranks, ranks, self.count)


def load_of(asked: Asked, cluster: Cluster, on: Sequence[Target] | None = None) -> Load:
    """The requests on these servers (default: all active ones), as DEF deals them out."""
    servers = list(cluster.active if on is None else on)
    stripe, count = STRIPE_FALLBACK_BYTES, len(servers)
    busy = np.zeros(len(cluster.active))
    alone = np.zeros(asked.ranks)
    for write in (False, True):
        chosen = asked.write == write
        if not chosen.any():
            continue
        size, times = asked.size[chosen], asked.count[chosen]
        startup = np.array([each.startup_write_s if write else each.startup_read_s for each in servers])
        per_byte = np.array([each.per_byte_write_s if write else each.per_byte_read_s for each in servers])
        channels = np.array([each.channels for each in servers])
        # A server takes its stripes of a request as one piece.
        pieces = float((np.minimum(-(-size // stripe), count) * times).sum())
        work = (pieces / count * startup + float((size * times).sum()) / count * per_byte) / channels
        for server, seconds in zip(servers, work.tolist(), strict=True):
            busy[cluster.active.index(server)] += seconds
        largest = np.minimum(size, -(-size // (stripe * count)) * stripe)
        own = startup.max() + largest * per_byte.max()
        alone += np.bincount(asked.rank[chosen], weights=own * times, minlength=asked.ranks)
    return Load(busy, alone)


def saved(now: Load, then: Load) -> Seconds:
    """What `then` takes less than `now`, from the least to the most of both ends; not below 0."""
    ends: list[Any] = [now.seconds.low - then.seconds.low, now.seconds.high - then.seconds.high]
    return Seconds(max(0.0, min(ends)), max(0.0, *ends))
