"""What a program would do with another number of processes: a trace without times, from the runs that were seen."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import WorkloadError
from ..files.parts import write_durably
from .extrapolate import WORDS, Run, Scaled, scaled
from .local import expanded
from .records import Kind
from .report import PatternReport
from .words import size_text

SCHEMA = pa.schema(
    [
        ("process", pa.int32()), ("pid", pa.int32()), ("rank", pa.int32()), ("world", pa.int32()),
        ("thread", pa.int32()), ("layer", pa.string()), ("op", pa.string()), ("file", pa.string()), ("fd", pa.int32()),
        ("offset", pa.int64()), ("requested", pa.int64()), ("done", pa.int64()), ("start_ns", pa.int64()),
        ("end_ns", pa.int64()), ("errno", pa.int32()), ("flags", pa.int32()), ("aux", pa.int32()),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class FilePrediction:
    """One file at the number of processes that was asked for."""

    path: str
    kinds: tuple[Kind, ...]
    patterns: tuple[Scaled, ...]
    #: Sentences of patterns that follow no formula, or only in some of the runs: not predicted.
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class Prediction:
    """What is known of a run that was not seen."""

    processes: int
    application: str
    files: tuple[FilePrediction, ...]

    def doubts(self) -> list[str]:
        """Where it is not sure: formulas that fit the runs and disagree, and patterns that are left out."""
        found = []
        for file in self.files:
            found += [f"{file.path}: {doubt}" for each in file.patterns for doubt in each.doubts(self.processes)]
            found += [f"{file.path}: not predicted: {said}" for said in file.left_out]
        return found

    def formulas(self) -> list[str]:
        """Each pattern's numbers by their formulas of P and rank."""
        found = []
        for file in self.files:
            for each in file.patterns:
                said = _nest_text(each) or "; ".join(f"{WORDS[name]} {_series_text(row)}" for name, row in each.numbers)
                grid = f"in a grid of {' x '.join(row[0].text for row in each.grid)} processes; " if each.grid else ""
                found.append(f"{file.path}: {_of_ranks(each.ranks)}: {grid}{said}")
        return found

    def records(self, file: FilePrediction) -> Iterator[tuple[int, Any, Any, Any]]:
        """Rank, and kind, offset and size of its records in their order."""
        parts: dict[int, list[tuple[Any, Any, Any]]] = {}
        for each in file.patterns:
            trees = each.trees(self.processes)
            if trees is None:
                which = f"{self.processes} processes"
                raise WorkloadError(
                    f"{file.path}: its formulas give no whole numbers for {which}; ask for another number"
                )
            for rank, tree in trees.items():
                parts.setdefault(rank, []).append(expanded(tree))
        for rank in sorted(parts):
            kind, offset, size = (np.concatenate([part[column] for part in parts[rank]]) for column in range(3))
            yield rank, kind, offset, size

    def write(self, place: Path) -> int:
        """trace.parquet and meta.json in the directory `place`; returns how many records.

        Starts are only an order: the records of a process are numbered, 1 ns each.
        """
        place.mkdir(parents=True, exist_ok=True)
        total = 0
        clock: dict[int, int] = {}
        with (
            tempfile.TemporaryDirectory(prefix=".predict.", dir=place) as scratch,
            pq.ParquetWriter(Path(scratch) / "trace.parquet", SCHEMA) as writer,
        ):
            for number, file in enumerate(self.files):
                for rank, *columns in self.records(file):
                    table = self._table(file, number, rank, columns, clock.get(rank, 0))
                    clock[rank] = clock.get(rank, 0) + table.num_rows
                    total += table.num_rows
                    writer.write_table(table)
            meta = {
                "version": 1,
                "tool": "stripewise patterns predict",
                "command": shlex.split(self.application),
                "predicted": True,
            }
            writer.close()
            # The old meta.json first: a trace never stands beside that of another.
            (place / "meta.json").unlink(missing_ok=True)
            os.replace(Path(scratch) / "trace.parquet", place / "trace.parquet")
            write_durably(place / "meta.json", json.dumps(meta))
        return total

    def _table(self, file: FilePrediction, number: int, rank: int, columns: Sequence[Any], clock: int) -> Any:
        kind, offset, size = columns
        rows = len(kind)

        def of(name: str) -> Any:
            return np.array([getattr(each, name) for each in file.kinds])[kind]

        start = np.arange(clock, clock + rows, dtype=np.int64)
        fixed = {"process": rank, "pid": rank, "rank": rank, "world": self.processes, "thread": rank, "fd": number}
        made: dict[str, Any] = {name: np.full(rows, value, dtype=np.int32) for name, value in fixed.items()}
        made |= {"layer": np.full(rows, "posix"), "op": of("op"), "file": np.full(rows, file.path)}
        made |= {
            "offset": offset,
            "requested": size + of("short"),
            "done": size,
            "start_ns": start,
            "end_ns": start + 1,
        }
        made |= {name: of(name) for name in ("errno", "flags", "aux")}
        return pa.table({name: pa.array(made[name], SCHEMA.field(name).type) for name in SCHEMA.names})


