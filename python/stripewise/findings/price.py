"""What requests take on a cluster: between what they take if all that can overlap does, and if nothing does.

Requests on a file whose layout is known go where it says. Of others every server's work is that of DEF, which deals
stripes of 64 KiB round robin over all servers, and is taken to spread evenly. A piece pays its startup, a byte its
transfer (cost-models section 7). B is the busiest server's work over its channels, A the longest that one process waits
for its own requests, one after the other, each as long as its slowest piece. A run takes max(B, A) where service of
others and own waiting overlap, B + A where they add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cluster import Cluster
from ..cluster.cluster import Network, Target
from ..layout import Layout
from ..units import STRIPE_FALLBACK_BYTES, seconds_text
from ..workload.served import dealt
from . import choices

#: Of a layout with more regions the requests are not followed: that takes minutes.
LAID_REGIONS_MAX = 4096
Bytes = npt.NDArray[np.int64]
Seconds1D = npt.NDArray[np.float64]


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
        low, high = seconds_text(self.low), seconds_text(self.high)
        return f"{high} s" if low == high else f"{low} to {high} s"


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
class Places:
    """Where requests lie: their offsets, in a file with this layout."""

    offset: Bytes
    layout: Layout


@dataclass(frozen=True)
class Asked:
    """Requests to be priced: arrays of one length, a row for `count` alike; `rank` counts from 0, below `ranks`.

    `places` where they are known. Requests that were `joined` have those that they were made of.
    """

    size: Bytes
    write: npt.NDArray[np.bool_]
    rank: npt.NDArray[np.int64]
    ranks: int
    count: npt.NDArray[np.float64]
    places: Places | None = None
    made_of: Asked | None = None

    @classmethod
    def each(
        cls,
        size: Bytes,
        write: npt.NDArray[np.bool_],
        rank: npt.NDArray[np.int64],
        ranks: int,
        places: Places | None = None,
    ) -> Asked:
        """A row for each request."""
        return cls(size, write, rank, ranks, np.ones(len(size)), places)

    def of(self, chosen: npt.NDArray[np.bool_]) -> Asked:
        """Some of them."""
        places = None if self.places is None else Places(self.places.offset[chosen], self.places.layout)
        return Asked(self.size[chosen], self.write[chosen], self.rank[chosen], self.ranks, self.count[chosen], places)

    def joined(self, size: int) -> Asked:
        """The same bytes of every rank, and of reads and writes, in requests of `size` bytes and what remains."""
        key = self.rank * 2 + self.write
        moved = np.bincount(key, weights=self.size * self.count, minlength=2 * self.ranks).astype(np.int64)
        whole, rest = np.divmod(moved, size)
        sizes = np.concatenate([np.full(len(moved), size), rest])
        count = np.concatenate([whole, rest > 0]).astype(np.float64)
        of = np.tile(np.arange(2 * self.ranks), 2)
        used = count > 0
        write, rank = (of % 2).astype(bool)[used], (of // 2)[used]
        return Asked(sizes[used], write, rank, self.ranks, count[used], made_of=self)

    def shared(self, ranks: int) -> Asked:
        """The same requests dealt out to so many ranks in turn."""
        return Asked(self.size, self.write, np.arange(len(self.size)) % ranks, ranks, self.count, self.places)


def load_of(asked: Asked, cluster: Cluster, on: Sequence[Target] | None = None) -> Load:
    """The requests on these servers, as DEF deals them out; without `on` where they lie, or on all active servers."""
    if on is not None or not is_laid(asked.made_of or asked, cluster):
        return _as_dealt(asked, cluster, on)
    return _joined_as_laid(asked, asked.made_of, cluster) if asked.made_of else _as_laid(asked, cluster)


def bytes_by_server(asked: Asked, cluster: Cluster) -> npt.NDArray[np.float64] | None:
    """What the requests move of each server of `Cluster.holding`; None where it is not known how they lie."""
    if not is_laid(asked, cluster):
        return None
    moved = np.zeros(len(cluster.holding))
    for row, target, size, _ in _pieces(asked, cluster):
        moved += np.bincount(target, weights=size * asked.count[row], minlength=len(moved))
    return moved


def is_on_ssds(asked: Asked, cluster: Cluster) -> bool:
    """Whether nearly all bytes that the requests move are known to lie on SSDs."""
    lies = bytes_by_server(asked, cluster)
    if lies is None:
        return False
    on_ssds = sum(float(lies[cluster.holding.index(each)]) for each in cluster.sservers)
    return on_ssds >= choices.THERE * float(lies.sum())


def is_laid(asked: Asked, cluster: Cluster) -> bool:
    """Whether it is known how the requests lie, on servers that are there still."""
    if asked.places is None or len(asked.places.layout.regions) > LAID_REGIONS_MAX:
        return False
    used = {name for region in asked.places.layout.regions for name, _ in region.stripes}
    return used <= {each.name for each in cluster.holding}


def _figures(servers: Sequence[Target], write: bool) -> tuple[Seconds1D, Seconds1D, Seconds1D]:
    """Startup, time per byte, and channels of each."""
    startup = np.array([each.startup_write_s if write else each.startup_read_s for each in servers])
    per_byte = np.array([each.per_byte_write_s if write else each.per_byte_read_s for each in servers])
    return startup, per_byte, np.array([each.channels for each in servers], dtype=float)


def _as_dealt(asked: Asked, cluster: Cluster, on: Sequence[Target] | None) -> Load:
    servers = list(cluster.active if on is None else on)
    stripe, count = STRIPE_FALLBACK_BYTES, len(servers)
    busy = np.zeros(len(cluster.holding))
    alone = np.zeros(asked.ranks)
    for write in (False, True):
        chosen = asked.write == write
        if not chosen.any():
            continue
        size, times = asked.size[chosen], asked.count[chosen]
        startup, per_byte, channels = _figures(servers, write)
        # A server takes its stripes of a request as one piece.
        pieces = float((np.minimum(-(-size // stripe), count) * times).sum())
        work = (pieces / count * startup + float((size * times).sum()) / count * per_byte) / channels
        for server, seconds in zip(servers, work.tolist(), strict=True):
            busy[cluster.holding.index(server)] += seconds
        largest = np.minimum(size, -(-size // (stripe * count)) * stripe)
        own = startup.max() + largest * per_byte.max()
        alone += np.bincount(asked.rank[chosen], weights=own * times, minlength=asked.ranks)
    return Load(busy, alone)


def _as_laid(asked: Asked, cluster: Cluster) -> Load:
    """Of requests whose places are known."""
    busy = np.zeros(len(cluster.holding))
    alone = np.zeros(asked.ranks)
    for write in (False, True):
        part = asked.of(asked.write == write)
        startup, per_byte, channels = _figures(cluster.holding, write)
        own = np.zeros(len(part.size))
        for row, target, moved, accesses in _pieces(part, cluster):
            seconds = accesses * startup[target] + moved * per_byte[target]
            busy += np.bincount(target, weights=seconds * part.count[row], minlength=len(busy)) / channels
            np.maximum.at(own, row, seconds)
        alone += np.bincount(part.rank, weights=own * part.count, minlength=asked.ranks)
    return Load(busy, alone)


def _joined_as_laid(asked: Asked, made_of: Asked, cluster: Cluster) -> Load:
    """Of requests that were joined: a server has as many bytes of them as before, and no more pieces than they are."""
    busy = np.zeros(len(cluster.holding))
    alone = np.zeros(asked.ranks)
    for write in (False, True):
        part, before = asked.of(asked.write == write), made_of.of(made_of.write == write)
        startup, per_byte, channels = _figures(cluster.holding, write)
        pieces, moved = np.zeros(len(busy)), np.zeros(len(busy))
        for row, target, size, accesses in _pieces(before, cluster):
            pieces += np.bincount(target, weights=accesses * before.count[row], minlength=len(busy))
            moved += np.bincount(target, weights=size * before.count[row], minlength=len(busy))
        pieces = np.minimum(pieces, part.count.sum())
        busy += (pieces * startup + moved * per_byte) / channels
        share = moved / max(1.0, moved.sum())
        own = (np.where(moved > 0, startup, 0.0) + np.outer(part.size, share) * per_byte).max(axis=1, initial=0.0)
        alone += np.bincount(part.rank, weights=own * part.count, minlength=asked.ranks)
    return Load(busy, alone)


def _pieces(asked: Asked, cluster: Cluster) -> Iterator[tuple[Bytes, Bytes, Bytes, Bytes]]:
    assert asked.places is not None
    names = [each.name for each in cluster.holding]
    return dealt(asked.places.layout, names, asked.places.offset, asked.size)


def why_quicker(cluster: Cluster, store: str | None) -> str:
    """What may have made a run quicker than it is priced on a cluster, where each access pays its startup. Emulated
    devices of the `store` that had its files take their time, cached or not; a cluster need not be the run's.
    """
    if str(cluster.source) != store:
        return "memory or read-ahead served it, or its devices are faster than these"
    if all(target.kind == "emulated" for target in cluster.holding):
        return "accesses went on where others ended"
    return "memory or read-ahead served it"


def saved(now: Load, then: Load) -> Seconds:
    """What `then` takes less than `now`, from the least to the most of both ends; not below 0."""
    ends: list[Any] = [now.seconds.low - then.seconds.low, now.seconds.high - then.seconds.high]
    return Seconds(max(0.0, min(ends)), max(0.0, *ends))
