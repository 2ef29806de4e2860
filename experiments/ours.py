"""What the experiments of no paper share: the cluster of throughput-view with other rooms, numbers and figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from common import GIB
from h2dp import SHARE, with_room
from stripewise.cluster import Cluster, read_cluster
from stripewise.simulate.sweep import changed_cluster

HOME = Path(__file__).resolve().parent
FILE_BYTES = 128 * GIB


def view_cluster(
    hservers: int = 12, sservers: int = 4, file_bytes: int = FILE_BYTES, share: float = SHARE,
    region_bytes: int = 64 << 20,
) -> Cluster:  # fmt: skip
    """HServers of 3 ms + 100 MB/s, SServers of 0.1 ms + 400 MB/s that hold `share` of the file together."""
    cluster = read_cluster(HOME / "throughput-view" / "cluster.toml")
    counted = changed_cluster(cluster, {"hservers": hservers, "sservers": sservers})
    return with_room(counted, file_bytes, share, region_bytes)


def uneven_cluster(factor: float) -> Cluster:
    """The same 16 servers, no two alike: startups and rates run from 1/sqrt(factor) to sqrt(factor) times the figure.

    Both run through the class in equal steps of the logarithm, in unlike orders, so that a server that is quick to
    start is not the one that is quick to transfer. Room differs likewise; together it is what it was.
    """
    cluster = view_cluster()
    targets = []
    for servers in (cluster.hservers, cluster.sservers):
        count = len(servers)
        steps = [factor ** (number / (count - 1) - 0.5) for number in range(count)]
        total = sum(steps)
        for number, target in enumerate(servers):
            startup, rate = steps[number], steps[(5 * number + 2) % count]
            targets.append(
                replace(
                    target,
                    startup_read_s=target.startup_read_s * startup,
                    startup_write_s=target.startup_write_s * startup,
                    per_byte_read_s=target.per_byte_read_s / rate,
                    per_byte_write_s=target.per_byte_write_s / rate,
                    capacity_bytes=int(target.capacity_bytes * count * steps[(3 * number + 1) % count] / total),
                )
            )
    return replace(cluster, targets=tuple(targets))
