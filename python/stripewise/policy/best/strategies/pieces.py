"""Runs of spans as pieces of a layout, once it is known on which servers, or kinds of servers, the spans lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....cluster import Cluster
from ....layout import STRIPES_MAX, Stripes, share_bytes
from ....model.general import Float, Int
from ....units import format_size, round_up
from ..expected.spans import Spans
from ..proven.kinds import Kinds
from ..regions.explain import RUNNERS_UP
from ..regions.layout import named
from .case import Piece

#: Fewer requests than this are hardly any.
HARDLY = 0.05


@dataclass(frozen=True)
class Joined:
    """A piece and the runs, from `first` to before `end`, of the spans that it is made of."""

    piece: Piece
    first: int
    end: int

    def longer(self, length: int, stripes: Stripes) -> Joined:
        """With the next run, so many bytes more."""
        return Joined(replace(self.piece, length=self.piece.length + length, stripes=stripes), self.first, self.end + 1)


def whole(spans: Spans, server: Int, cluster: Cluster) -> list[Joined]:
    """Every run with its spans' servers as a cycle, one server's as one stripe."""
    names = [target.name for target in cluster.active]
    first = np.flatnonzero(np.diff(spans.run, prepend=-1)).tolist()
    pieces: list[Joined] = []
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
        last = pieces[-1].piece if pieces else None
        if last and last.file == file and len(widths) == len(last.stripes) == 1 and stripes[0][0] == last.stripes[0][0]:
            pieces[-1] = pieces[-1].longer(length, ((stripes[0][0], last.length + length),))
        else:
            pieces.append(Joined(Piece(file, start, length, stripes), run, run + 1))
    return pieces


def striped(spans: Spans, chosen: Int, kinds: Kinds, cluster: Cluster, stripe_bytes: int) -> list[Joined]:
    """Every run with its spans on all servers of their kinds, beginning with the one that holds least."""
    names: list[list[str]] = [[] for _ in range(kinds.count)]
    for target, kind in zip(cluster.active, kinds.of.tolist(), strict=True):
        names[kind].append(target.name)
    held = dict.fromkeys((target.name for target in cluster.active), 0)
    first = np.flatnonzero(np.diff(spans.run, prepend=-1)).tolist()
    pieces: list[Joined] = []
    alone = -1
    for run, (low, high) in enumerate(zip(first, [*first[1:], len(spans.run)], strict=True)):
        file, start = int(spans.file[run]), int(spans.start[run])
        length = int(spans.slots[run] * spans.slot_bytes[run])
        widths = _widths(chosen[low:high].tolist(), (spans.high - spans.low)[low:high].tolist())
        before = pieces[-1].piece if pieces else None
        if len(widths) == 1 and before and before.file == file and alone in widths:
            pieces[-1] = pieces[-1].longer(length, before.stripes)
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
        pieces.append(Joined(Piece(file, start, length, made), run, run + 1))
    return pieces


def _widths(kinds: list[int], widths: list[int]) -> dict[int, int]:
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


def with_reasons(
    pieces: Sequence[Joined], spans: Spans, priced: Float, chosen: Int, kinds: Kinds, cluster: Cluster
) -> list[Piece]:
    """The pieces, each saying what is expected of it, what that costs where it lies, and on other servers.

    `priced`, of shape (spans, kinds), are seconds of the run; `chosen` is the kind of every span.
    """
    names = kind_names(kinds, cluster)
    here = priced[np.arange(len(chosen)), chosen]
    sums: Float = np.zeros((len(spans.start) + 1, 5 + kinds.count))
    np.add.at(sums, spans.run + 1, np.column_stack([spans.asked, here, priced]))
    sums = np.cumsum(sums, axis=0)
    made = []
    for joined in pieces:
        asked = sums[joined.end] - sums[joined.first]
        where = named(joined.piece.stripes, cluster)
        reason = reason_of(where, asked[:4], float(asked[4]), asked[5:], names)
        made.append(replace(joined.piece, reason=reason))
    return made


def kind_names(kinds: Kinds, cluster: Cluster) -> list[str]:
    """What a server of every kind is called."""
    members = (cluster.active[int(np.flatnonzero(kinds.of == kind)[0])] for kind in range(kinds.count))
    return [f"one {'ssd' if target.is_ssd else target.klass}" for target in members]


def reason_of(where: str, asked: Float, cost_s: float, others_s: Float, names: Sequence[str]) -> str:
    """Why a piece lies where it does: what is expected of it (startups and bytes of reads and writes), what that costs
    there and on one server of every kind, in seconds of the run."""
    reads, writes, read_bytes, written = asked.tolist()
    said = [
        f"{count:.1f} expected {word} of {format_size(round(moved / count))}"
        for count, moved, word in ((reads, read_bytes, "reads"), (writes, written, "writes"))
        if count >= HARDLY
    ]
    if not said:
        return f"{where}: hardly a request expected"
    each = zip(others_s.tolist(), names, strict=True)
    dearer = sorted((seconds, name) for seconds, name in each if seconds > cost_s * (1 + 1e-9))
    rejected = ", ".join(f"{name} {seconds:.4g} s" for seconds, name in dearer[:RUNNERS_UP])
    text = f"{' and '.join(said)}: {where}, {cost_s:.4g} s of the run"
    return text + (f"; rejected: {rejected}" if rejected else "")
