"""Phases: parts of a run in which a file is asked for elsewhere than in others.

A run is cut into segments of as many requests each. Neighbouring segments are put together as long as one distribution
over the file's places explains both as well as two would, by the Bayesian information criterion.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ....model.general import Float, Int
from ....workload.requests import Requests
from ..tuning import BINS_MAX, REQUESTS_PER_BIN, SEGMENTS, SEQUENCE_GROUPS


def segments_of(tables: Sequence[Requests]) -> list[Int]:
    """The segment in which every request begins, file by file."""
    starts = np.concatenate([table["start_ns"] for table in tables]) if tables else np.zeros(0, dtype=np.int64)
    segment = np.empty(len(starts), dtype=np.int64)
    segment[np.argsort(starts, kind="stable")] = np.arange(len(starts)) * SEGMENTS // max(1, len(starts))
    return np.split(segment, np.cumsum([len(table) for table in tables])[:-1])


def phases_of(segment: Int, slot: Int) -> Int:
    """The phase of every segment of a run, for a file of which `slot` was asked for in `segment`."""
    bins = min(BINS_MAX, len(slot) // REQUESTS_PER_BIN)
    if bins < 2:
        return np.zeros(SEGMENTS, dtype=np.int64)
    edges = np.unique(np.quantile(slot, np.arange(1, bins) / bins, method="lower"))
    place = np.searchsorted(edges, slot, side="right")
    table: Float = np.zeros((SEGMENTS, len(edges) + 1))
    np.add.at(table, (segment, place), 1.0)
    price = 0.5 * len(edges) * np.log(len(slot))
    parts, first = list(table), list(range(SEGMENTS))
    while len(parts) > 1:
        lost = [_likely(low) + _likely(high) - _likely(low + high) for low, high in pairwise(parts)]
        at = int(np.argmin(lost))
        if lost[at] > price:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        del first[at + 1]
    return np.searchsorted(first, np.arange(SEGMENTS), side="right") - 1


def groups_of(phases: Sequence[Int], in_sequence: bool) -> Int:
    """The group of every segment: neighbours in which all files are in one phase.

    What goes through a file in sequence is in another part of it all the time; then no group is longer than a
    `SEQUENCE_GROUPS`-th of the run.
    """
    changes = np.zeros(SEGMENTS, dtype=bool)
    for each in phases:
        changes[1:] |= np.diff(each) != 0
    if in_sequence:
        changes[:: SEGMENTS // SEQUENCE_GROUPS] = True
    changes[0] = False
    return np.cumsum(changes)


def _likely(count: Float) -> float:
    """The greatest log likelihood of these counts."""
    told = count[count > 0]
    return float((told * np.log(told / told.sum())).sum())
