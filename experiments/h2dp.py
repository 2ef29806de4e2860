"""What the figures of the H2DP paper share: its cluster with one set of fitted figures, and its workload.

The paper prints no device figures. Those in papers/h2dp.toml were fitted once (papers/fit_h2dp.py) to six numbers of
its figure 8, and are used for all figures alike.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from common import GIB, MIB
from stripewise.cluster import Cluster, read_cluster
from stripewise.simulate.sweep import changed_cluster

HOME = Path(__file__).resolve().parent / "papers"
WORKLOAD = HOME / "h2dp-ior.toml"
#: Section 5.1: "four nodes as SServers", "12 nodes as HServers".
HSERVERS, SSERVERS = 12, 4
FILE_BYTES, REGION_BYTES = 128 * GIB, 64 * MIB
#: Section 5.1: "SServers can accommodate 1/6 data of the tested files at most".
SHARE = 1 / 6
POLICIES = ("def", "padp", "psa", "h2dp", "best")


def with_room(cluster: Cluster, file_bytes: int, share: float, region_bytes: int = REGION_BYTES) -> Cluster:
    """The cluster whose SServers hold `share` of the file together, each in proportion to nothing: all the same.

    What planners keep back for the file system and for rounding comes on top.
    """
    servers = len(cluster.sservers)
    if not servers:
        return cluster
    each = int(file_bytes * share) // servers
    room = each + each // 1000 + region_bytes // 256
    return replace(cluster, targets=tuple(replace(t, capacity_bytes=room) if t.is_ssd else t for t in cluster.targets))


def papers_cluster(
    hservers: int = HSERVERS, sservers: int = SSERVERS, file_bytes: int = FILE_BYTES, share: float = SHARE,
    region_bytes: int = REGION_BYTES,
) -> Cluster:  # fmt: skip
    """The paper's cluster with so many servers."""
    counted = changed_cluster(read_cluster(HOME / "h2dp.toml"), {"hservers": hservers, "sservers": sservers})
    return with_room(counted, file_bytes, share, region_bytes)
