"""Looks for every cause in a run: of a file's writes and of its reads the first that fits, since later ones follow.

What files of one series share is one finding, with the evidence of the dearest of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ..cluster import Cluster
from ..workload.series import pattern_of, shape_of
from . import choices
from .causes.collective import small_collective_buffer
from .causes.copies import copied_writes, slow_copies
from .causes.gaps import gapped_requests
from .causes.hot import hot_reads
from .causes.interleaved import interleaved_requests
from .causes.metadata import metadata_storm
from .causes.reread import reread
from .causes.scattered import scattered_requests
from .causes.sieving import sieving
from .causes.small import advice_on, small_requests
from .causes.sync import frequent_syncs
from .causes.uneven import uneven_ranks
from .cures import of_series
from .facts import FileFacts, RunFacts
from .finding import Finding
from .price import Seconds

Cause = Callable[[FileFacts, RunFacts, Cluster], Finding | None]
#: What is said of findings in a log that has counters and no requests.
ESTIMATED = "of requests whose sizes, offsets and times are estimated from counters"
#: In this order, of writes and of reads: what shows one of them would show those behind it as well.
OF_REQUESTS: tuple[Cause, ...] = (
    small_collective_buffer, interleaved_requests, hot_reads, scattered_requests, gapped_requests,
    small_requests,
)  # fmt: skip
#: Those that need no order or places, which counters do not have.
OF_COUNTERS: tuple[Cause, ...] = (small_requests,)


def findings_of(run: RunFacts, cluster: Cluster) -> tuple[Finding, ...]:
    """All findings, the dearest first; those without a price last."""
    found = [storm] if (storm := metadata_storm(run)) is not None else []
    for file in filter(None, (each.without_copied() for each in run.files)):
        of_file = list(_of_file(file, run, cluster))
        if run.is_estimated:
            # Bytes are counted, and no estimate.
            of_file = [each if each.cause == "sieving" else _doubted(each) for each in of_file]
        found += of_file
    found += filter(None, (slow_copies(file, run, cluster) for file in run.files))
    return tuple(sorted(_in_series(found, run), key=_dearest))


def _dearest(found: Finding) -> float:
    return -found.rank_s


def _in_series(found: Iterable[Finding], run: RunFacts) -> Iterator[Finding]:
    """Findings of one cause and one advice in files whose names differ in numbers alone, as one."""
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for each in found:
        of_file = shape_of(each.file) if each.file is not None else ("",)
        alike.setdefault((each.cause, each.advice, str(each.price is None), *of_file), []).append(each)
    ranks = {file.path: frozenset(file.records.rank.tolist()) for file in run.files}
    for group in alike.values():
        group.sort(key=_dearest)
        names = [each.file for each in group if each.file is not None]
        series = pattern_of(names[0], names) if len(group) > 1 else None
        if series is None:
            yield from group
            continue
        first = group[0]
        price = first.price and _together(group, in_turn=len({ranks[name] for name in names}) == 1)
        yield replace(
            first,
            evidence=(f"in {names[0]}, the dearest of them: {first.evidence[0]}", *first.evidence[1:]),
            price=price,
            measured_s=None if first.measured_s is None else sum(each.measured_s or 0.0 for each in group),
            command=of_series(first.command, names[0], series),
            series=series,
            files=len(group),
        )


def _together(group: Iterable[Finding], in_turn: bool) -> Seconds:
    """What files cost together: where the same processes used them, in turn; else all at once at the least."""
    low, high = zip(*((each.price.low, each.price.high) for each in group if each.price is not None), strict=True)
    return Seconds(sum(low) if in_turn else max(low), sum(high))


def _doubted(found: Finding) -> Finding:
    return replace(found, evidence=(*found.evidence, ESTIMATED))


def _measured(found: Finding, facts: FileFacts, run: RunFacts) -> Finding:
    # Who tells of some of them has measured those.
    return found if found.measured_s is not None else replace(found, measured_s=run.measured_s(facts))


def _apart(facts: FileFacts, cause: Cause, run: RunFacts, cluster: Cluster) -> list[tuple[Cause, Finding]] | None:
    """Of reads, or of writes, that a finding is of since most are small and follow each other, or are in no order: the
    ones and the others by themselves, for what helps the ones does not help the others. None where there are no others
    worth telling.
    """
    in_order = facts.follows.copy()
    in_order[:-1] |= facts.follows[1:]
    ordered, others = int(in_order.sum()), int((~in_order).sum())
    # Some follow by chance where places are few.
    if run.is_estimated or others < choices.REQUESTS_MIN or ordered < choices.BESIDE * len(in_order):
        return None
    run_on, rest = facts.only(in_order), facts.only(~in_order)
    first, second = small_requests(run_on, run, cluster), scattered_requests(rest, run, cluster)
    if second is None or (first is None and cause is small_requests):
        return None
    found: list[tuple[Cause, Finding]] = [(scattered_requests, _measured(second, rest, run))]
    if first is not None:
        found.append((small_requests, replace(_measured(first, run_on, run), advice=advice_on(facts))))
    return found


def _of_file(file: FileFacts, run: RunFacts, cluster: Cluster) -> Iterator[Finding]:
    causes = OF_COUNTERS if run.is_estimated else OF_REQUESTS

    def first(facts: FileFacts) -> list[tuple[Cause, Finding]]:
        for cause in causes:
            if (found := cause(facts, run, cluster)) is not None:
                apart = _apart(facts, cause, run, cluster) if cause in (small_requests, scattered_requests) else None
                return apart or [(cause, measured(found, facts))]
        return []

    def measured(found: Finding, facts: FileFacts) -> Finding:
        return _measured(found, facts, run)

    of_requests = [one for write in (True, False) if (part := file.of(write)) is not None for one in first(part)]
    if len(of_requests) == 2 and of_requests[0][0] is of_requests[1][0]:
        # One cause of both: told once, of all requests where these show it.
        whole = of_requests[0][0](file, run, cluster)
        of_requests = [(of_requests[0][0], measured(whole, file))] if whole is not None else of_requests
    yield from (finding for _, finding in of_requests)
    if (sieved := sieving(file, run, cluster)) is not None:
        yield sieved
    # Reads of a hot region are reads of the same bytes.
    is_told = run.is_estimated or any(each.cause == "hot_region" for _, each in of_requests)
    if not is_told and (again := reread(file, run, cluster)) is not None:
        yield measured(again, file.of(False) or file)
    if (twice := copied_writes(file, run)) is not None:
        yield twice
    if (waited := frequent_syncs(file, run, cluster)) is not None:
        yield waited
    if not of_requests and (uneven := uneven_ranks(file, run, cluster)) is not None:
        yield measured(uneven, file)
