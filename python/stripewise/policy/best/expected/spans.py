"""What the strategy by places deals out: runs of slots of each file, and the spans of a slot that are asked for apart.

A slot is the grid that a file's requests begin on. Where every request ends before the next slot begins, a slot has
spans: up to where the shortest requests end, from there to where longer ones do, and what none asks for. A span of a
run of slots may lie on a server of its own, as one stripe of a cycle: a strided pattern's records apart from its gaps,
heads apart from tails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....model.general import Float, Int
from ....units import GRANULE_BYTES, round_up
from ..tuning import MEAN_REQUESTS, SEGMENTS, SPANS_MAX
from .heats import FileHeat
from .phases import groups_of


@dataclass(frozen=True)
class Spans:
    """Spans by run: run r of `file` begins at byte `start`, has `slots` slots of `slot_bytes`.

    Span k is [low[k], high[k]) of every slot of run `run[k]`; `asked`, of shape (spans, 4), are the startups of reads
    and writes and the bytes read and written that the next run is expected to ask of it. A run may be cut at multiples
    of `unit` slots.
    """

    file: Int
    start: Int
    slot_bytes: Int
    slots: Int
    unit: Int
    run: Int
    low: Int
    high: Int
    asked: Float

    @property
    def length(self) -> Float:
        """Bytes of every span, all slots of its run together."""
        return ((self.high - self.low) * self.slots[self.run]).astype(np.float64)

    def cut(self, parts: Int) -> Spans:
        """Every run in so many parts, as equal as its unit allows; what is asked of it is shared out."""
        units = -(-self.slots // self.unit)
        parts = np.clip(parts, 1, units)
        of = np.repeat(np.arange(len(parts)), parts)
        number = np.arange(len(of)) - np.repeat(np.cumsum(parts) - parts, parts)
        first = units[of] * number // parts[of] * self.unit[of]
        end = np.minimum(units[of] * (number + 1) // parts[of] * self.unit[of], self.slots[of])
        each = np.bincount(self.run, minlength=len(parts))
        begins = np.cumsum(each) - each
        spans = each[of]
        run = np.repeat(np.arange(len(of)), spans)
        source = begins[of][run] + np.arange(len(run)) - np.repeat(np.cumsum(spans) - spans, spans)
        share = (end - first) / self.slots[of]
        return Spans(
            self.file[of], self.start[of] + first * self.slot_bytes[of], self.slot_bytes[of], end - first,
            self.unit[of], run, self.low[source], self.high[source], self.asked[source] * share[run][:, None],
        )  # fmt: skip


def spans_of(heats: Sequence[FileHeat | None]) -> Spans:
    """The spans of all files."""
    return _joined([_of_file(number, heat) for number, heat in enumerate(heats) if heat is not None])


def groups_of_run(heats: Sequence[FileHeat | None]) -> Int:
    """The group of every segment of the run, by the phases of all files."""
    told = [heat for heat in heats if heat is not None and len(heat.at)]
    return groups_of([heat.phases for heat in told], any(heat.in_sequence for heat in told))


def shares_of(spans: Spans, heats: Sequence[FileHeat | None]) -> Float | None:
    """Of what is asked of every span, the part in every group of segments; None where there is one group only.

    What goes through a file in sequence is asked for where and when it was; else the phases' heat says it.
    """
    group = groups_of_run(heats)
    groups = int(group[-1]) + 1
    if groups == 1:
        return None
    share = np.full((len(spans.run), groups), 1 / groups)
    for number, heat in enumerate(heats):
        of = np.flatnonzero(spans.file[spans.run] == number)
        if heat is None or not len(heat.at):
            continue
        within = spans.run[of]
        first = (spans.start[within] - heat.grid.base) // heat.grid.slot_bytes
        if heat.in_sequence:
            share[of] = _counted(heat, first, first + spans.slots[within], group)
            continue
        segments = np.bincount(heat.segment, minlength=SEGMENTS).astype(np.float64)
        phases = np.bincount(heat.phases, weights=segments, minlength=len(heat.by_phase))
        weight = np.zeros((len(heat.by_phase), groups))
        np.add.at(weight, (heat.phases, group), segments / np.maximum(phases[heat.phases], 1.0))
        run = np.clip(np.searchsorted(heat.runs.first, first, side="right") - 1, 0, heat.runs.count - 1)
        here = (heat.by_phase[:, run].T * _in_phases(heat, spans.low[of], spans.high[of])) @ weight
        share[of] = here / np.maximum(here.sum(axis=1, keepdims=True), 1e-300)
    return share


def _in_phases(heat: FileHeat, low: Int, high: Int) -> Float:
    """Of a phase's requests, the part that touches bytes [low, high) of a slot, shape (spans, phases)."""
    phases = len(heat.by_phase)
    if not heat.grid.is_apart or phases == 1:
        return np.ones((len(low), phases))
    whole = np.maximum(np.bincount(heat.phase, minlength=phases), 1)
    edges, which = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)
    found = np.zeros((len(edges), phases))
    for number, (begin, end) in enumerate(edges.tolist()):
        touch = (heat.inside < end) & (heat.inside + heat.size > begin)
        found[number] = np.bincount(heat.phase[touch], minlength=phases) / whole
    return np.asarray(found[np.asarray(which).ravel()])


