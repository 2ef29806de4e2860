"""The same bytes read many times by one process: chunks larger than what is wanted of them, or a cache too small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...cluster import Cluster
from ...units import format_size
from .. import choices
from ..facts import FileFacts, RunFacts
from ..finding import Finding
from ..price import load_of, saved


def reread(file: FileFacts, _run: RunFacts, cluster: Cluster) -> Finding | None:
    """Of reads, each process for itself: that several read the same once is another matter."""
    reads = ~file.write
    read = int(file.size[reads].sum())
    if read < choices.REREAD_BYTES:
        return None
    distinct = _distinct_bytes(file)
    if read - distinct < choices.REREAD_BYTES or read < choices.REREAD * distinct:
        return None
    chosen = file.asked.of(reads)
    once = replace(chosen, count=chosen.count * (distinct / read))
    return Finding(
        "reread",
        "the same bytes are read again and again",
        file.path,
        (
            f"{format_size(read)} read of {format_size(distinct)} that a {file.who} reads, {read / distinct:.1f} times "
            "each on average",
            f"{int(reads.sum()):,} reads of {format_size(int(np.median(file.size[reads])))} (median)",
        ),
        saved(load_of(chosen, cluster), load_of(once, cluster)),
        "against reading them once, in requests of the same sizes",
        "keep what was read in memory; with HDF5, for a chunked dataset a chunk cache (rdcc_nbytes) that holds all "
        "chunks of a selection, for a contiguous one chunks in the shape that is read",
    )


def _distinct_bytes(file: FileFacts) -> int:
    """Bytes that processes read at least once, added up over processes."""
    rows = np.flatnonzero(~file.write)
    order = rows[np.lexsort((file.offset[rows], file.rank[rows]))]
    rank, begin = file.rank[order], file.offset[order]
    end = begin + file.size[order]
    firsts = np.flatnonzero(np.diff(rank, prepend=-1))
    found = 0
    for low, high in zip(firsts.tolist(), [*firsts[1:].tolist(), len(order)], strict=True):
        reached = np.maximum.accumulate(end[low:high])
        before = np.concatenate([[begin[low]], reached[:-1]])
        found += int(np.maximum(0, end[low:high] - np.maximum(begin[low:high], before)).sum())
    return found
