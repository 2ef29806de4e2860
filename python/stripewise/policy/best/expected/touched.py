"""What runs ask of places: every request cut where places end, each piece with its startup and its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ....model.general import Float, Int
from ....units import GRANULE_BYTES
from ....workload.requests import Requests, Workload
from .heats import FileHeat


class Place(Protocol):
    """Bytes [start, start + length) of a file, by its number."""

    @property
    def file(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def length(self) -> int: ...


def touched(places: Sequence[Place], heats: Sequence[FileHeat | None], runs: Sequence[Workload], group: Int) -> Float:
    """Of every place the startups of reads and writes and the bytes read and written of a mean run, by its groups of
    segments: shape (places, groups, 4).

    Places of a file follow each other without gaps, in order; `group` is the group of every segment.
    """
    file = np.array([place.file for place in places], dtype=np.int64)
    start = np.array([place.start for place in places], dtype=np.int64)
    asked = np.zeros((len(places), int(group[-1]) + 1, 4))
    for number in np.unique(file).tolist():
        of, heat = file == number, heats[number]
        if heat is not None:
            asked[of] = by_group([run.files[number].requests for run in runs], heat, start[of], group)
    return asked


def by_group(tables: Sequence[Requests], heat: FileHeat, start: Int, group: Int) -> Float:
    """The same of one file's places; `tables` are its requests in each of the runs."""
    groups = int(group[-1]) + 1
    of = group[heat.segment]
    asked = np.zeros((len(start), groups, 4))
    for table in tables:
        for each in range(groups):
            asked[:, each] += asked_of(table[heat.at[of == each]], start) / len(tables)
    return asked


def piece_count(requests: Requests, start: Int) -> int:
    """Into how many pieces requests fall where places begin."""
    low = requests["offset"].astype(np.int64)
    last = low + np.maximum(requests["size"].astype(np.int64), 1) - 1
    return int((np.searchsorted(start, last, side="right") - np.searchsorted(start, low, side="right") + 1).sum())


def asked_of(requests: Requests, start: Int) -> Float:
    """The same of one file's places and some requests, shape (places, 4); a place ends where the next one begins."""
    moved = requests[requests["size"] > 0]
    low = moved["offset"].astype(np.int64)
    high = low + moved["size"]
    first = np.searchsorted(start, low, side="right") - 1
    many = np.searchsorted(start, high - 1, side="right") - first
    of = np.repeat(np.arange(len(moved)), many)
    cell = first[of] + np.arange(len(of)) - np.repeat(np.cumsum(many) - many, many)
    end = np.append(start[1:], np.iinfo(np.int64).max)
    inside = np.minimum(high[of], end[cell]) - np.maximum(low[of], start[cell])
    key = cell * 2 + moved["write"][of]
    count = np.bincount(key, minlength=2 * len(start)).reshape(-1, 2)
    each = np.bincount(key, weights=inside, minlength=2 * len(start)).reshape(-1, 2)
    return np.hstack([count, each]).astype(np.float64)


def times_asked(workload: Workload) -> tuple[float, float, float]:
    """How often a place that is asked for at all is asked for, on average over places that the same requests touch, and
    in the middle of them; and the part of another run's requests that is expected at places that this one does not ask
    for.

    The latter by Good and Turing: the part of this run's requests that are alone at their place.
    """
    counts, alone, requests = [np.zeros(0, dtype=np.int64)], 0, 0
    for file in workload.files:
        moved = file.requests[file.requests["size"] > 0]
        low = moved["offset"].astype(np.int64) // GRANULE_BYTES
        high = -(-(moved["offset"].astype(np.int64) + moved["size"]) // GRANULE_BYTES)
        edges = np.unique(np.concatenate([low, high]))
        first = np.searchsorted(edges, low)
        change = np.bincount(first, minlength=len(edges))
        count = np.cumsum(change - np.bincount(np.searchsorted(edges, high), minlength=len(edges)))
        counts.append(count[count > 0])
        alone += int(np.count_nonzero(count[first] == 1))
        requests += len(moved)
    places = np.concatenate(counts)
    if not len(places):
        return 0.0, 0.0, 0.0
    return float(places.mean()), float(np.median(places)), alone / max(1, requests)
