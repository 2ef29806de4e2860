"""How the collective calls of a run were carried out, and what they took beside I/O: processes waiting for each other
and bytes between them (the shares of figure 3.6).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..pattern.records import FileRecords
from .calls import Calls, Int

#: Of requests: so many within what their own process asked for are no others' bytes.
MOST = 0.5


@dataclass(frozen=True)
class CarriedOut:
    """Of collective calls, by turns: from when the last process had come until all had left, seconds."""

    turns: int
    turns_s: float
    #: The part of it in which a process was in I/O, of the one that was in it longest.
    io_s: float
    #: Processes with requests on descriptors, and whether most of these lie in what the process itself had asked for.
    movers: int
    are_own: bool

    @property
    def exchange_s(self) -> float:
        """What is no I/O."""
        return max(0.0, self.turns_s - self.io_s)

    @property
    def is_dear(self) -> bool:
        """Whether aggregators took longer to get at the bytes of all than to move them."""
        return not self.are_own and self.exchange_s > self.io_s

    @property
    def text(self) -> str:
        """For people."""
        return "each process by itself" if self.are_own else f"joined, {self.movers} process(es) moved the bytes of all"


def carried_out(calls: Calls, below: FileRecords | None) -> CarriedOut | None:
    """How collective calls were carried out; None of other calls, and where the trace has no requests below them."""
    if not calls.is_collective or not calls.is_ranked or below is None or not below.is_ranked:
        return None
    inside, call = _calls_of(calls, below)
    if not len(inside):
        return None
    turn = _turns(calls)
    begin, end = np.zeros(int(turn.max()) + 1, dtype=np.int64), np.zeros(int(turn.max()) + 1, dtype=np.int64)
    begin[turn] = calls.start_ns
    np.maximum.at(begin, turn, calls.start_ns)
    end[turn] = calls.end_ns
    np.maximum.at(end, turn, calls.end_ns)
    # Who comes early waits, or is done before the others come.
    since = np.maximum(below.start_ns[inside], begin[turn[call]])
    spent_s = (below.end_ns[inside] - since).clip(min=0) / 1e9
    each, of = np.unique(turn[call] * calls.processes + calls.rank[call], return_inverse=True)
    longest = np.zeros(len(begin))
    np.maximum.at(longest, each // calls.processes, np.bincount(of, weights=spent_s))
    own = (calls.low[call] <= below.offset[inside]) & (below.offset[inside] + below.size[inside] <= calls.high[call])
    return CarriedOut(
        len(begin), float((end - begin).clip(min=0).sum()) / 1e9, float(longest.sum()),
        len(np.unique(calls.rank[call])), bool(own.mean() > MOST),
    )  # fmt: skip


def _turns(calls: Calls) -> Int:
    """Which turn each call is of: those of different processes that were under way at once.

    Not the n-th of each: a process that asks for nothing in a turn leaves no call there.
    """
    turn = np.empty(len(calls), dtype=np.int64)
    number, until = -1, -1
    for place, (start, end) in enumerate(zip(calls.start_ns.tolist(), calls.end_ns.tolist(), strict=True)):
        if number < 0 or start >= until:
            number, until = number + 1, end
        until = min(until, end)
        turn[place] = number
    return turn


def _calls_of(calls: Calls, below: FileRecords) -> tuple[Int, Int]:
    """The requests that began within a call of their rank, and which call that is."""
    inside, of = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, each in enumerate(calls.ranks.tolist()):
        mine, made = np.flatnonzero(calls.rank == number), np.flatnonzero(below.rank == each)
        call = mine[np.searchsorted(calls.start_ns[mine], below.start_ns[made], side="right") - 1]
        found = (calls.start_ns[call] <= below.start_ns[made]) & (below.start_ns[made] < calls.end_ns[call])
        inside.append(made[found])
        of.append(call[found])
    return np.concatenate(inside), np.concatenate(of)
