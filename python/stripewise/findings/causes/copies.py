"""Writes of files that have copies: each one of a copied block goes to the file's home and to its copies, or leaves
them stale there.
"""

from __future__ import annotations

import shlex

from ...units import format_size
from ..facts import FileFacts, RunFacts
from ..finding import Finding


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
        shlex.join(["stripewise", "store", "replica", "rm", copies.store, file.path]),
    )
