"""The strategy by cells: the files in equal cells of every grain, or cut where requests begin and end, each on one
server.

Where requests are longer than what their heat is told by, or begin anywhere, what a place is asked for is not told by
where they begin. So the trace, and likely runs, are cut where cells begin; each piece pays its startup and its bytes,
and the cells are dealt out by prices, few of them one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ....model.general import Float, Int
from ....units import GRANULE_BYTES, round_up
from ....workload.requests import Requests, Workload
from ..expected.heats import FileHeat
from ..expected.spans import Spans, groups_of_run
from ..expected.touched import by_group, piece_count
from ..tuning import CELL_GRAINS, CELL_PARTS, CELL_PIECES_MAX, CELLS_MAX, CELLS_PER_SERVER, FILLED, LISTED_MAX
from .case import Attempt, Case, Proposals
from .dealing import Way, deal, listed


def by_cells(case: Case) -> Proposals:
    """Cells of every grain, and those of the trace's requests, dealt out by their prices."""
    alone = case.runs[0] is case.workload
    longest = max((round_up(heat.end) for heat in case.heats if heat is not None), default=0)
    # Files in a few parts for each server are what long sequential reads want.
    parts = [round_up(-(-longest // (len(case.cluster.active) * each))) for each in CELL_PARTS]
    for grain in dict.fromkeys([*CELL_GRAINS[:2], *parts, *CELL_GRAINS[2:]]):
        # Where the trace tells much, what follows it is as quick on other runs.
        for runs in [[case.workload], *([] if alone else [case.runs])]:
            found = cells_of(case.heats, runs, grain)
            if found is not None and len(found[0].start) >= CELLS_PER_SERVER * len(case.cluster.active):
                # Pieces of one request are served side by side: what each takes alone does not add up.
                for processes in (case.processes, np.inf):
                    yield _attempts(*found, case, Way(processes))
                if len(found[0].start) <= LISTED_MAX:
                    pieces = listed(found[0], case, found[1])
                    yield iter([] if pieces is None else [pieces])


def _attempts(spans: Spans, share: Float | None, case: Case, way: Way) -> Iterator[Attempt]:
    for filled in FILLED:
        pieces = deal(spans, case, replace(way, filled=filled), share)
        if pieces is not None:
            yield pieces


def cells_of(
    heats: Sequence[FileHeat | None], runs: Sequence[Workload], grain: int
) -> tuple[Spans, Float | None] | None:
    """The cells of all files and what runs ask of them on average, and of that the part in every group of segments.

    With a `grain` of no bytes cells end where requests of the first run begin or end. None where there are too many; no
    parts where there is one group.
    """
    ends = [0 if heat is None else round_up(heat.end) for heat in heats]
    begins = [_begins(file.requests, grain, end) for file, end in zip(runs[0].files, ends, strict=True)]
    if sum(len(each) for each in begins) > CELLS_MAX:
        return None
    pieces = sum(piece_count(file.requests, each) for file, each in zip(runs[0].files, begins, strict=True))
    if pieces * len(runs) > CELL_PIECES_MAX:
        return None
    group = groups_of_run(heats)
    file: list[Int] = []
    start: list[Int] = []
    length: list[Int] = []
    asked: list[Float] = []
    for number, (heat, each, end) in enumerate(zip(heats, begins, ends, strict=True)):
        if heat is None:
            continue
        file.append(np.full(len(each), number))
        start.append(each)
        length.append(np.diff(each, append=end))
        asked.append(by_group([run.files[number].requests for run in runs], heat, each, group))
    places, slot = np.concatenate(start), np.concatenate(length)
    cells = len(places)
    one = np.ones(cells, dtype=np.int64)
    parts = np.concatenate(asked)
    spans = Spans(
        np.concatenate(file), places, slot, one, one, np.arange(cells), one * 0, slot, parts.sum(axis=1)
    )  # fmt: skip
    if parts.shape[1] == 1:
        return spans, None
    # A startup of 64 KiB's time: what servers of any kind are busy for is told by either.
    weight = parts @ np.array([65536.0, 65536.0, 1.0, 1.0]) + 1e-9
    return spans, weight / weight.sum(axis=1, keepdims=True)


def _begins(requests: Requests, grain: int, end: int) -> Int:
    """Where cells begin in a file of `end` bytes."""
    if grain:
        return np.arange(0, end, grain, dtype=np.int64)
    moved = requests[requests["size"] > 0]
    low = moved["offset"].astype(np.int64) // GRANULE_BYTES
    high = -(-(moved["offset"].astype(np.int64) + moved["size"]) // GRANULE_BYTES)
    edges = np.unique(np.concatenate([np.zeros(1, dtype=np.int64), low, high])) * GRANULE_BYTES
    return edges[edges < end]
