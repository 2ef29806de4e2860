"""Renames of a traced run: whose requests are whose, under the names that files have at last."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from ..model.general import Int
from .requests import FileRequests, Workload
from .trace import opened, read_meta, run_place, trace_file

_COLUMNS = ("op", "file", "file2", "start_ns", "errno")


@dataclass(frozen=True)
class Rename:
    """A file was given another name, at a time of the trace's clock."""

    at_ns: int
    old: str
    new: str


def renames_in(collected: Path) -> list[Rename]:
    """The renames of a traced run, in their order; those that failed are none."""
    found: list[Rename] = []
    place = run_place(read_meta(collected))
    with opened(trace_file(collected)) as parquet:
        # A table of another maker need not tell names that were given.
        columns = [name for name in _COLUMNS if name in parquet.schema_arrow.names]
        for group in range(parquet.num_row_groups if len(columns) == len(_COLUMNS) else 0):
            table = parquet.read_row_group(group, columns=columns)
            table = table.filter(pc.equal(table["op"].cast("string"), "rename"))
            found += [
                Rename(int(row["start_ns"]), whole_path(row["file"], place), whole_path(row["file2"], place))
                for row in table.select(columns).to_pylist()
                if row["file"] and row["file2"] and not row["errno"] and row["file"] != row["file2"]
            ]
    return sorted(found, key=lambda rename: rename.at_ns)


def whole_path(path: str, place: str) -> str:
    """A path of a trace as calls that open files have it: names that calls give and nothing opens may be relative, to
    the working directory of the run as far as anybody knows.
    """
    return path if path.startswith("/") or not place else os.path.normpath(os.path.join(place, path))


def first_names(renames: Sequence[Rename]) -> dict[str, str]:
    """Of every name that a file has at last after renames, the name that it had first."""
    first: dict[str, str] = {}
    for rename in renames:
        first[rename.new] = first.pop(rename.old, rename.old)
    return first


def as_renamed(workload: Workload, renames: Sequence[Rename], is_there: Callable[[str], bool]) -> Workload:
    """The workload with the requests of every file under the name that it has at last.

    Until a name is given away, its requests are of the file that had it. Those after that are of the next file of that
    name, or, where there `is_there` none at last, of the one that was still open.
    """
    if not renames:
        return workload
    parts: dict[str, list[FileRequests]] = {}
    for file in workload.files:
        away = [number for number, rename in enumerate(renames) if rename.old == file.path]
        times = np.array([renames[number].at_ns for number in away], dtype=np.int64)
        turn: Int = np.searchsorted(times, file.requests["start_ns"], side="right")
        for number in np.unique(turn).tolist():
            last = number == len(away)
            if last and (not away or is_there(file.path)):
                name = file.path
            else:
                name = _followed(renames, away[min(number, len(away) - 1)])
            parts.setdefault(name, []).append(replace(file, path=name, requests=file.requests[turn == number]))
    files = []
    for name in parts:
        requests = np.concatenate([file.requests for file in parts[name]])
        requests = requests[np.argsort(requests["start_ns"], kind="stable")]
        files.append(FileRequests(name, requests, max(file.size_bytes for file in parts[name])))
    files.sort(key=lambda file: (-int(file.requests["size"].sum()), file.path))
    return replace(workload, files=tuple(files))


def _followed(renames: Sequence[Rename], begin: int) -> str:
    """The last name of the file that rename number `begin` moves."""
    name = renames[begin].old
    for rename in renames[begin:]:
        if rename.old == name:
            name = rename.new
    return name
