"""Regions onto choices over windows, so that busiest resources take least, with a proven lower bound (native).

A *choice* is a server, or a team of servers with stripes. A region on choice c in window w keeps each resource of c
busy for (features of the region, cut in c's shape) times (seconds per feature); a region that changes its choice
between windows loads resources by its bytes. The objective is the sum over windows of the busiest resource's seconds,
and of the penalties. What the features mean is the caller's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ... import native

#: Features per region, window and shape.
FEATURES = 8

_Float = NDArray[np.float64]
_Int = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Choice:
    """One place for a region; resources and servers are numbers from 0 on."""

    #: Row of the features that applies: how requests are cut on it.
    shape: int
    #: (resource, seconds per unit of each of the 8 features).
    entries: tuple[tuple[int, tuple[float, ...]], ...]
    #: (server, share of the region's bytes on it, in (0, 1]).
    shares: tuple[tuple[int, float], ...]
    #: (resource, seconds per byte) while a region leaves.
    leave: tuple[tuple[int, float], ...] = ()
    #: (resource, seconds per byte) while a region comes.
    enter: tuple[tuple[int, float], ...] = ()
    #: Seconds counted per region and window beside its load; tiny, so that simpler layouts win ties.
    penalty_s: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Regions, choices and room. Everything is at least 0 and finite, but capacities may be infinite."""

    #: [window, region, shape, 8]: what the requests of a region are in a window when cut in a shape.
    features: _Float
    #: [region]: bytes stored, and copied by a move.
    valid_bytes: _Float
    #: [server]: bytes of room in every window.
    capacity: _Float
    choices: tuple[Choice, ...]
    #: How many resources there are.
    resources: int

    @property
    def windows(self) -> int:
        return int(self.features.shape[0])

    @property
    def regions(self) -> int:
        return int(self.features.shape[1])

    def solve(
        self, *, seconds: float = 40.0, gap: float = 0.002, seed: int = 0, starts: Sequence[_Int] = ()
    ) -> Solution | None:
        """The best assignment found within `seconds` of wall clock, or as soon as its gap is at most `gap`.

        `starts` ([window, region] each, -1 for unknown) are improved: the result is never worse than the best of
        them that fits. Where the time does not run out, the result depends on the arguments alone. None: nothing was
        found that fits.

        Raises InvalidError, or ValueError for what numpy can tell, when the tables do not fit together.
        """
        if self.features.ndim != 4 or self.features.shape[3] != FEATURES:
            raise ValueError(f"features: shape {self.features.shape} is not [window, region, shape, {FEATURES}]")
        windows, regions, shapes, _ = self.features.shape
        entries = [choice.entries for choice in self.choices]
        for number, (_, q) in ((number, entry) for number, members in enumerate(entries) for entry in members):
            if len(q) != FEATURES:
                raise ValueError(f"choice {number}: an entry has {len(q)} numbers instead of {FEATURES}")
        found = native.call(
            "assign",
            {
                "windows": windows,
                "regions": regions,
                "shapes": shapes,
                "choices": len(self.choices),
                "resources": self.resources,
                "servers": len(self.capacity),
                "features": _floats(self.features),
                "valid_bytes": _floats(self.valid_bytes),
                "capacity": _floats(self.capacity),
                "shape": _ints([choice.shape for choice in self.choices]),
                "entries": _lists(entries),
                "stores": _lists([choice.shares for choice in self.choices]),
                "leave": _lists([choice.leave for choice in self.choices]),
                "enter": _lists([choice.enter for choice in self.choices]),
                "penalty_s": _floats([choice.penalty_s for choice in self.choices]),
            },
            [_ints(start) for start in starts],
            float(seconds),
            float(gap),
            seed,
        )
        if found is None:
            return None
        assignment, window_s, bound_s, prices, room_prices = found
        return Solution(
            assignment=np.frombuffer(assignment, dtype=np.int64).reshape(windows, regions),
            window_s=tuple(window_s),
            bound_s=bound_s,
            prices=np.frombuffer(prices, dtype=np.float64).reshape(windows, self.resources),
            room_prices=np.frombuffer(room_prices, dtype=np.float64).reshape(windows, len(self.capacity)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """An assignment and its proof."""

    #: [window, region]: the choice.
    assignment: _Int
    #: Of each window the busiest resource's seconds and the penalties.
    window_s: tuple[float, ...]
    #: No assignment takes less seconds.
    bound_s: float
    #: [window, resource]: the dual prices; of each window they sum to 1.
    prices: _Float = field(repr=False)
    #: [window, server]: seconds per byte of room.
    room_prices: _Float = field(repr=False)

    @property
    def seconds(self) -> float:
        """What is minimised."""
        return sum(self.window_s)

    @property
    def gap(self) -> float:
        """The most that a better assignment could save, in parts of this one's seconds."""
        return 1.0 - self.bound_s / self.seconds if self.seconds > 0.0 else 0.0


def _floats(numbers: _Float | Sequence[float]) -> _Float:
    return np.ascontiguousarray(numbers, dtype=np.float64).ravel()


def _ints(numbers: _Int | Sequence[int]) -> _Int:
    return np.ascontiguousarray(numbers, dtype=np.int64).ravel()


def _lists(lists: Sequence[Sequence[tuple[int, float | tuple[float, ...]]]]) -> dict[str, _Int | _Float]:
    """Lists one after the other: where each begins, and the places and values of their members."""
    first = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(members) for members in lists], out=first[1:])
    flat = [member for members in lists for member in members]
    values = np.array([value for _, value in flat], dtype=np.float64).ravel()
    return {"first": first, "at": _ints([at for at, _ in flat]), "value": values}
