"""What a run did to its files: the patterns of each, with the five aspects of PDLA section 3.2.2, as one value."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..errors import NoRequestsError
from ..workload.counted import Chosen
from .local import RecognisedFile
from .records import FileRecords, Kind, TraceRecords, read_records
from .together import GlobalPattern, global_patterns
from .tree import Tree, numbers
from .words import nest_of, operation_text, sentence, size_class, size_text

#: More records than this are not sorted to say whether they cover a range exactly once.
COVERAGE_MAX = 1 << 22


@dataclass(frozen=True)
class Described:
    """A global pattern and what is said of it."""

    pattern: GlobalPattern
    sentence: str
    #: read, write, both or alternating.
    operation: str
    #: One of the words of `spatial`.
    spatial: str
    #: Smallest and largest request, and the class of the largest.
    request_bytes: tuple[int, int]
    size_class: str
    #: How often the whole of it is done.
    repetitions: int
    #: Between the starts of two requests, where every process keeps one interval.
    interval_ns: int | None
    #: Of all its processes.
    records: int
    bytes: int
    #: Lowest byte, and the end of the highest, of all its processes.
    span: tuple[int, int]
    #: Whether its processes touch each byte of the span just once; None where that was not looked at.
    is_exact_cover: bool | None

    def as_json(self) -> dict[str, Any]:
        """The fields of docs/formats.md, Patterns."""
        first = self.pattern.segments[0]
        formulas = self.pattern.formulas
        found: dict[str, Any] = {
            "sentence": self.sentence,
            "ranks": list(self.pattern.ranks),
            "operation": self.operation,
            "spatial": self.spatial,
            "request_bytes": list(self.request_bytes),
            "size_class": self.size_class,
            "repetitions": self.repetitions,
            "temporal": "random" if self.interval_ns is None else "fixed",
            "interval_ns": self.interval_ns,
            "records": self.records,
            "bytes": self.bytes,
            "span": list(self.span),
            "exact_cover": self.is_exact_cover,
            "loop": first.loop.as_json() if first.loop is not None else None,
            "places": asdict(first.places) if first.places is not None else None,
            "formulas": None,
            "row": list(self.pattern.row) if self.pattern.row is not None else None,
        }
        if formulas is not None and first.loop is not None:
            names = [name for name, _ in numbers(first.loop)]
            found["formulas"] = {
                "grid": list(formulas[0].grid),
                "numbers": [
                    {"what": name, "constant": formula.constant, "coefficients": list(formula.coefficients)}
                    for name, formula in zip(names, formulas, strict=True)
                ],
            }
        return found


@dataclass(frozen=True)
class FilePatterns:
    """The patterns of one file, by their first request."""

    recognised: RecognisedFile
    patterns: tuple[Described, ...]
    #: posix or mpi: the calls that are told.
    layer: str = "posix"
    #: Of those of MPI-IO, the calls on descriptors that the MPI library made of them; None: the trace has none.
    below: FileRecords | None = None

    @property
    def path(self) -> str:
        """Of the file."""
        return self.recognised.records.path

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What the kinds of records stand for."""
        return self.recognised.kinds

    @property
    def records(self) -> int:
        """How many there are."""
        return len(self.recognised.records)

    def requests(self, pattern: GlobalPattern, rank: int) -> list[tuple[str, int, int]]:
        """Operation, offset and size of each request of a rank, in its order."""
        segment = pattern.segments[pattern.ranks.index(rank)]
        records = self.recognised.records
        rows = self.recognised.rows(segment.stream)[segment.first : segment.first + segment.records]
        ops = [self.kinds[kind].op for kind in records.kind[rows].tolist()]
        return list(zip(ops, records.offset[rows].tolist(), records.size[rows].tolist(), strict=True))


