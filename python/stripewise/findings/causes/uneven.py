"""Ranks that move unequal shares: the others wait."""

from __future__ import annotations

import numpy as np

from ...cluster import Cluster
from ...units import format_size
from .. import choices
from ..facts import FileFacts, RunFacts
from ..finding import Finding
from ..price import load_of, saved


def uneven_ranks(file: FileFacts, run: RunFacts, cluster: Cluster) -> Finding | None:
    """Of a file of an MPI job whose ranks are known."""
    if not file.records.is_ranked or run.processes < 2:
        return None
    # Aggregators move what all have asked for.
    if any(each.collective for each in file.layers):
        return None
    moved = np.bincount(file.rank, weights=file.size)
    mean = float(moved.sum()) / run.processes
    ratio = float(moved.max()) / mean
    if moved.sum() < choices.UNEVEN_BYTES or ratio < choices.UNEVEN:
        return None
    now = load_of(file.asked, cluster)
    then = load_of(file.asked.shared(run.processes), cluster)
    busiest = int(file.ranks[int(moved.argmax())])
    return Finding(
        "uneven",
        "one rank does all I/O" if len(file.ranks) == 1 else "ranks move unequal shares",
        file.path,
        (
            f"rank {busiest} moves {format_size(int(moved.max()))} of {format_size(int(moved.sum()))}",
            f"that is {ratio:.1f} times the mean of {run.processes} ranks",
        ),
        saved(now, then),
        "against the same requests dealt out to all ranks",
        "let every rank read and write its own part (MPI_File_write_at_all), or deal the parts out evenly",
    )
