"""Small reads in no order and of no preferred place: the disks' heads move for each of them."""

from __future__ import annotations

import numpy as np

from ...cluster import Cluster
from ...units import format_size
from .. import choices
from ..facts import FileFacts, RunFacts
from ..finding import Finding
from ..price import load_of, saved


def scattered_reads(file: FileFacts, run: RunFacts, cluster: Cluster) -> Finding | None:
    """Of reads that go backward as often as a random order would."""
    reads = ~file.write
    if int(reads.sum()) < choices.REQUESTS_MIN:
        return None
    median = int(np.median(file.size[reads]))
    rank, offset = file.rank[reads], file.offset[reads]
    same = rank[1:] == rank[:-1]
    backward = float((offset[1:] < offset[:-1])[same].mean()) if same.any() else 0.0
    if median >= choices.SMALL_BYTES or float(file.follows[reads].mean()) >= choices.MOST or backward < 0.25:
        return None
    now = load_of(file.asked.of(reads), cluster)
    then = load_of(file.asked.of(reads).joined(choices.JOINED_BYTES), cluster)
    return Finding(
        "scattered",
        "small reads in no order",
        file.path,
        (f"{int(reads.sum()):,} reads of {format_size(median)} (median), {backward:.0%} of them backward",),
        saved(now, then),
        f"against the same bytes in order, in requests of {format_size(choices.JOINED_BYTES)}",
        "sort what is read by place, read larger parts at once, or put the file on SSDs",
        f"stripewise plan {run.source} --cluster cluster.toml --policy best -o plan.json",
    )
