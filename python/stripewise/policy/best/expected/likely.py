"""Runs that are as likely as the traced one.

A plan for the next run is judged by such runs, and compared at last by ones that no layout was made from. Requests of
such a run begin where the heat of their phase expects them, each of the size and kind of one that began nearby; their
order, their processes and their times are the trace's. What goes through a file in sequence does so again; where there
is such a file, which one a process asks for next is drawn anew among its next few requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ....workload.requests import FileRequests, Workload
from ..tuning import TURNS
from .heats import FileHeat
from .sequence import is_of_one_process


def likely_run(workload: Workload, heats: Sequence[FileHeat | None], seed: int) -> Workload:
    """Another run of the same program, drawn from the heat of its files."""
    rng = np.random.default_rng(seed)
    files = [
        file if heat is None or not len(heat.at) else _again(file, rng) if heat.in_sequence else _drawn(file, heat, rng)
        for file, heat in zip(workload.files, heats, strict=True)
    ]
    if len(files) > 1 and any(heat is not None and heat.in_sequence for heat in heats):
        files = _interleaved(files, heats, rng)
    return replace(workload, files=tuple(files))


def _interleaved(
    files: Sequence[FileRequests], heats: Sequence[FileHeat | None], rng: np.random.Generator
) -> list[FileRequests]:
    """The requests of all files, each file's in their order, with the turns of every process dealt out anew.

    A turn is a process and a time; turns change hands within `TURNS` of the same process. Streams that processes share
    are gone on with by whoever is next; else a process's requests stay its own.
    """
    number = np.repeat(np.arange(len(files)), [len(file.requests) for file in files])
    turns = np.concatenate([file.requests[["rank", "start_ns", "end_ns"]] for file in files])
    order = np.lexsort((np.arange(len(turns)), turns["start_ns"], turns["rank"]))
    turns, number = turns[order], number[order]
    _, first, many = np.unique(turns["rank"], return_index=True, return_counts=True)
    window = (np.arange(len(turns)) - np.repeat(first, many)) // TURNS
    number = number[np.lexsort((rng.random(len(turns)), window, turns["rank"]))]
    made = []
    for each, (file, heat) in enumerate(zip(files, heats, strict=True)):
        mine, requests = turns[number == each], file.requests.copy()
        shared = heat is not None and heat.in_sequence and not is_of_one_process(file.requests)
        # Requests and turns by process and time, or by time alone, one to one.
        keys = ("start_ns",) if shared else ("start_ns", "rank")
        of = np.lexsort(tuple(requests[key] for key in keys))
        mine = mine[np.lexsort(tuple(mine[key] for key in keys))]
        for column in ("rank", "start_ns", "end_ns"):
            requests[column][of] = mine[column]
        made.append(replace(file, requests=requests))
    return made


def _again(file: FileRequests, rng: np.random.Generator) -> FileRequests:
    """The same sequence; which of its requests write is drawn anew."""
    requests = file.requests.copy()
    requests["write"] = rng.permutation(requests["write"])
    return replace(file, requests=requests)


def _drawn(file: FileRequests, heat: FileHeat, rng: np.random.Generator) -> FileRequests:
    grid, runs = heat.grid, heat.runs
    count, phase = len(heat.at), heat.phase
    run = np.zeros(count, dtype=np.int64)
    for each, expected in enumerate(heat.by_phase):
        of = np.flatnonzero(phase == each)
        if len(of):
            run[of] = rng.choice(runs.count, len(of), p=expected / expected.sum())
    slot = runs.first[run] + (rng.random(count) * runs.slots[run]).astype(np.int64)
    # Whose like each is: a request of its run in its phase, or any where there was none.
    had, wanted = heat.run + phase * runs.count, run + phase * runs.count
    order = np.argsort(had, kind="stable")
    first = np.searchsorted(had[order], np.arange(runs.count * len(heat.by_phase) + 1))
    many = np.diff(first)[wanted]
    nth = first[wanted] + (rng.random(count) * np.maximum(many, 1)).astype(np.int64)
    like = heat.at[np.where(many > 0, order[np.minimum(nth, count - 1)], rng.integers(0, count, count))]
    requests = file.requests.copy()
    model = file.requests[like]
    inside = (model["offset"] - grid.base) % grid.slot_bytes
    requests["offset"][heat.at] = np.minimum(
        grid.base + slot * grid.slot_bytes + inside, np.maximum(0, heat.end - model["size"])
    )
    requests["size"][heat.at], requests["write"][heat.at] = model["size"], model["write"]
    return replace(file, requests=requests)
