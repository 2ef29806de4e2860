"""Sieving: MPI-IO reads, and writes back, whole ranges for the pieces that were asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...cluster import Cluster
from ...units import GRANULE_BYTES, format_size
from .. import choices
from ..facts import FileFacts, RunFacts
from ..finding import Finding
from ..layers import MpiCalls
from ..mpi_hints import FileHints, already, set_hint
from ..price import Asked, Seconds, load_of, saved


def sieving(file: FileFacts, run: RunFacts, cluster: Cluster) -> Finding | None:
    """Of a file whose MPI-IO calls are known: its system calls move a multiple of what these asked for.

    Of its reads, its writes or both, which processes do in turn; each has its cure.
    """
    if (found := list(_sieved(file, cluster))) == []:
        return None
    dearest = max(found, key=lambda each: each.price.high if each.price is not None else 0.0)
    facts = file if any(each.title == "writes" for each in found) else file.of(False)
    prices = [each.price for each in found if each.price is not None]
    cures = list(dict.fromkeys(each.advice for each in found))
    if len(cures) > 1:
        cures = [f"for {each.title}: {each.advice}" for each in found]
    return replace(
        dearest,
        advice="; ".join(cures),
        title=f"data sieving multiplies {' and '.join(each.title for each in found)}",
        evidence=tuple(line for each in found for line in each.evidence),
        price=Seconds(sum(each.low for each in prices), sum(each.high for each in prices)),
        measured_s=None if facts is None else run.measured_s(facts),
    )


def _sieved(file: FileFacts, cluster: Cluster) -> Iterator[Finding]:
    """A finding of reads and one of writes, where they are sieved; its title is the word for these."""
    if file.wanted is None:
        return
    read, written = (int(file.size[file.write == write].sum()) for write in (False, True))
    # What was read to be put back changed is the writes', where the trace tells whose it was.
    put_back = min(read, sum(each.read_bytes for each in file.layers if each.op == "write"))
    reads, writes = (file.asked.of(file.write == write) for write in (False, True))
    for op, moved, asked, write in (
        ("reads", read - put_back, file.wanted.read, False),
        ("writes", written + put_back, file.wanted.written, True),
    ):
        if moved - asked < choices.SIEVED_BYTES or moved < choices.SIEVED * asked:
            continue
        if write:
            now = load_of(writes, cluster) + load_of(_share(reads, put_back, read), cluster)
            then = load_of(_share(writes, min(asked, written), written), cluster)
        else:
            now, then = (load_of(_share(reads, each, read), cluster) for each in (moved, asked))
        times = f", {moved / asked:.1f} times as much" if asked else ", to write parts of what it read"
        parts = f": {format_size(put_back)} read first, {format_size(written)} written" if write and put_back else ""
        yield Finding(
            "sieving",
            op,
            file.path,
            (f"MPI-IO {op} {format_size(asked)}, the system calls below move {format_size(moved)}{times}{parts}",),
            saved(now, then),
            "against the bytes that were asked for, in requests of the same sizes",
            _advice(next((each for each in file.layers if each.op == op[:-1]), None), write, file.hints),
        )


def _share(asked: Asked, part: int, whole: int) -> Asked:
    """Requests of which so many bytes of the whole count."""
    return replace(asked, count=asked.count * (part / whole if whole else 0.0))


def _advice(calls: MpiCalls | None, write: bool, hints: FileHints | None = None) -> str:
    """What helps: without sieving each piece pays a startup, so only large ones are better off by that. Reads that come
    again are served from copies without sieving, where a piece is a page at least.
    """
    op = "write" if write else "read"
    if calls is not None and calls.collective == calls.calls:
        more = f"{op} more in each collective call, or in pieces that lie side by side"
        key = f"romio_cb_{op}"
        if (told := already(hints, key, "enable")) is not None:
            return f"{more}: {told}"
        return f"{set_hint(hints, key, 'enable')}, so that aggregators join the pieces; else {more}"
    piece = 0 if calls is None or not calls.ranges else calls.bytes // calls.ranges
    copies = (
        "" if write or piece < GRANULE_BYTES else "; where later runs read the same, 'stripewise replicate' copies it"
    )
    if piece > choices.SMALL_BYTES:
        key = f"romio_ds_{op}"
        if (told := already(hints, key, "disable")) is not None:
            return f"use collective calls ({told}){copies}"
        return f"use collective calls, or {set_hint(hints, key, 'disable')}{copies}"
    return f"use collective calls, which join the pieces of all processes{copies}"
