"""Looks for every cause in a run: of a file's writes and of its reads the first that fits, since later ones follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ..cluster import Cluster
from .causes.collective import small_collective_buffer
from .causes.hot import hot_reads
from .causes.interleaved import interleaved_requests
from .causes.metadata import metadata_storm
from .causes.scattered import scattered_requests
from .causes.sieving import sieving
from .causes.small import small_requests
from .causes.uneven import uneven_ranks
from .facts import FileFacts, RunFacts
from .finding import Finding

Cause = Callable[[FileFacts, RunFacts, Cluster], Finding | None]
#: What is said of findings in a log that has counters and no requests.
ESTIMATED = "of requests whose sizes, offsets and times are estimated from counters"
#: In this order, of writes and of reads: what shows one of them would show those behind it as well.
OF_REQUESTS: tuple[Cause, ...] = (
    small_collective_buffer, interleaved_requests, hot_reads, scattered_requests, small_requests,
)  # fmt: skip
#: Those that need no order or places, which counters do not have.
OF_COUNTERS: tuple[Cause, ...] = (small_requests,)


def findings_of(run: RunFacts, cluster: Cluster) -> tuple[Finding, ...]:
    """All findings, the dearest first; those without a price last."""
    found = [storm] if (storm := metadata_storm(run)) is not None else []
    for file in run.files:
        of_file = list(_of_file(file, run, cluster))
        if run.is_estimated:
            # Bytes are counted, and no estimate.
            of_file = [each if each.cause == "sieving" else _doubted(each) for each in of_file]
        found += of_file
    return tuple(sorted(found, key=lambda each: -(each.price.high if each.price is not None else -1.0)))


def _doubted(found: Finding) -> Finding:
    return replace(found, evidence=(*found.evidence, ESTIMATED))


def _of_file(file: FileFacts, run: RunFacts, cluster: Cluster) -> Iterator[Finding]:
    causes = OF_COUNTERS if run.is_estimated else OF_REQUESTS

    def first(facts: FileFacts) -> tuple[Cause, Finding] | None:
        for cause in causes:
            if (found := cause(facts, run, cluster)) is not None:
                return cause, found
        return None

    each = [first(part) for write in (True, False) if (part := file.of(write)) is not None]
    of_requests = [one for one in each if one is not None]
    if len(of_requests) == 2 and of_requests[0][0] is of_requests[1][0]:
        # One cause of both: told once, of all requests where these show it.
        whole = of_requests[0][0](file, run, cluster)
        of_requests = [(of_requests[0][0], whole)] if whole is not None else of_requests
    yield from (finding for _, finding in of_requests)
    if (sieved := sieving(file, run, cluster)) is not None:
        yield sieved
    if not of_requests and (uneven := uneven_ranks(file, run, cluster)) is not None:
        yield uneven
