"""The cluster: its targets and network (`targets`), and the file that describes them (`form`)."""

from .form import (
    CLASSES,
    KINDS,
    PER_BYTE_S_MAX,
    STARTUP_S_MAX,
    STATES,
    TARGETS_MAX,
    cluster_from_mapping,
    cluster_text,
    read_cluster,
)
from .targets import Cluster, Network, Target

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
    "read_cluster",
]
