"""Small requests that go forward over gaps: records of a table, or one variable of many, picked out of a file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...cluster import Cluster
from ...units import format_size
from .. import choices
from ..cures import copied_in_order, on_ssds
from ..facts import FileFacts, RunFacts
from ..finding import Finding
from ..joined import joined


def gapped_requests(file: FileFacts, run: RunFacts, cluster: Cluster) -> Finding | None:
    """Of reads, or of writes, most of which begin behind the end of the one before of the same process."""
    for write in (False, True):
        chosen = file.write == write
        count = int(chosen.sum())
        if count < choices.REQUESTS_MIN:
            continue
        size, rank, offset = file.size[chosen], file.rank[chosen], file.offset[chosen]
        median = int(np.median(size))
        # Before a small one, whatever stands there.
        is_step = (rank[1:] == rank[:-1]) & (size[1:] <= choices.SMALL_BYTES)
        gap = (offset[1:] - (offset + size)[:-1])[is_step]
        forward = float((gap > 0).mean()) if len(gap) else 0.0
        if median > choices.SMALL_BYTES or forward < choices.MOST:
            continue
        op = "writes" if write else "reads"
        found = joined(file, run, cluster, chosen, op)
        skipped = int(np.median(gap[gap > 0]))
        advice, command = _cure(file, run, cluster, gap[gap > 0], found.small)
        return Finding(
            "gaps",
            f"small {op} with gaps between them",
            file.path,
            (
                found.evidence,
                f"{forward:.0%} begin behind the end of the one before, {format_size(skipped)} (median)",
            ),
            found.price,
            f"against {found.bytes_text} in one piece, in requests of {format_size(choices.JOINED_BYTES)}",
            advice,
            command,
            measured_s=found.measured_s,
        )
    return None


def _cure(
    file: FileFacts, run: RunFacts, cluster: Cluster, gaps: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_]
) -> tuple[str, str]:
    """Collective calls for a file that MPI-IO has used; copies for reads whose gaps are nearly all of one size, SSDs
    for others.
    """
    write = bool(file.write[chosen].any())
    advice = f"keep what is {'written' if write else 'read'} together next to each other in the file"
    advice = f"{advice} (chunks, another order of dimensions)"
    if file.wanted is not None:
        advice += ", or use collective calls, which join pieces"
    is_regular = np.unique(gaps, return_counts=True)[1].max() >= choices.STRIDED * len(gaps)
    is_copied = is_regular and not write
    cure = copied_in_order(run, cluster) if is_copied else on_ssds(file, run, cluster, file.asked.of(chosen))
    return cure.after(advice, "; or "), cure.command
