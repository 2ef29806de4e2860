"""A collective buffer that is too small: few processes move what all asked for, in pieces of the buffer's size.

Two-phase I/O of ROMIO and OMPIO: every process opens the file, only aggregators read and write, each a range of its own
from front to back, `cb_buffer_size` bytes at a time, OMPIO half of that. A program whose first process does all I/O
opens the file in that one alone; one that made no call of MPI-IO, in a trace that would have them, has no such buffer.
Where a larger one was in force, it is not the buffer that made the requests small.
"""

from __future__ import annotations

import numpy as np

from ...cluster import Cluster
from ...units import format_size
from .. import choices
from ..facts import FileFacts, RunFacts
from ..finding import Finding
from ..mpi_hints import FileHints, set_hint
from ..price import load_of, saved


def small_collective_buffer(file: FileFacts, run: RunFacts, cluster: Cluster) -> Finding | None:
    """Of the buffer that the aggregators' requests show."""
    few = len(file.ranks)
    if run.knows_mpi and file.wanted is None:
        return None
    # Where the calls of MPI-IO are known, they tell whether any was collective.
    if file.layers and not any(each.collective for each in file.layers):
        return None
    if len(file.size) < choices.REQUESTS_MIN or file.openers < 2 or few > file.openers * choices.MOST:
        return None
    sizes, counts = np.unique(file.size, return_counts=True)
    buffer = int(sizes[counts.argmax()])
    alike = float(counts.max()) / len(file.size)
    in_order = float(file.follows.mean())
    if buffer >= choices.JOINED_BYTES or alike < choices.NEARLY_ALL or in_order < choices.NEARLY_ALL:
        return None
    is_ompio = file.hints is not None and file.hints.is_ompio
    in_force = _in_force(file.hints)
    if in_force is not None and in_force > (2 * buffer if is_ompio else buffer):
        return None
    now = load_of(file.asked, cluster)
    then = load_of(file.asked.joined(choices.COLLECTIVE_BUFFER_BYTES), cluster)
    size = format_size(choices.COLLECTIVE_BUFFER_BYTES)
    wanted = f"{choices.COLLECTIVE_BUFFER_BYTES} ({size}, ROMIO's default) or more"
    if is_ompio:
        wanted = f"{2 * choices.COLLECTIVE_BUFFER_BYTES} (Open MPI's default) or more, of which requests have half"
    return Finding(
        "collective_buffer",
        f"a collective buffer of {format_size(buffer)}",
        file.path,
        (
            f"{file.openers} processes opened the file, {few} moved all bytes, as aggregators of collective calls do",
            f"{alike:.0%} of {len(file.size):,} requests are of {format_size(buffer)}, {in_order:.0%} follow the last",
        ),
        saved(now, then),
        f"against a buffer of {size}",
        set_hint(file.hints, "cb_buffer_size", wanted),
    )


def _in_force(hints: FileHints | None) -> int | None:
    """Bytes of the smallest buffer in force, or given where the MPI library tells of none; None: not known."""
    key = "cb_buffer_size"
    sizes = () if hints is None else hints.in_force.get(key, hints.given.get(key, ()))
    return min(map(int, sizes)) if sizes and all(_is_size(each) for each in sizes) else None


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20
