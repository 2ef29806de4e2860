"""Small requests of many processes that lie between each other in one file: stripes and locks go from hand to hand."""

from __future__ import annotations

import numpy as np

from ...cluster import Cluster
from ...units import format_size
from .. import choices
from ..cures import Cure, copied_in_order
from ..facts import FileFacts, RunFacts
from ..finding import Finding
from ..joined import joined, small_of
from ..mpi_hints import already, set_hint
from ..strides import is_strided


def interleaved_requests(file: FileFacts, run: RunFacts, cluster: Cluster) -> Finding | None:
    """Of writes, or of reads where most of those do not count."""
    for write in (True, False):
        chosen = file.write == write
        if int(chosen.sum()) < choices.REQUESTS_MIN or int(np.median(file.size[chosen])) > choices.SMALL_BYTES:
            continue
        small = small_of(file, chosen)
        size, offset, rank = file.size[small], file.offset[small], file.rank[small]
        processes = len(np.unique(rank))
        order = np.argsort(offset, kind="stable")
        meets = (offset[order][1:] == (offset + size)[order][:-1]) & (rank[order][1:] != rank[order][:-1])
        between = float(meets.sum()) / len(size)
        if processes < 2 or between < choices.MOST:
            continue
        block = choices.JOINED_BYTES
        pairs = np.unique(np.column_stack([offset // block, rank]), axis=0)
        blocks, owners = np.unique(pairs[:, 0], return_counts=True)
        shared = int((owners > 1).sum())
        op = "writes" if write else "reads"
        found = joined(file, run, cluster, chosen, op)
        cure = Cure()
        if not is_mpi_io(file) and not write and is_strided(rank, offset):
            cure = copied_in_order(run, cluster)
        advice = _advice(file, write) if is_mpi_io(file) else _advice_to_posix(write)
        return Finding(
            "interleaved",
            f"small {op} of {processes} {file.who_all} interleave",
            file.path,
            (
                found.evidence,
                f"{between:.0%} begin where one of another {file.who} ends",
                f"{shared:,} of {len(blocks):,} blocks of {format_size(block)} are touched by more than one {file.who}",
            ),
            found.price,
            f"against {found.bytes_text} in requests of {format_size(block)}",
            cure.after(advice, "; or "),
            cure.command,
            measured_s=found.measured_s,
        )
    return None


def is_mpi_io(file: FileFacts) -> bool:
    """Whether MPI-IO has used the file: the trace has its calls, or hints of it."""
    return file.wanted is not None or file.hints is not None


def _advice(file: FileFacts, write: bool) -> str:
    """What has aggregators join the requests; the hint does so for collective calls alone."""
    op = "write" if write else "read"
    key, use = f"romio_cb_{op}", f"use collective {op}s (MPI_File_{op}_all)"
    calls = next((each for each in file.layers if each.op == op), None)
    are_collective = calls is not None and calls.collective == calls.calls
    if (told := already(file.hints, key, "enable")) is None:
        hint = set_hint(file.hints, key, "enable")
        return f"{hint if are_collective else f'{use}, or {hint}'}, so that aggregators join them"
    if are_collective:
        return f"{op} more in each collective call: {told}"
    return f"{use}, so that aggregators join them: {told}, and is for such calls alone"


def _advice_to_posix(write: bool) -> str:
    """What a program without MPI-IO can do."""
    op = "write" if write else "read"
    return f"have each process {op} a contiguous part of the file, in requests of {format_size(choices.JOINED_BYTES)}"
