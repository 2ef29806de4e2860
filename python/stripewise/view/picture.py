"""What a page shows of a trace, as one value: bins as fine as their share of the page allows, distributions, patterns.

Files with most bytes get pictures of their own; all others stand in the table as far as it goes. A file of few requests
brings each of them, so that zooming in shows every one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from .. import native
from ..errors import NoRequestsError
from ..pattern import PatternReport
from ..pattern.records import read_records
from ..pattern.report import report_of_records
from ..workload.counted import left_out_text
from .blob import blob, length, steps
from .replicas import FileReplicas
from .requests import Numbers, ViewRequests
from .targets import TargetLoad, loads_of

#: Bytes of a page for the timeline, for those of targets, and for the pictures of all files together.
TIMELINE_BYTES = 400_000
TARGETS_BYTES = 200_000
FILES_BYTES = 1_600_000
#: Files with pictures, and in the table.
PICTURED_MAX = 12
TABLE_MAX = 400
#: Rows of the timeline; more processes share rows.
ROWS_MAX = 128
#: Requests of a file that are all shown.
REQUESTS_MAX = 20_000
#: Levels of detail, finest first.
TIME_LEVELS = (4096, 2048, 1024, 512, 256, 128)
RASTER_LEVELS = ((512, 512), (384, 256), (256, 192), (128, 128), (64, 64), (16, 16))
HEAT_LEVELS = (4096, 1024, 256, 64)
#: Patterns of a file that are told; processes of each that are drawn; points of a line.
PATTERNS_MAX = 12
LINES_MAX = 8
POINTS_MAX = 48
#: Quiet of this part of the run ends no phase.
PHASE_GAP = 1 / 64


@dataclass(frozen=True)
class Picture:
    """The document of a page: JSON without infinities, numbers of bins as in `blob`."""

    document: dict[str, Any]


def picture_of(
    requests: ViewRequests, trace: Path, runs: int = 1, layers: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> Picture:
    """All pictures of a trace, which is one of `runs` in the page; patterns are read from `trace` anew.

    `layers` are sentences by path: what was asked of MPI-IO and what came of it.

    Raises what `read_records` does.
    """
    native_trace = requests.trace
    total = native.parsed(native_trace.distribution)
    end_ns = max(1, total["end_ns"])
    each = [native.parsed(native_trace.distribution, number) for number in range(len(requests.files))]
    order = sorted(range(len(each)), key=lambda number: (-sum(each[number]["bytes"]), requests.files[number]))
    pictured = order[:PICTURED_MAX]
    try:
        told_of = {requests.files[number] for number in pictured}
        report: PatternReport | None = report_of_records(read_records(trace, only=told_of))
    except NoRequestsError:
        # No request has a known place: there is no pattern, and times and sizes are shown all the same.
        report = None
    told = {file.path: _patterns(file) for file in report.files} if report is not None else {}
    shown = []
    for number in order[:TABLE_MAX]:
        found = {"path": requests.files[number], **_summary(each[number])}
        if number in pictured:
            share = FILES_BYTES // len(pictured) // runs
            found |= _pictures(requests, number, end_ns, each[number], share)
            found["patterns"] = told.get(requests.files[number], [])
            found["layers"] = list(layers.get(requests.files[number], []))
        shown.append(found)
    timeline, phases = _timeline(requests, end_ns, TIMELINE_BYTES // runs)
    loads = loads_of(requests, trace, end_ns, TIME_LEVELS[0])
    return Picture(
        {
            "version": 1,
            "source": requests.source,
            "command": list(requests.command),
            "notes": _notes(requests, total, len(each)),
            "end_ns": end_ns,
            "processes": [process.name for process in requests.processes],
            "total": total,
            "timeline": timeline,
            "phases": phases,
            "targets": [_load(each, TARGETS_BYTES // len(loads) // runs) for each in loads],
            "files": shown,
            "files_in_all": len(each),
        }
    )


def _summary(found: dict[str, Any]) -> dict[str, Any]:
    kept = ("requests", "bytes", "busy_ns", "begin_ns", "end_ns", "extent", "size_min", "size_max", "without_offset")
    return {key: found[key] for key in kept} | {
        "size": [_trimmed(column) for column in found["size"]],
        "latency": [_trimmed(column) for column in found["latency"]],
    }


def _trimmed(column: list[int]) -> list[int]:
    last = max((place for place, count in enumerate(column) if count), default=-1)
    return column[: last + 1]


def _timeline(requests: ViewRequests, end_ns: int, budget: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    together = -(-len(requests.processes) // ROWS_MAX)
    rows = -(-len(requests.processes) // together)
    made: dict[str, Any] = {}
    for limit in TIME_LEVELS:
        data, width, count = requests.trace.timeline(end_ns, limit, rows, together)
        cells: Numbers = np.frombuffer(data, dtype=np.uint64).reshape(3, rows, count)
        made = {"rows": rows, "together": together, "width": width, "count": count}
        made["layers"] = [blob(layer) for layer in cells]
        if sum(map(length, made["layers"])) <= budget:
            break
    sums = [np.ascontiguousarray(layer.sum(axis=0, dtype=np.uint64)) for layer in cells]
    found = native.call("view_phases", *sums, max(1, int(count * PHASE_GAP)))
    phases = [
        {"begin_ns": begin * width, "end_ns": min(end * width, end_ns), "kind": kind, "read": read, "written": written}
        for begin, end, kind, read, written in found
    ]
    return made, phases


def _load(load: TargetLoad, budget: int) -> dict[str, Any]:
    """A store's targets over time, as finely as the budget allows."""
    cells, width = load.cells, load.width
    while True:
        layers = [blob(np.ascontiguousarray(layer)) for layer in cells]
        if cells.shape[2] <= TIME_LEVELS[-1] or sum(map(length, layers)) <= budget:
            break
        cells = np.add.reduceat(cells, np.arange(0, cells.shape[2], 2), axis=2)
        width *= 2
    rows = [
        {
            "name": target.name,
            "class": target.klass,
            "accesses": accesses.tolist(),
            "bytes": moved.tolist(),
            "work_ns": round(work * 1e9),
        }
        for target, accesses, moved, work in zip(load.targets, load.accesses, load.bytes, load.work_s, strict=True)
    ]
    return {
        "store": load.store, "as_read": load.as_read, "without": load.without, "copied": load.copied, "more": load.more,
        "targets": rows,
        "rows": len(rows), "together": 1, "width": width, "count": cells.shape[2], "layers": layers,
    }  # fmt: skip


