"""Sieving: MPI-IO reads, and writes back, whole ranges for the pieces that were asked for."""

from __future__ import annotations

from dataclasses import replace

from ...cluster import Cluster
from ...units import format_size
from .. import choices
from ..facts import FileFacts, RunFacts
from ..finding import Finding
from ..layers import MpiCalls
from ..price import load_of, saved


def sieving(file: FileFacts, run: RunFacts, cluster: Cluster) -> Finding | None:
    """Of a file whose MPI-IO calls are known: its system calls move a multiple of what these asked for."""
    if file.wanted is None:
        return None
    read, written = (int(file.size[file.write == write].sum()) for write in (False, True))
    for op, moved, asked, write in (
        ("reads", read, file.wanted.read, False),
        ("writes", written, file.wanted.written, True),
    ):
        if moved - asked < choices.SIEVED_BYTES or moved < choices.SIEVED * asked:
            continue
        chosen = file.asked.of(file.write == write)
        now, then = load_of(chosen, cluster), load_of(replace(chosen, count=chosen.count * (asked / moved)), cluster)
        times = f", {moved / asked:.1f} times as much" if asked else ", to write parts of what it read"
        return Finding(
            "sieving",
            f"data sieving multiplies {op}",
            file.path,
            (f"MPI-IO {op} {format_size(asked)}, the system calls below move {format_size(moved)}{times}",),
            saved(now, then),
            "against the bytes that were asked for, in requests of the same sizes",
            _advice(next((each for each in file.layers if each.op == op[:-1]), None), write),
        )
    return None


def _advice(calls: MpiCalls | None, write: bool) -> str:
    """What helps: without sieving each piece pays a startup, so only large ones are better off by that."""
    if calls is not None and calls.collective == calls.calls:
        return f"{'write' if write else 'read'} more in each collective call, or in pieces that lie side by side"
    piece = 0 if calls is None or not calls.ranges else calls.bytes // calls.ranges
    if piece > choices.SMALL_BYTES:
        return f"use collective calls, or set the hint romio_ds_{'write' if write else 'read'} to disable"
    return "use collective calls, which join the pieces of all processes"
