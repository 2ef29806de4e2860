"""Runs of spans as pieces of a layout, once it is known on which servers, or kinds of servers, the spans lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....cluster import Cluster
from ....layout import STRIPES_MAX, Stripes, share_bytes
from ....model.general import Int
from ....units import round_up
from ..expected.spans import Spans
from ..proven.kinds import Kinds
from .case import Piece


def whole(spans: Spans, server: Int, cluster: Cluster) -> list[Piece]:
    """Every run with its spans' servers as a cycle, one server's as one stripe."""
    names = [target.name for target in cluster.active]
    first = np.flatnonzero(np.diff(spans.run, prepend=-1)).tolist()
    pieces: list[Piece] = []
    for run, (low, high) in enumerate(zip(first, [*first[1:], len(spans.run)], strict=True)):
        widths: list[tuple[int, int]] = []
        for span in range(low, high):
            at, width = int(server[span]), int(spans.high[span] - spans.low[span])
            if widths and (widths[-1][0] == at or at in {each for each, _ in widths}):
                # A cycle names a server once: a span between two of its own goes with the one before it.
                widths[-1] = (widths[-1][0], widths[-1][1] + width)
            else:
                widths.append((at, width))
        length = int(spans.slots[run] * spans.slot_bytes[run])
        stripes = (
            ((names[widths[0][0]], length),) if len(widths) == 1 else tuple((names[at], width) for at, width in widths)
        )
        file, start = int(spans.file[run]), int(spans.start[run])
        last = pieces[-1] if pieces else None
        if last and last.file == file and len(widths) == len(last.stripes) == 1 and stripes[0][0] == last.stripes[0][0]:
            pieces[-1] = replace(last, length=last.length + length, stripes=((stripes[0][0], last.length + length),))
        else:
            pieces.append(Piece(file, start, length, stripes))
    return pieces


def striped(spans: Spans, chosen: Int, kinds: Kinds, cluster: Cluster, stripe_bytes: int) -> list[Piece]:
    """Every run with its spans on all servers of their kinds, beginning with the one that holds least."""
    names: list[list[str]] = [[] for _ in range(kinds.count)]
    for target, kind in zip(cluster.active, kinds.of.tolist(), strict=True):
        names[kind].append(target.name)
    held = dict.fromkeys((target.name for target in cluster.active), 0)
    first = np.flatnonzero(np.diff(spans.run, prepend=-1)).tolist()
    pieces: list[Piece] = []
    alone = -1
    for run, (low, high) in enumerate(zip(first, [*first[1:], len(spans.run)], strict=True)):
        file, start = int(spans.file[run]), int(spans.start[run])
        length = int(spans.slots[run] * spans.slot_bytes[run])
        widths = widths_of(chosen[low:high].tolist(), (spans.high - spans.low)[low:high].tolist())
        before = pieces[-1] if pieces else None
        if len(widths) == 1 and before and before.file == file and alone in widths:
            pieces[-1] = replace(before, length=before.length + length)
            for name, share in share_bytes(before.stripes, length).items():
                held[name] += share
            continue
        made: Stripes = ()
        for kind, width in widths.items():
            members = _from_least(names[kind], held)
            each = stripe_bytes if len(widths) == 1 else max(stripe_bytes, round_up(-(-width // len(members))))
            made += tuple(
                (name, each if len(widths) == 1 else min(each, width - number * each))
                for number, name in enumerate(members)
                if len(widths) == 1 or number * each < width
            )
        for name, share in share_bytes(made, length).items():
            held[name] += share
        alone = next(iter(widths)) if len(widths) == 1 else -1
        pieces.append(Piece(file, start, length, made))
    return pieces


def widths_of(kinds: list[int], widths: list[int]) -> dict[int, int]:
    """The bytes of a slot by kind, in the order of the cycle; a kind that comes back goes with the one before it."""
    found: dict[int, int] = {}
    last = -1
    for kind, width in zip(kinds, widths, strict=True):
        last = last if kind in found else kind
        found[last] = found.get(last, 0) + width
    return found


def _from_least(names: list[str], held: dict[str, int]) -> list[str]:
    """The servers in turn, from the one that holds least on."""
    first = min(range(len(names)), key=lambda number: held[names[number]])
    return [*names[first:], *names[:first]][:STRIPES_MAX]
