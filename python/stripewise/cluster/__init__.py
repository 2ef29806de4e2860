"""The cluster: its targets and network, and the file that says both (`cluster`); its tables `calibration`, `device`."""

from .cluster import (
    CLASSES,
    KINDS,
    PER_BYTE_S_MAX,
    STARTUP_S_MAX,
    STATES,
    TARGETS_MAX,
    Cluster,
    Network,
    Target,
    cluster_from_mapping,
    cluster_text,
    data_bytes,
    read_cluster,
)

__all__ = [
    "CLASSES",
    "KINDS",
    "PER_BYTE_S_MAX",
    "STARTUP_S_MAX",
    "STATES",
    "TARGETS_MAX",
    "Cluster",
    "Network",
    "Target",
    "cluster_from_mapping",
    "cluster_text",
    "data_bytes",
    "read_cluster",
]
