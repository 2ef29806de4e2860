"""Looks for every cause in a run: of a file the first that fits, since later ones follow from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..cluster import Cluster
from .causes.collective import small_collective_buffer
from .causes.hot import hot_reads
from .causes.interleaved import interleaved_requests
from .causes.metadata import metadata_storm
from .causes.scattered import scattered_requests
from .causes.small import small_requests
from .causes.uneven import uneven_ranks
from .facts import FileFacts, RunFacts
from .finding import Finding

Cause = Callable[[FileFacts, RunFacts, Cluster], Finding | None]
#: What is said of findings in a log that has counters and no requests.
ESTIMATED = "of requests whose sizes, offsets and times are estimated from counters"
#: In this order: what shows one of them would show those behind it as well.
OF_A_FILE: tuple[Cause, ...] = (
    small_collective_buffer, interleaved_requests, hot_reads, scattered_requests, small_requests, uneven_ranks,
)  # fmt: skip


def findings_of(run: RunFacts, cluster: Cluster) -> tuple[Finding, ...]:
    """All findings, the dearest first; those without a price last."""
    found = [storm] if (storm := metadata_storm(run)) is not None else []
    for file in run.files:
        of_file = (cause(file, run, cluster) for cause in OF_A_FILE)
        first = next((each for each in of_file if each is not None), None)
        if first is not None:
            found.append(replace(first, evidence=(*first.evidence, ESTIMATED)) if run.is_estimated else first)
    return tuple(sorted(found, key=lambda each: -(each.price.high if each.price is not None else -1.0)))