@dataclass(frozen=True)
class PatternReport:
    """The patterns of a run."""

    source: str
    application: str
    processes: int
    is_ranked: bool
    files: tuple[FilePatterns, ...]
    #: Of the files that do not count, how many of each kind.
    left_out: tuple[tuple[str, int], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The fields of docs/formats.md, Patterns."""
        return {
            "version": 1,
            "source": self.source,
            "application": self.application,
            "processes": self.processes,
            "ranked": self.is_ranked,
            "left_out": dict(self.left_out),
            "files": [
                {
                    "path": file.path,
                    "kinds": [asdict(kind) for kind in file.kinds],
                    "streams": file.recognised.streams,
                    "records": file.records,
                    "patterns": [each.as_json() for each in file.patterns],
                }
                for file in self.files
            ],
        }


def report_of(path: str | os.PathLike[str], files: Chosen = (), layer: str = "posix") -> PatternReport:
    """The patterns in a collected trace; raises what `read_records` does."""
    report = report_of_records(read_records(path, files, layer))
    return replace(report, files=tuple(replace(file, layer=layer) for file in report.files))


def report_as_asked(path: str | os.PathLike[str], files: Chosen = ()) -> PatternReport:
    """The same of each file as the program asked: by MPI-IO calls where it has any, else by those on descriptors."""
    found: list[PatternReport] = []
    for layer in ("mpi", "posix"):
        try:
            found.append(report_of(path, files, layer))
        except NoRequestsError:
            # The last one says what there is.
            if layer == "posix" and not found:
                raise
    asked = {file.path: file for report in reversed(found) for file in report.files}
    below = {file.path: file.recognised.records for report in found for file in report.files if file.layer == "posix"}
    for each, file in asked.items():
        if file.layer == "mpi":
            asked[each] = replace(file, below=below.get(each))
    return replace(found[-1], files=tuple(asked.values()))


def report_of_records(trace: TraceRecords, paths: Collection[str] | None = None) -> PatternReport:
    """The patterns in the records of a trace, of all its files or of those of these paths."""
    found = []
    for records in trace.files:
        if paths is not None and records.path not in paths:
            continue
        file = RecognisedFile(records)
        described = [
            _described(file, pattern, trace.processes)
            for pattern in global_patterns(file.local, trace.processes, records.is_ranked)
        ]
        found.append(FilePatterns(file, tuple(described)))
    return PatternReport(
        trace.source, trace.application, trace.processes, trace.is_ranked, tuple(found), trace.left_out
    )


def _described(file: RecognisedFile, pattern: GlobalPattern, processes: int) -> Described:
    rows = np.concatenate([file.rows(each.stream)[each.first : each.first + each.records] for each in pattern.segments])
    offset, size = file.records.offset[rows], file.records.size[rows]
    span = int(offset.min()), int((offset + size).max())
    intervals = [each.interval_ns for each in pattern.segments]
    regular = [each for each in intervals if each is not None]
    first = pattern.segments[0]
    said = sentence(pattern, file.kinds, processes, file.records.is_ranked)
    covers = _covers(offset, size, span) if len(rows) <= COVERAGE_MAX else None
    if covers and len(pattern.ranks) > 1:
        said = f"{said[:-1]}; together they cover {size_text(span[0])} to {size_text(span[1])} exactly once."
    return Described(
        pattern,
        said,
        _operation(file, pattern),
        spatial(pattern),
        (int(size.min()), int(size.max())),
        size_class(int(size.max())),
        repetitions(first.loop) if first.loop is not None else 1,
        sorted(regular)[len(regular) // 2] if len(regular) == len(intervals) else None,
        len(rows),
        int(size.sum()),
        span,
        covers,
    )


def _covers(offset: Any, size: Any, span: tuple[int, int]) -> bool:
    if int(size.sum()) != span[1] - span[0]:
        return False
    order = np.argsort(offset, kind="stable")
    return bool((offset[order][1:] == (offset + size)[order][:-1]).all())


def _operation(file: RecognisedFile, pattern: GlobalPattern) -> str:
    first = pattern.segments[0]
    if first.loop is None:
        assert first.places is not None
        ops = {file.kinds[kind].op for kind, _ in first.places.kinds}
        return ops.pop() if len(ops) == 1 else "both"
    said = operation_text(first.loop, file.kinds)
    return {"reads": "read", "writes": "write", "reads and writes": "both"}.get(said, "alternating")


def spatial(pattern: GlobalPattern) -> str:
    """The spatial pattern in a word or two: those of docs/formats.md, Patterns."""
    segment = pattern.segments[0]
    places = segment.places
    if places is not None:
        return "scattered" if segment.loop is not None else "random strided" if places.is_forward else "random"
    assert segment.loop is not None
    if not segment.loop.body:
        return "single"
    dimensions, inner = nest_of(segment.loop)
    if inner.body:
        return "loop"
    moving = [each for each in dimensions if each[1] != 0]
    if not moving:
        return "fixed"
    stride = moving[-1][1]
    if len(moving) > 1:
        return "segmented" if stride == inner.size and len(moving) == 2 else "nested strided"
    if abs(stride) == inner.size:
        return "contiguous" if stride > 0 else "backward"
    return "overlapping" if abs(stride) < inner.size else "strided" if stride > 0 else "backward"


def repetitions(loop: Tree) -> int:
    """How often the whole is done: the rounds of outer loops that move nowhere."""
    dimensions, _ = nest_of(loop)
    count = 1
    for rounds, stride in dimensions:
        if stride:
            break
        count *= rounds
    return count
