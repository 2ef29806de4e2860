"""Small requests of many processes that lie between each other in one file: stripes and locks go from hand to hand."""

from __future__ import annotations

import numpy as np

from ...cluster import Cluster
from ...units import format_size
from .. import choices
from ..facts import FileFacts, RunFacts
from ..finding import Finding
from ..mpi_hints import already, set_hint
from ..price import load_of, saved


def interleaved_requests(file: FileFacts, run: RunFacts, cluster: Cluster) -> Finding | None:
    """Of writes, or of reads where most of those do not count."""
    for write in (True, False):
        chosen = file.write == write
        if int(chosen.sum()) < choices.REQUESTS_MIN or len(np.unique(file.rank[chosen])) < 2:
            continue
        size, offset, rank = file.size[chosen], file.offset[chosen], file.rank[chosen]
        median = int(np.median(size))
        order = np.argsort(offset, kind="stable")
        meets = (offset[order][1:] == (offset + size)[order][:-1]) & (rank[order][1:] != rank[order][:-1])
        between = float(meets.sum()) / len(size)
        if median > choices.SMALL_BYTES or between < choices.MOST:
            continue
        block = choices.JOINED_BYTES
        pairs = np.unique(np.column_stack([offset // block, rank]), axis=0)
        blocks, owners = np.unique(pairs[:, 0], return_counts=True)
        shared = int((owners > 1).sum())
        op = "writes" if write else "reads"
        now = load_of(file.asked.of(chosen), cluster)
        then = load_of(file.asked.of(chosen).joined(block), cluster)
        return Finding(
            "interleaved",
            f"small {op} of {len(np.unique(rank))} {file.who_all} interleave",
            file.path,
            (
                f"{len(size):,} {op} of {format_size(median)} (median)",
                f"{between:.0%} begin where one of another {file.who} ends",
                f"{shared:,} of {len(blocks):,} blocks of {format_size(block)} are touched by more than one {file.who}",
            ),
            saved(now, then),
            f"against the same bytes in requests of {format_size(block)}",
            _advice(file, write),
        )
    return None


def _advice(file: FileFacts, write: bool) -> str:
    """What has aggregators join the requests; the hint does so for collective calls alone."""
    op = "write" if write else "read"
    key, use = f"romio_cb_{op}", f"use collective {op}s (MPI_File_{op}_all)"
    if (told := already(file.hints, key, "enable")) is None:
        return f"{use}, or {set_hint(file.hints, key, 'enable')}, so that aggregators join them"
    calls = next((each for each in file.layers if each.op == op), None)
    if calls is not None and calls.collective == calls.calls:
        return f"{op} more in each collective call: {told}"
    return f"{use}, so that aggregators join them: {told}, and is for such calls alone"
