"""The least makespan of divisible work on kinds of servers, and the prices that prove it.

Cells c with work w_ck (channel-seconds, whichever kind k serves them) and lengths l_c lie on kinds with s_k channels in
all and R_k bytes of room:

    min T   such that   sum_c w_ck x_ck <= s_k T,   sum_c l_c x_ck <= R_k,   sum_k x_ck = 1,   x >= 0

Prices lambda_k of a channel-second (sum_k s_k lambda_k = 1) and pi_k of a byte give, by weak duality, the bound

    g(lambda, pi) = sum_c min_k(lambda_k w_ck + pi_k l_c) - sum_k pi_k R_k <= T

at any prices at all, so what rounding does to them takes nothing from the proof. g is concave and has as many variables
as there are kinds; it is climbed with cutting planes (Kelley 1960), each of which is an assignment of all cells, so the
planes' weights at the end are a fractional assignment that comes near T.

Where a run has phases, T is the sum of theirs, and every phase has a row per kind: w_ck is shared out among the phases
by `share`, and a channel-second has a price in each. That is no bound, since processes may be in different phases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ....model.general import Float, Int

#: Planes at most, and the share of T between bound and planes at which to end.
PLANES_MAX = 80
TOLERANCE = 5e-4
#: The next prices lie so far on the way from the best ones to those that the planes would have.
STEP = 0.7


@dataclass(frozen=True)
class Prices:
    """Of every kind: lambda (per channel-second) and pi (seconds per byte), and the bound in seconds that they prove.

    `second`, of shape (phases, kinds), and `alone`, which is mu, the price of the requests' own time over the processes
    in flight (0 in a proof), are those of each phase.
    """

    second: Float
    byte: Float
    alone: Float
    bound_s: float

    def of(self, work: Float, length: Float, alone: Float | None = None, share: Float | None = None) -> Float:
        """What every cell costs on every kind, seconds of the run; shape (cells, kinds).

        `share`, of shape (cells, phases), is the part of a cell's work in every phase; without it there is one phase.
        """
        second = self.second[0] if share is None else share @ self.second
        priced = work * second + length[:, None] * self.byte
        if alone is None:
            return np.asarray(priced)
        return np.asarray(priced + alone * (self.alone[0] if share is None else (share @ self.alone)[:, None]))


def prices_of(
    work: Float,
    length: Float,
    many: Float,
    channels: Float,
    rooms: Float,
    alone: Float | None = None,
    share: Float | None = None,
) -> Prices:
    """The prices that prove most; `many` cells are alike in each row, rooms are infinite where nothing limits them.

    `share` is the part of a cell's work in every phase, if there are several; then the bound is none.

    `alone`, of the shape of `work`, is what a cell's requests take alone over the processes in flight: a further
    resource that all kinds share. With it the bound holds for layouts only that lay every cell on one server.
    """
    return _Climb(work, length, many, channels, rooms, alone, share).climb()


class _Climb:
    """The planes so far, the best prices, and what the planes would have them be."""

    def __init__(
        self,
        work: Float,
        length: Float,
        many: Float,
        channels: Float,
        rooms: Float,
        alone: Float | None,
        share: Float | None,
    ) -> None:
        import highspy

        kinds = len(channels)
        self.work, self.length, self.many, self.share = work, length, many, share
        self.channels, self.rooms, self.alone = channels, rooms, alone
        # Prices in parts of a phase: a kind's whole time, the requests' own time; and a kind's whole room.
        self.limited = np.flatnonzero(np.isfinite(rooms) & (rooms > 0))
        self.phases = 1 if share is None else share.shape[1]
        self.each = kinds + (alone is not None)
        self.timed = self.each * self.phases
        every_s = work.T @ many / channels
        holds_all = rooms >= float(length @ many)
        self.scale = max(float(every_s[holds_all].min() if holds_all.any() else every_s.max()), 1e-12)
        if alone is not None:
            self.scale = max(self.scale, float((alone.min(axis=1) * many).sum()))
        highs = highspy.Highs()  # type: ignore[no-untyped-call]
        highs.silent()
        highs.setOptionValue("threads", 1)
        columns = self.timed + len(self.limited)
        for number in range(columns + 1):
            # No room is worth more than the whole run on the servers that have enough of it.
            highs.addVar(0.0, 1.0 if number < self.timed else 4.0)
        highs.changeColCost(columns, -1.0)
        for phase in range(self.phases):
            of = np.arange(phase * self.each, (phase + 1) * self.each, dtype=np.int32)
            highs.addRow(1.0, 1.0, self.each, of, np.ones(self.each))
        self.highs, self.columns = highs, columns
        self.best, self.best_s = np.zeros(columns), -np.inf

    def climb(self) -> Prices:
        """Planes until the bound is as good as they let it be."""
        at = np.zeros(self.columns)
        at[: self.timed] = 1 / self.each
        upper = np.inf
        for _ in range(PLANES_MAX):
            value, slope = self._plane(at)
            if value > self.best_s:
                self.best, self.best_s = at, value
            if np.isfinite(upper) and upper - self.best_s <= TOLERANCE * upper:
                break
            index = np.arange(self.columns + 1, dtype=np.int32)
            self.highs.addRow(-np.inf, 0.0, self.columns + 1, index, np.append(-slope, 1.0))
            self.highs.run()
            solution = self.highs.getSolution()
            if not solution.value_valid:
                break
            wanted = np.maximum(np.array(solution.col_value[: self.columns]), 0.0)
            timed = wanted[: self.timed].reshape(self.phases, self.each)
            timed /= np.maximum(timed.sum(axis=1, keepdims=True), 1e-300)
            upper = float(solution.col_value[self.columns])
            at = self.best + STEP * (wanted - self.best)
        found = self._prices(self.best)
        return replace(found, bound_s=self._bound_s(found))

    def _prices(self, at: Float) -> Prices:
        kinds = len(self.channels)
        timed = at[: self.timed].reshape(self.phases, self.each)
        byte = np.zeros(kinds)
        byte[self.limited] = at[self.timed :] * self.scale / self.rooms[self.limited]
        mu = timed[:, kinds] if self.alone is not None else np.zeros(self.phases)
        return Prices(timed[:, :kinds] / self.channels, byte, mu, 0.0)

    def _priced(self, prices: Prices) -> Float:
        priced = prices.of(self.work, self.length, self.alone, self.share)
        # A kind without room holds nothing.
        return np.where(self.rooms > 0, priced, np.inf)

    def _bound_s(self, prices: Prices) -> float:
        least = float((self._priced(prices).min(axis=1) * self.many).sum())
        return least - float((prices.byte[self.limited] * self.rooms[self.limited]).sum())

    def _plane(self, at: Float) -> tuple[float, Float]:
        """g at these prices and its slope, both in parts of `scale`; g is the slope times the prices."""
        kinds = len(self.channels)
        chosen = self._priced(self._prices(at)).argmin(axis=1)
        rows = np.arange(len(chosen))
        share = np.ones((len(chosen), 1)) if self.share is None else self.share
        busy = np.zeros((self.phases, self.each))
        work = (self.work[rows, chosen] * self.many)[:, None] * share
        for kind in range(kinds):
            busy[:, kind] = work[chosen == kind].sum(axis=0) / self.channels[kind]
        held = np.bincount(chosen, weights=self.length * self.many, minlength=kinds)[self.limited]
        if self.alone is not None:
            busy[:, kinds] = (self.alone[rows, chosen] * self.many) @ share
        slope = np.concatenate([busy.ravel() / self.scale, held / self.rooms[self.limited] - 1])
        return float(slope @ at), slope


def alike(rows: Float) -> tuple[Float, Int, Float]:
    """The rows that differ, which of them each row is, and how many there are of each."""
    unique, inverse, many = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    return unique, np.asarray(inverse).ravel(), many.astype(np.float64)
