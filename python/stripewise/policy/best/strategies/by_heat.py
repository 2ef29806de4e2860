"""The strategy by heat: places followed as finely as the trace tells them, dealt out as work that can be divided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..expected.spans import Spans, spans_of
from ..tuning import FILLED, HEAT_GRAINS, KIND_STRIPES, LATENCIES, LEANS, LONG_PARTS, SHORT_QUEUES
from .case import Attempt, Case, Proposals
from .dealing import Way, deal


def by_heat(case: Case) -> Proposals:
    """Layouts for as many processes as there are, and for fewer where queues are short."""
    spans = spans_of(case.heats)
    for way in _ways(case):
        yield _attempts(spans, case, way)
    # A cut through requests costs a startup more, which longer parts pay less often.
    if any(heat is not None and not heat.grid.is_apart for heat in case.heats):
        for power in HEAT_GRAINS:
            coarse = [None if heat is None else heat.at_grain(power) for heat in case.heats]
            yield _attempts(spans_of(coarse), case, Way(case.processes))


def _attempts(spans: Spans, case: Case, way: Way) -> Iterator[Attempt]:
    for filled in FILLED:
        pieces = deal(spans, case, replace(way, filled=filled))
        if pieces is not None:
            yield pieces


def _ways(case: Case) -> Iterator[Way]:
    """The ways that are tried: all of them where queues are short, for there no bound tells."""
    channels = sum(target.channels for target in case.cluster.active)
    yield Way(case.processes)
    # What goes through a file in sequence is served without startups where a server has a long part of it.
    for part in LONG_PARTS:
        yield Way(case.processes, part=part)
    if case.processes >= SHORT_QUEUES * channels:
        return
    for lean in LEANS:
        for latency in LATENCIES:
            if (lean, latency) != (0.0, 1.0):
                yield Way(case.processes / latency, lean)
    for stripe in KIND_STRIPES:
        for lean in LEANS:
            yield Way(case.processes, lean, stripe)
