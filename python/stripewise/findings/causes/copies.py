"""Copies that cost more than they gain. A write of a copied block goes to the file's home and to its copies, or leaves
them stale there; reads come from copies even where the home has moved to quicker devices since.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...cluster import Cluster
from ...units import format_size, seconds_text
from .. import choices
from ..cures import without_copies
from ..facts import FileCopies, FileFacts, RunFacts
from ..finding import Finding
from ..price import Asked, Places, is_laid, load_of, saved


def copied_writes(file: FileFacts, run: RunFacts) -> Finding | None:
    """Of a file that was written and has copies now; whether they pay depends on what is read of them."""
    copies, written = run.copies.get(file.path), file.of(True)
    if copies is None or written is None:
        return None
    served = "no read of this run" if file.copied is None else f"{file.copied.reads:,} read(s) of this run"
    stale = f", {format_size(copies.stale_bytes)} of them stale" if copies.stale_bytes else ""
    is_updated = copies.invalidated < copies.replicas
    does = "goes to its home and to the copies, too" if is_updated else "leaves the copies stale where it writes"
    stand = f"{copies.replicas:,} replica{'' if copies.replicas == 1 else 's'} of it, {format_size(copies.bytes)}"
    return Finding(
        "copied_writes",
        "writes of a file that has copies",
        file.path,
        (
            f"{len(written.size):,} writes, {format_size(int(written.size.sum()))} in all; a write of copied blocks "
            f"{does}",
            f"{copies.store} has {stand}{stale}; they served {served}",
        ),
        None,
        "no model has writes that go to copies, too" if is_updated else "reads of what is stale go to the file's home",
        "drop the copies where the file is written more than it is read from them, or make them when it has been "
        "written",
        without_copies(copies.store, file.path),
    )


def slow_copies(file: FileFacts, run: RunFacts, cluster: Cluster) -> Finding | None:
    """Of reads that copies served: slower than from the file's home, both by the model and as measured.

    The store must have these very copies still, and the trace how the home lay. A plain file's home is on devices that
    nobody has described, and a cluster that the user names is not what was measured.
    """
    copies, reads = run.copies.get(file.path), file.only_copied()
    if copies is None or reads is None or len(reads.size) < choices.REQUESTS_MIN or str(cluster.source) != run.store:
        return None
    took_s, there = run.measured_s(reads), _from_copies(reads, copies)
    if took_s is None or there is None or not is_laid(there, cluster) or not is_laid(reads.asked, cluster):
        return None
    now, then = load_of(there, cluster).seconds, load_of(reads.asked, cluster).seconds
    is_slower = all(
        copied_s > choices.SLOWER * home_s
        for copied_s, home_s in ((now.low, then.low), (now.high, then.high), (took_s, then.high))
    )
    if not is_slower or took_s - then.high < choices.SLOWER_S:
        return None
    return Finding(
        "slow_copies",
        "reads from copies that are slower than the file's home",
        file.path,
        (
            f"copies served {len(reads.size):,} reads, {format_size(int(reads.size.sum()))}, which took "
            f"{seconds_text(took_s)} s of the {file.who} that waited longest",
            f"by the model {now.text} from where the copies lie, {then.text} from where the file lies",
        ),
        saved(load_of(there, cluster), load_of(reads.asked, cluster)),
        "against the same reads from the file itself",
        "drop the copies: programs then read the file itself",
        without_copies(copies.store, file.path),
        measured_s=took_s,
    )


def _from_copies(reads: FileFacts, copies: FileCopies) -> Asked | None:
    """The reads where copies have served them; None where that is not known."""
    replica, layout = reads.records.replica, copies.layout
    if replica is None or layout is None or not copies.blocks or len(copies.domains) != len(copies.blocks):
        return None
    offset = np.zeros(len(reads.size), dtype=np.int64)
    for number in np.unique(replica).tolist():
        rows = replica == number
        offset[rows] = copies.domains[number] + copies.blocks[number].place(reads.offset[rows])
    return replace(reads.asked, places=Places(offset, layout))
