"""A profile as a trace: the reads and writes of all ranks of a synthetic path, for what plans or simulates traces.

Nothing runs: times are the path's slack and, where the profile tells them, the durations of its operations. The bytes
of a collective call are dealt to its ranks in file order, as two-phase I/O does it; views scatter them no more.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import NoRequestsError
from .. import path as paths
from ..characterization.profile_reader import read_profile
from ..operations import by_number, operations
from .synthesize import STATISTICS, SYMBOLIC, synthesize

SCHEMA = pa.schema(
    [
        ("process", pa.int32()), ("pid", pa.int32()), ("rank", pa.int32()), ("world", pa.int32()),
        ("thread", pa.int32()), ("layer", pa.string()), ("op", pa.string()), ("file", pa.string()), ("fd", pa.int32()),
        ("offset", pa.int64()), ("requested", pa.int64()), ("done", pa.int64()), ("start_ns", pa.int64()),
        ("end_ns", pa.int64()), ("errno", pa.int32()), ("flags", pa.int32()), ("aux", pa.int32()),
    ]
)  # fmt: skip
#: How long an operation takes of which nothing is known.
UNKNOWN_NS = 1000


def as_trace(path: Path, processes: int | None = None, seed: int = 1) -> Path:
    """The directory of a trace of a synthetic path, which goes when the program ends. Raises WorkloadError."""
    scratch = Path(tempfile.mkdtemp(prefix="stripewise-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    place = scratch / path.name
    write_trace(path, place, processes, seed)
    return place


def write_trace(profile: Path, place: Path, processes: int | None = None, seed: int = 1) -> int:
    """trace.parquet and meta.json of a profile's synthetic path in the new directory `place`; how many records.

    Files lie below the current directory. Raises WorkloadError, NoRequestsError where it reads and writes nothing.
    """
    data = read_profile(profile).as_json()
    place.mkdir(parents=True)
    out = place / "path.swp"
    made = synthesize(data, str(profile), out, processes, seed)
    total = 0
    files = paths.info(out)["files"]
    durations = _durations(data.get("programs"))
    shared = np.array([each["class"] == "shared" for each in files], np.bool_)
    alone = _alone(made.way, data.get("programs"))
    root = paths.requests(out, made.processes, 0)
    with pq.ParquetWriter(place / "trace.parquet", SCHEMA) as writer:
        for rank in range(made.processes):
            found = paths.requests(out, made.processes, rank) if rank else root
            names = [os.path.abspath(each["name"].replace("{rank}", str(rank))) for each in files]
            _deal(found, root, shared, alone, rank)
            table = _table(found, names, rank, made.processes, durations)
            if table.num_rows:
                writer.write_table(table)
            total += table.num_rows
    out.unlink()
    if not total:
        raise NoRequestsError(f"{profile}: has no reads and writes; give one that moves bytes")
    meta = {
        "version": 1, "tool": "stripewise synth", "cwd": os.getcwd(),
        "partial": ["nothing ran: its requests are those of a synthetic path of the profile"],
        "command": [data["application"]] if data["application"] else [],
    }  # fmt: skip
    (place / "meta.json").write_text(json.dumps(meta))
    return total


def _durations(programs: Any) -> Any:
    found = np.full(256, UNKNOWN_NS, np.int64)
    given = programs.get("durations_s") if isinstance(programs, Mapping) else None
    for name, seconds in (given or {}).items():
        if name in operations():
            found[operations()[name].number] = max(UNKNOWN_NS, round(float(seconds) * 1e9))
    return found


def _alone(way: str, programs: Any) -> list[int]:
    """Numbers of communicators of one rank each: a path has those of its patterns first, then, of statistics, that of
    all ranks and of each by itself."""
    listed = (programs.get("comms") or ["world"]) if way != STATISTICS else []
    return [at for at, each in enumerate(listed) if each == "self"] + ([len(listed) + 1] if way != SYMBOLIC else [])


def _deal(found: Any, root: Any, shared: Any, alone: list[int], rank: int) -> None:
    """In collective calls of all on a file, each rank's bytes follow those of the rank before: moves a rank's there."""
    if not rank:
        return
    together = np.zeros(256, np.bool_)
    for number, each in by_number().items():
        together[number] = each.is_data and ("_all" in each.name or "_ordered" in each.name)
    mine, of_root = (
        np.flatnonzero(together[each["op"]] & shared[each["file"]] & ~np.isin(each["comm"], alone))
        for each in (found, root)
    )
    for file in np.unique(found["file"][mine]).tolist():
        here, there = mine[found["file"][mine] == file], of_root[root["file"][of_root] == file]
        if np.array_equal(found["op"][here], root["op"][there]):
            found["offset"][here] = root["offset"][there] + rank * found["size"][here].astype(np.int64)


def _table(found: Any, names: list[str], rank: int, processes: int, durations: Any) -> Any:
    op = found["op"]
    cost = durations[op]
    ends = np.cumsum(found["slack_ns"].astype(np.int64) + cost)
    data = np.zeros(256, np.bool_)
    writes = data.copy()
    for number, each in by_number().items():
        data[number] = each.is_data
        writes[number] = each.is_data and "write" in each.name
    offset, size = found["offset"], found["size"].astype(np.int64)
    rows = np.flatnonzero(data[op] & (size > 0) & (offset >= 0))
    count = len(rows)

    def same(value: int | None) -> Any:
        return pa.nulls(count, pa.int32()) if value is None else pa.array(np.full(count, value), pa.int32())

    columns = [
        same(rank), same(rank + 1), same(rank), same(processes), same(1), pa.array(["posix"] * count, pa.string()),
        pa.array(np.where(writes[op[rows]], "write", "read"), pa.string()),
        pa.array(np.asarray(names, dtype=object)[found["file"][rows]], pa.string()), same(None), offset[rows],
        size[rows], size[rows], (ends - cost)[rows], ends[rows], same(0), same(0), same(0),
    ]  # fmt: skip
    return pa.table(columns, schema=SCHEMA)