def _counted(heat: FileHeat, low: Int, high: Int, group: Int) -> Float:
    """Of the requests that began in slots [low, high), the part in every group; of a cold one, that of all."""
    order = np.argsort(heat.slot, kind="stable")
    slot, of = heat.slot[order], group[heat.segment[order]]
    groups = int(group[-1]) + 1
    sums: Float = np.zeros((len(slot) + 1, groups))
    sums[np.arange(1, len(slot) + 1), of] = 1.0
    sums = np.cumsum(sums, axis=0)
    count = sums[np.searchsorted(slot, high)] - sums[np.searchsorted(slot, low)]
    count += 1e-6 * sums[-1] / len(slot)
    return np.asarray(count / count.sum(axis=1, keepdims=True))


def _joined(parts: Sequence[Spans]) -> Spans:
    runs = np.cumsum([0, *(len(part.start) for part in parts)])
    columns = [
        np.concatenate(
            [getattr(part, name) + (low if name == "run" else 0) for part, low in zip(parts, runs, strict=False)]
        )
        for name in Spans.__dataclass_fields__
    ]
    return Spans(*columns)


def _of_file(number: int, heat: FileHeat) -> Spans:
    grid, runs = heat.grid, heat.runs
    if not runs.count:
        return _cold(number, 0, round_up(heat.end))
    edges = _edges(heat)
    spans = len(edges) - 1
    asked = _asked(heat, edges)
    count = np.bincount(heat.run, minlength=runs.count).astype(np.float64)
    mean = asked.sum(axis=0) / len(heat.at)
    each = (asked + MEAN_REQUESTS * mean) / (count + MEAN_REQUESTS)[:, None, None]
    asked = (each * runs.expected[:, None, None]).reshape(runs.count * spans, 4)
    every = np.arange(runs.count)
    made = Spans(
        np.full(runs.count, number), grid.base + runs.first[:-1] * grid.slot_bytes,
        np.full(runs.count, grid.slot_bytes), runs.slots, np.full(runs.count, grid.unit),
        np.repeat(every, spans), np.tile(edges[:-1], runs.count), np.tile(edges[1:], runs.count), asked,
    )  # fmt: skip
    return made if not grid.base else _joined([_cold(number, 0, grid.base), made])


def _cold(number: int, start: int, length: int) -> Spans:
    one = np.ones(1, dtype=np.int64)
    slots = length // GRANULE_BYTES
    return Spans(
        one * number, one * start, one * GRANULE_BYTES, one * slots, one, one * 0, one * 0, one * GRANULE_BYTES,
        np.zeros((1, 4)),
    )  # fmt: skip


def _edges(heat: FileHeat) -> Int:
    """Where spans begin and end in a slot: where requests do."""
    whole = heat.grid.slot_bytes
    if not heat.grid.is_apart:
        return np.array([0, whole], dtype=np.int64)
    begins = heat.inside // GRANULE_BYTES * GRANULE_BYTES
    ends = -(-(heat.inside + heat.size) // GRANULE_BYTES) * GRANULE_BYTES
    edges, count = np.unique(np.concatenate([begins, ends]), return_counts=True)
    if len(edges) > SPANS_MAX:
        kept = np.sort(np.argsort(-count, kind="stable")[: SPANS_MAX - 1])
        edges = np.append(edges[kept], edges[-1])
    return np.unique(np.concatenate([[0], edges, [whole]])).astype(np.int64)


def _asked(heat: FileHeat, edges: Int) -> Float:
    """Startups and bytes by run and span, reads and writes apart: shape (runs, spans, 4).

    A request's startup is shared out among its spans by bytes; it is the span's own where one server has them all.
    """
    spans = len(edges) - 1
    made = np.zeros((heat.runs.count, spans, 4))
    for span in range(spans):
        inside = heat.size
        if heat.grid.is_apart:
            low = np.maximum(heat.inside, edges[span])
            inside = np.maximum(0, np.minimum(heat.inside + heat.size, edges[span + 1]) - low)
        for kind, chosen in enumerate((~heat.write, heat.write)):
            here, moved = heat.run[chosen], inside[chosen].astype(np.float64)
            made[:, span, kind] = np.bincount(here, weights=moved / heat.size[chosen], minlength=heat.runs.count)
            made[:, span, 2 + kind] = np.bincount(here, weights=moved, minlength=heat.runs.count)
    return made