def _pictures(requests: ViewRequests, number: int, end_ns: int, found: dict[str, Any], budget: int) -> dict[str, Any]:
    trace, extent = requests.trace, max(1, found["extent"])
    made: dict[str, Any] = {}
    left = budget
    for limit in HEAT_LEVELS:
        data, width, count = trace.heat(number, extent, limit)
        bins: Numbers = np.frombuffer(data, dtype=np.uint64).reshape(2, count)
        made["heat"] = {"width": width, "count": count, "layers": [blob(layer) for layer in bins]}
        if (size := sum(map(length, made["heat"]["layers"]))) <= budget // 5:
            break
    left -= size
    rows = np.frombuffer(trace.file_rows(number), dtype=np.uint32)
    replicas = FileReplicas(requests, rows) if requests.copied[rows].any() else None
    if replicas is not None:
        made["replicas"] = replicas.document()
    if sum(found["requests"]) <= REQUESTS_MAX:
        single = _single(requests, rows, replicas)
        if sum(length(value) for value in single.values()) <= left:
            return made | {"single": single}
    for limits in RASTER_LEVELS:
        (data, width, count), time_width, time_count = trace.raster(number, (end_ns, extent), limits)
        cells = np.frombuffer(data, dtype=np.uint64).reshape(2, time_count, count)
        made["raster"] = {
            "width": width, "count": count, "time_width": time_width, "time_count": time_count,
            "layers": [blob(layer) for layer in cells],
        }  # fmt: skip
        if replicas is not None:
            made["raster"]["slot"] = replicas.raster(cells[0], (end_ns, extent), limits)
        if sum(map(length, [*made["raster"]["layers"], *filter(None, [made["raster"].get("slot")])])) <= left:
            break
    return made


def _single(requests: ViewRequests, rows: Numbers, replicas: FileReplicas | None) -> dict[str, Any]:
    """Each request of a file at a known offset, by start."""
    rows = rows[requests.offset[rows] >= 0]
    rows = rows[np.argsort(requests.start_ns[rows], kind="stable")]
    told = {} if replicas is None else {"replica": replicas.single(rows)}
    return told | {
        "start": blob(steps(requests.start_ns[rows])),
        "time": blob(requests.end_ns[rows] - requests.start_ns[rows]),
        "offset": blob(steps(requests.offset[rows])),
        "size": blob(requests.size[rows]),
        "process": blob(requests.process[rows]),
        "write": blob(requests.write[rows]),
    }


def _patterns(file: Any) -> list[dict[str, Any]]:
    records = file.recognised.records
    found = []
    for each in file.patterns[:PATTERNS_MAX]:
        segments = each.pattern.segments
        lines = []
        chosen = np.unique(np.linspace(0, len(segments) - 1, min(LINES_MAX, len(segments))).astype(int)).tolist()
        for segment in (segments[place] for place in chosen):
            if segment.is_regular:
                rows = file.recognised.rows(segment.stream)[segment.first : segment.first + segment.records]
                rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(POINTS_MAX, len(rows))).astype(int))]
                middle = records.offset[rows] + records.size[rows] // 2
                lines.append([records.start_ns[rows].tolist(), middle.tolist()])
        found.append(
            {
                "sentence": each.sentence, "spatial": each.spatial, "operation": each.operation,
                "begin_ns": min(segment.start_ns for segment in segments),
                "end_ns": max(segment.end_ns for segment in segments),
                "span": list(each.span), "records": each.records, "bytes": each.bytes, "lines": lines,
            }
        )  # fmt: skip
    return found


def _notes(requests: ViewRequests, total: dict[str, Any], files: int) -> list[str]:
    """What the page does not show, a sentence each."""
    notes = [f"The trace is partial: {reason}." for reason in requests.partial]
    if requests.end.text:
        notes.append(f"{requests.end.text[0].upper()}{requests.end.text[1:]}.")
    if requests.left_out:
        notes.append(f"{left_out_text(requests.left_out)}; --all-files includes them.")
    if total["without_offset"]:
        notes.append(
            f"The offsets of {total['without_offset']:,} requests are unknown: they are in times and sizes, not in "
            "pictures of files."
        )
    if sum(total["busy_ns"]) == 0:
        notes.append("No request has an end: how long calls took was not recorded.")
    if all(process.rank < 0 for process in requests.processes):
        notes.append("Ranks are unknown: rows are processes.")
    if files > PICTURED_MAX:
        notes.append(f"Of {files:,} files the {PICTURED_MAX} with most bytes have pictures of their own.")
    if files > TABLE_MAX:
        notes.append(f"The table has the {TABLE_MAX} files with most bytes.")
    return notes
