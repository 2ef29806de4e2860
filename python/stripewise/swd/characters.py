"""A map of tracks in characters: one for each track, or for the same number of neighbours, in lines of a screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .plot import last_track, shares_of

#: What a character says of its tracks.
LEGEND = {
    "*": "hot (updated most), a quarter of the tracks or more",
    "#": "used",
    "1 to 9": "so many tenths of the tracks are used",
    "-": "gap: free, but a write there would destroy used tracks",
    ".": "free",
}
#: Lines of a map.
LINES_MAX = 4
_HOT = 0.25


def drawn(report: Mapping[str, Any], first: int, tracks: int | None, width: int) -> Iterator[str]:
    """The map of one run in lines of at most `width` columns, each behind its first track."""
    last = last_track(report, first, tracks)
    margin = len(f"{last:,}") + 2
    room = max(width - margin, 10)
    step = -(-(last - first) // (LINES_MAX * room))
    # Whole bins, and the tracks that are left in one of their own.
    text = "".join(_characters(report, first, last - (last - first) % step, step))
    if rest := (last - first) % step:
        text += "".join(_characters(report, last - rest, last, rest))
    yield f"{'one track' if step == 1 else f'{step:,} tracks'} a character"
    for at in range(0, len(text), room):
        yield f"{first + at * step:>{margin - 2},}  {text[at : at + room]}"


def _characters(report: Mapping[str, Any], first: int, last: int, step: int) -> Iterator[str]:
    if first == last:
        return
    shares = shares_of(report, first, last, (last - first) // step)
    tenths = np.rint(10 * (shares["used"] + shares["hot"])).astype(int)
    choices = [shares["hot"] >= _HOT, tenths == 10, tenths > 0, shares["gap"] >= shares["free"]]
    yield from np.select(choices, ["*", "#", tenths.astype(str), "-"], default=".").tolist()
