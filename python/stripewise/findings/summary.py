"""The figures of a run and of its files, for the page that `stripewise show` prints."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ..pattern.report import report_of_records
from ..workload.copied import Copied
from .facts import FileFacts, RunFacts
from .layers import MpiCalls
from .mpi_hints import FileHints

#: Files whose patterns are told, those with the most bytes.
FILES_TOLD = 12
#: Patterns of a file that are told.
PATTERNS_TOLD = 4


@dataclass(frozen=True)
class FileLine:
    """What was done to one file."""

    path: str
    #: Processes that moved bytes, and those that opened it (0: not recorded).
    processes: int
    openers: int
    bytes: int
    #: Over the time in which at least one request was under way.
    mb_s: float | None
    request_bytes: tuple[int, int, int]
    #: Half of the requests took no longer, and 99 of 100; None where the trace has no times.
    latency_ms: tuple[float, float] | None
    sentences: tuple[str, ...]
    #: What was asked of MPI-IO, and what came of it.
    layers: tuple[MpiCalls, ...]
    #: Its reads that copies of it have served; None where there are none.
    copied: Copied | None
    #: Patterns that are not told.
    more: int
    #: Of MPI-IO; None where the trace does not tell.
    hints: FileHints | None = None


@dataclass(frozen=True)
class RunSummary:
    """What a run did."""

    processes: int
    requests: int
    bytes: int
    #: From the first request to the end of the last one.
    span_s: float
    #: In requests that moved bytes: of all processes, and of the one that spent the most.
    io_s: float
    longest_io_s: float
    #: Of calls by name on the program's files.
    calls: int
    calls_s: float
    #: That wait until bytes are on the device, and the seconds in them of all processes.
    syncs: int
    syncs_s: float
    files: tuple[FileLine, ...]


def span_of(run: RunFacts) -> float:
    """Seconds from the first request to the end of the last one."""
    begins = [int(file.records.start_ns.min()) for file in run.files]
    ends = [int(file.records.end_ns.max()) for file in run.files]
    return (max(ends) - min(begins)) / 1e9 if begins else 0.0


def reads_of(run: RunFacts, paths: Collection[str]) -> tuple[int, float]:
    """Bytes that were read of these files, by MPI-IO's calls where these are known, and seconds with reads under way;
    0 seconds where the trace does not tell.
    """
    count, seconds = 0, 0.0
    for file in run.files:
        reads = file.of(False) if file.path in paths else None
        if reads is not None:
            count += int(reads.size.sum()) if reads.wanted is None else reads.wanted.read
            seconds += _busy_ns(reads) / 1e9 if run.measured_s(reads) is not None else 0.0
    return count, seconds


def waits_of(run: RunFacts) -> tuple[int, float]:
    """Calls that wait until bytes are on the device, and the seconds in them of all processes."""
    return sum(map(len, run.syncs.values())), sum(float(each.seconds.sum()) for each in run.syncs.values())


def summary_of_run(run: RunFacts) -> RunSummary:
    """The figures of a run; patterns of the files with the most bytes."""
    spent: dict[tuple[str, int], float] = {}
    for file in run.files:
        for rank, seconds in zip(file.ranks.tolist(), file.io_s.tolist(), strict=True):
            spent[file.who, rank] = spent.get((file.who, rank), 0.0) + seconds
    told = {file.path for file in run.files[:FILES_TOLD]}
    sentences: dict[str, list[str]] = {}
    if run.trace is not None:
        report = report_of_records(run.trace, told)
        # The one that moves the most first: few are told.
        sentences = {
            file.path: [each.sentence for each in sorted(file.patterns, key=lambda each: -each.bytes)]
            for file in report.files
        }
    return RunSummary(
        run.processes,
        run.requests,
        run.bytes_moved,
        span_of(run),
        sum(spent.values()),
        max(spent.values(), default=0.0),
        run.metadata.calls,
        run.metadata.total_s,
        *waits_of(run),
        tuple(_line(file, sentences.get(file.path, []), run.copied(file)) for file in run.files),
    )


def _line(file: FileFacts, sentences: list[str], copied: Copied | None) -> FileLine:
    moved = int(file.size.sum())
    took = file.records.end_ns - file.records.start_ns
    busy_s = _busy_ns(file) / 1e9
    timed = bool((took > 1).any())
    return FileLine(
        file.path,
        len(file.ranks),
        file.openers,
        moved,
        moved / busy_s / 1e6 if timed and busy_s > 0 else None,
        (int(file.size.min()), int(np.median(file.size)), int(file.size.max())),
        (float(np.median(took)) / 1e6, float(np.quantile(took, 0.99)) / 1e6) if timed else None,
        tuple(sentences[:PATTERNS_TOLD]),
        file.layers,
        copied,
        max(0, len(sentences) - PATTERNS_TOLD),
        file.hints,
    )


def _busy_ns(file: FileFacts) -> int:
    """The time in which at least one request was under way."""
    order = np.argsort(file.records.start_ns, kind="stable")
    start, end = file.records.start_ns[order], np.maximum.accumulate(file.records.end_ns[order])
    begun = np.maximum(start[1:], end[:-1])
    return int(end[0] - start[0] + np.maximum(0, end[1:] - begun).sum())
