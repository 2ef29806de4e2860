"""Small requests that go forward over gaps: records of a table, or one variable of many, picked out of a file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...cluster import Cluster
from ...units import format_size
from .. import choices
from ..facts import FileFacts, RunFacts
from ..finding import Finding
from ..price import is_on_ssds, load_of, saved


def gapped_requests(file: FileFacts, run: RunFacts, cluster: Cluster) -> Finding | None:
    """Of reads, or of writes, most of which begin behind the end of the one before of the same process."""
    for write in (False, True):
        chosen = file.write == write
        count = int(chosen.sum())
        if count < choices.REQUESTS_MIN:
            continue
        size, rank, offset = file.size[chosen], file.rank[chosen], file.offset[chosen]
        median = int(np.median(size))
        gap = (offset[1:] - (offset + size)[:-1])[rank[1:] == rank[:-1]]
        forward = float((gap > 0).mean()) if len(gap) else 0.0
        if median > choices.SMALL_BYTES or forward < choices.MOST:
            continue
        op = "writes" if write else "reads"
        now = load_of(file.asked.of(chosen), cluster)
        then = load_of(file.asked.of(chosen).joined(choices.JOINED_BYTES), cluster)
        skipped = int(np.median(gap[gap > 0]))
        return Finding(
            "gaps",
            f"small {op} with gaps between them",
            file.path,
            (
                f"{count:,} {op} of {format_size(median)} (median)",
                f"{forward:.0%} begin behind the end of the one before, {format_size(skipped)} (median)",
            ),
            saved(now, then),
            f"against the same bytes in one piece, in requests of {format_size(choices.JOINED_BYTES)}",
            _advice(file, gap[gap > 0], write),
            "" if is_on_ssds(file.asked.of(chosen), cluster) else run.planned(cluster),
        )
    return None


def _advice(file: FileFacts, gaps: npt.NDArray[np.int64], write: bool) -> str:
    """Collective calls for a file that MPI-IO has used, and copies for reads whose gaps are nearly all of one size."""
    advice = f"keep what is {'written' if write else 'read'} together next to each other in the file"
    advice = f"{advice} (chunks, another order of dimensions)"
    if file.wanted is not None:
        advice += ", or use collective calls, which join pieces"
    if not write and np.unique(gaps, return_counts=True)[1].max() >= choices.STRIDED * len(gaps):
        advice += "; 'stripewise replicate TRACE' shows what a copy in the order of the reads gains"
    return advice
