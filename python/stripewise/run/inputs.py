"""What a run changed of its own inputs: bytes that were there before it, that it read and wrote afterwards.

A second run of such a program begins from other data than the first, so its time says little about the layout.
"""

from __future__ import annotations

import numpy as np

from ..workload import Workload
from ..workload.requests import Requests

#: Places of a file that are told apart; where requests begin and end more finely, a place holds more bytes.
PLACES_MAX = 1 << 24


def changed_inputs(workload: Workload) -> list[str]:
    """The paths of the files of which a place was read first and written later."""
    return [file.path for file in workload.files if _changes_what_it_read(file.requests)]


def _changes_what_it_read(requests: Requests) -> bool:
    moved = requests[requests["size"] > 0]
    if moved["write"].all() or not moved["write"].any():
        return False
    begin, end = moved["offset"], moved["offset"] + moved["size"]
    grain = int(np.gcd.reduce(np.concatenate([begin, moved["size"]])))
    while int(((end - 1) // grain - begin // grain + 1).sum()) > PLACES_MAX:
        grain *= 2
    count = (end - 1) // grain - begin // grain + 1
    place = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count - begin // grain, count)
    start, write = np.repeat(moved["start_ns"], count), np.repeat(moved["write"], count)
    # Of every place the first access decides whether it is an input; a read and a write at once are in the reader's
    # favour.
    order = np.lexsort((write, start, place))
    place, write = place[order], write[order]
    first = np.flatnonzero(np.diff(place, prepend=-1))
    is_input = ~write[first]
    is_written = np.logical_or.reduceat(write, first)
    return bool((is_input & is_written).any())
