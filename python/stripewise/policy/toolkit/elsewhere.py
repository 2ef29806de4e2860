"""How a reason tells for how long a region keeps its place busy, and other places would be, and why it is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...units import time_text

#: Other places that are named.
TOLD = 2
#: Seconds that differ by less are told as the same.
SAME = 0.005


@dataclass(frozen=True)
class Place:
    """A place that a region has or could have: its busiest server's seconds, and what they and its room are worth.

    `time` and `room` are at the prices of the search, in one unit; only which is more is told.
    """

    name: str
    busy_s: float
    time: float
    room: float

    @property
    def price(self) -> float:
        """Time and room together."""
        return self.time + self.room


def with_seconds(reason: str, here: Place, others: Sequence[Place], several: bool = False) -> str:
    """The reason with the seconds of its place, the busiest server's where there are `several`, and the least of the
    others'; of those that would be busy for less, why they were not taken.
    """
    told = sorted(others, key=lambda each: each.busy_s)[:TOLD]
    said = [f"{each.name}: {time_text(each.busy_s)}{_why_not(here, each)}" for each in told]
    # Requests that meet some stripes more often than others keep one server busy for longer.
    busy = f"{'the busiest for about' if several else 'busy for up to'} {time_text(here.busy_s)}"
    return f"{reason}, {busy}" + (f" ({'; '.join(said)})" if said else "")


def _why_not(here: Place, other: Place) -> str:
    if other.busy_s > here.busy_s * (1 + SAME):
        return ""
    if other.busy_s > here.busy_s * (1 - SAME):
        return ", no less"
    if other.price <= here.price:
        return ", but all regions together are quicker so"
    return f", but its {'room' if other.room > other.time else 'time'} goes to what gains more"
