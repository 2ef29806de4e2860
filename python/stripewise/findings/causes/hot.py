"""Random reads of which most go to a small part of the file: what an SSD or a cache should hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...cluster import Cluster, Target
from ...units import GRANULE_BYTES, format_size
from .. import choices
from ..cures import on_ssds
from ..facts import FileFacts, RunFacts
from ..finding import Finding
from ..price import is_on_ssds, load_of, saved
from ..strides import is_strided


def _have_room(servers: Sequence[Target], hot_bytes: int) -> bool:
    """For an equal share on each, as they are priced; 0 usable bytes are as many as the file system has."""
    share = -(-hot_bytes // len(servers))
    return all(each.usable_bytes == 0 or each.usable_bytes >= share for each in servers)


def hot_reads(file: FileFacts, run: RunFacts, cluster: Cluster) -> Finding | None:
    """Of the smallest part of the file, in blocks, that most reads begin in."""
    reads = ~file.write
    count = int(reads.sum())
    if count < choices.REQUESTS_MIN or (apart := 1 - float(file.follows[reads].mean())) <= choices.MOST:
        return None
    offset = file.offset[reads]
    if is_strided(file.rank[reads], offset):
        return None
    extent = file.extent
    median = int(np.median(file.size[reads]))
    block = max(-(-extent // choices.BLOCKS), median, GRANULE_BYTES)
    of = offset // block
    touched, heat = np.unique(of, return_counts=True)
    order = np.argsort(-heat, kind="stable")
    needed = int(np.searchsorted(np.cumsum(heat[order]), choices.HOT_READS * count)) + 1
    hot_bytes = needed * block
    # Of fewer reads than blocks any part of them is a small part of the file.
    again = count / len(touched)
    if hot_bytes > choices.HOT_BYTES * extent or again < 2:
        return None
    hot = np.zeros(len(file.size), dtype=bool)
    hot[reads] = np.isin(of, touched[order[:needed]])
    price, basis = None, "the cluster has no SSDs beside disks"
    if cluster.sservers and cluster.hservers and not _have_room(cluster.sservers, hot_bytes):
        basis = "the cluster's SSDs have no room for these blocks"
    elif cluster.sservers and cluster.hservers:
        now = load_of(file.asked.of(reads), cluster)
        then = load_of(file.asked.of(hot), cluster, cluster.sservers) + load_of(file.asked.of(reads & ~hot), cluster)
        price, basis = saved(now, then), "against these blocks on the SSDs alone"
        if is_on_ssds(file.asked.of(hot), cluster):
            return None
    cure = on_ssds(file, run, cluster, file.asked.of(hot), "the hot part")
    return Finding(
        "hot_region",
        "random reads of a hot region",
        file.path,
        (
            f"{count:,} reads of {format_size(median)} (median), {apart:.0%} of them not behind the one before",
            f"{choices.HOT_READS:.0%} begin in {hot_bytes / extent:.1%} of the file ({format_size(hot_bytes)})",
            f"blocks of {format_size(block)} are read {again:.1f} times on average",
        ),
        price,
        basis,
        f"{cure.words}, or keep it in memory" if cure.words else "keep the hot part in memory",
        cure.command,
    )
