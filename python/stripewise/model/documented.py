"""Clusters of the devices that the models' pages use, for whoever has no cluster.toml at hand."""

from __future__ import annotations

from pathlib import Path

from ..cluster import Cluster, Network, Target

#: The devices of cost-models section 7: 3 ms + 100 MB/s, 0.1 ms + 400 MB/s, no network cost.
HDD_STARTUP_S, HDD_PER_BYTE_S = 0.003, 1e-8
SSD_STARTUP_S, SSD_PER_BYTE_S = 0.0001, 2.5e-9


def documented_cluster(hservers: int, sservers: int) -> Cluster:
    """So many of the HDDs and of the SSDs, without a network."""
    kinds = (("hdd", HDD_STARTUP_S, HDD_PER_BYTE_S, hservers), ("ssd", SSD_STARTUP_S, SSD_PER_BYTE_S, sservers))
    targets = [
        Target(f"{kind}{n}", kind, "emulated", Path(f"{kind}{n}"), 0, startup, startup, per_byte, per_byte)
        for kind, startup, per_byte, count in kinds
        for n in range(count)
    ]
    return Cluster(Path("documented devices"), Network(), tuple(targets))
