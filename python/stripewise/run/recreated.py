"""Names that a program gives to files it makes anew, and the templates that lay those out.

A new file gets its layout when it is made, by its name then: a checkpoint's number changes from run to run, and a file
that is renamed into place was made under another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePath

import numpy as np
import pyarrow.compute as pc

from ..store.globs import escape
from ..workload import FileRequests, Workload
from ..workload.trace import opened, trace_file

_NUMBER = re.compile(r"\d+")


def renamed_in(collected: Path) -> dict[str, str]:
    """Of every name that a traced run gave to a file by renaming it, the name that it had before."""
    found: dict[str, str] = {}
    with opened(trace_file(collected)) as parquet:
        # A table of another maker need not tell names that were given.
        columns = [name for name in ("op", "file", "file2") if name in parquet.schema_arrow.names]
        for group in range(parquet.num_row_groups if len(columns) == 3 else 0):
            table = parquet.read_row_group(group, columns=columns)
            table = table.filter(pc.equal(table["op"].cast("string"), "rename"))
            for old, new in zip(table["file"].to_pylist(), table["file2"].to_pylist(), strict=True):
                if old and new:
                    found[str(new)] = str(old)
    return found


def as_renamed(workload: Workload, renamed: Mapping[str, str]) -> Workload:
    """The workload with all requests of a file under the name that it had at last."""
    later = {old: new for new, old in renamed.items() if old != new}
    parts: dict[str, list[FileRequests]] = {}
    for file in workload.files:
        name, seen = file.path, {file.path}
        while (name := later.get(name, name)) not in seen:
            seen.add(name)
        parts.setdefault(name, []).append(file)
    files = []
    for name in sorted(parts):
        requests = np.concatenate([file.requests for file in parts[name]])
        requests = requests[np.argsort(requests["start_ns"], kind="stable")]
        files.append(FileRequests(name, requests, max(file.size_bytes for file in parts[name])))
    return replace(workload, files=tuple(files))


def globs_of(made: Iterable[str], known: Iterable[str], renamed: Mapping[str, str]) -> dict[str, str]:
    """For files that are made anew the globs that their names match, each with a file that it stands for.

    Numbers in which `known` names of the same directory differ are `*`; `renamed` has the names that files had before.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for name in sorted(set(known)):
        alike.setdefault(_shape(name), []).append(name)
    found: dict[str, str] = {}
    for name in sorted(set(made)):
        found.setdefault(_glob(name, alike.get(_shape(name), [name])), name)
        if name in renamed:
            found.setdefault(_glob(renamed[name], [renamed[name]]), name)
    return found


def _shape(name: str) -> tuple[str, str]:
    path = PurePath(name)
    return str(path.parent), _NUMBER.sub("0", path.name)


def _glob(name: str, alike: Iterable[str]) -> str:
    """The pattern of a name: the numbers in which others of its shape differ are anything."""
    path = PurePath(name)
    columns = zip(*(_NUMBER.findall(PurePath(each).name) for each in {name, *alike}), strict=True)
    differs = iter([len(set(column)) > 1 for column in columns])
    parts = []
    at = 0
    for number in _NUMBER.finditer(path.name):
        parts += [escape(path.name[at : number.start()]), "*" if next(differs) else number.group()]
        at = number.end()
    return "".join([escape(f"{path.parent}/" if path.parent != PurePath("/") else "/"), *parts, escape(path.name[at:])])
