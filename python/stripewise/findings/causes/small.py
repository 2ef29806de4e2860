"""Small requests one behind the other: a buffer of the program's would make one of many."""

from __future__ import annotations

import numpy as np

from ...cluster import Cluster
from ...units import format_size
from .. import choices
from ..facts import FileFacts, RunFacts
from ..finding import Finding
from ..joined import joined, small_of

#: The cure by what the program reaches the file.
OF_A_STREAM = (
    f"give it a buffer of {format_size(choices.JOINED_BYTES)} (setvbuf, buffering= of open, HDF5's sieve buffer)"
)
OF_MPI_IO = (
    "ask MPI-IO for more in one call: more bytes, a derived datatype that holds several pieces, or a collective call "
    "(MPI_File_write_at_all, MPI_File_read_at_all), which joins those of all ranks"
)


def advice_on(file: FileFacts) -> str:
    """The cure, by how its program reaches the file."""
    return OF_MPI_IO if file.wanted is not None else OF_A_STREAM


def small_requests(file: FileFacts, run: RunFacts, cluster: Cluster) -> Finding | None:
    """Of a file most of whose requests are small and follow the one before."""
    median = int(np.median(file.size))
    if len(file.size) < choices.REQUESTS_MIN or median > choices.SMALL_BYTES:
        return None
    everything = np.ones(len(file.size), dtype=bool)
    in_order = float(file.follows[small_of(file, everything)].mean())
    if in_order < choices.MOST:
        return None
    found = joined(file, run, cluster, everything, "requests")
    # Counters know sizes, not order.
    order = "" if run.is_estimated else f", {in_order:.0%} begin where the last ended"
    return Finding(
        "small_requests",
        "small requests" if run.is_estimated else "small requests one behind the other",
        file.path,
        (f"{found.evidence}{order}",),
        found.price,
        f"against {found.bytes_text} in requests of {format_size(choices.JOINED_BYTES)}",
        advice_on(file),
        measured_s=found.measured_s,
    )
