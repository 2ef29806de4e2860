"""Runs that are as likely as the traced one.

A plan for the next run is judged by runs that it was not made from. Requests of such a run begin where the heat of
their phase expects them, each of the size and kind of one that began nearby; their order, their processes and their
times are the trace's. What goes through a file in sequence does so again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ....workload.requests import FileRequests, Workload
from .heats import FileHeat


def likely_run(workload: Workload, heats: Sequence[FileHeat | None], seed: int) -> Workload:
    """Another run of the same program, drawn from the heat of its files."""
    rng = np.random.default_rng(seed)
    files = [
        file if heat is None or not len(heat.at) else _again(file, rng) if heat.in_sequence else _drawn(file, heat, rng)
        for file, heat in zip(workload.files, heats, strict=True)
    ]
    return replace(workload, files=tuple(files))


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
    # Whose like each is: a request of its run, or any where the run had none.
    order = np.argsort(heat.run, kind="stable")
    first = np.searchsorted(heat.run[order], np.arange(runs.count + 1))
    many = np.diff(first)[run]
    nth = first[run] + (rng.random(count) * np.maximum(many, 1)).astype(np.int64)
    like = heat.at[np.where(many > 0, order[np.minimum(nth, count - 1)], rng.integers(0, count, count))]
    requests = file.requests.copy()
    model = file.requests[like]
    inside = (model["offset"] - grid.base) % grid.slot_bytes
    requests["offset"][heat.at] = np.minimum(
        grid.base + slot * grid.slot_bytes + inside, np.maximum(0, heat.end - model["size"])
    )
    requests["size"][heat.at], requests["write"][heat.at] = model["size"], model["write"]
    return replace(file, requests=requests)