def _of_ranks(name: str) -> str:
    """The set of ranks in words."""
    return {"first": "rank 0", "last": "the last rank"}.get(name, f"{name} ranks" if name == "all" else f"all {name}")


def _nest_text(scaled: Scaled) -> str:
    """Loops within each other as one sentence, the outermost first; empty where a loop holds several requests, or one
    that begins elsewhere than the loop.
    """
    said = [(name, _series_text(series)) for name, series in scaled.numbers]
    (_, begin), (_, outer), *rest = said
    loops, names = [], [name for name, _ in rest]
    while names[:3] == ["count", "at", "stride"]:
        (_, count), (_, at), (_, stride), *rest = rest
        if at != "0":
            return ""
        loops.append(f"{count} rounds, one every {stride} bytes, of " if stride != "0" else f"{count} rounds of ")
        names = [name for name, _ in rest]
    return f"from byte {begin} on: {''.join(loops)}{rest[0][1]} bytes" if names == ["size"] and outer == "0" else ""


def _series_text(series: Sequence[Sequence[Any]]) -> str:
    names = ["", " x r"] if len(series) == 2 else ["", *(f" x c{axis}" for axis in range(1, len(series)))]
    said = [
        f"{f'({each[0].text})' if ' ' in each[0].text else each[0].text}{name}"
        for each, name in zip(series, names, strict=True)
        if each[0].text != "0"
    ]
    return " + ".join(said) or "0"


def predicted(reports: Sequence[PatternReport], processes: int) -> Prediction:
    """The run with so many processes, from runs with other numbers of them: two or more that differ.

    Files are matched by their paths, or by their order where all runs have as many. Raises WorkloadError where the runs
    cannot be compared.
    """
    runs = sorted(reports, key=lambda each: each.processes)
    if len({each.processes for each in runs}) < 2:
        raise WorkloadError("predict: needs traces of two or more runs that differ in their number of processes")
    found = []
    for place, first in enumerate(runs[0].files):
        others = [next((file for file in run.files if file.path == first.path), None) for run in runs]
        if None in others and len({len(run.files) for run in runs}) == 1:
            others = [run.files[place] for run in runs]
        alike = [Run(run.processes, tuple(each.pattern for each in file.patterns))
                 for run, file in zip(runs, others, strict=True) if file is not None]  # fmt: skip
        if len(alike) < len(runs) or any(file is not None and file.kinds != first.kinds for file in others):
            found.append(FilePrediction(first.path, first.kinds, (), tuple(each.sentence for each in first.patterns)))
            continue
        patterns, rest = scaled(alike)
        left = [each.sentence for each in first.patterns if each.pattern in rest]
        found.append(FilePrediction(first.path, first.kinds, patterns, tuple(left)))
    return Prediction(processes, runs[0].application, tuple(found))


def total_text(prediction: Prediction) -> str:
    """Requests and bytes in all, in words."""
    trees = [tree for file in prediction.files for each in file.patterns
             for tree in (each.trees(prediction.processes) or {}).values()]  # fmt: skip
    return f"{sum(tree.records for tree in trees):,} requests, {size_text(sum(tree.bytes for tree in trees))}"
