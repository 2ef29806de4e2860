"""Simulated runs of one workload from its files as they lie and from the replicas that managers would make of them.

The requests are those of the program, a closed loop that keeps its think times; each container is a file of its own on
its replica's layout. Building the replicas takes no time here: they are there when the run begins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import native
from ..cluster import Cluster
from ..errors import WorkloadError, naming
from ..layout import Layout
from ..pattern.views import Views
from ..simulate.run import Settings
from ..simulate.scenario import Cycles, frame
from ..workload.requests import Requests, Workload, dealt
from .candidate import Candidate
from .serving import served

#: The run without replicas.
ORIGINAL = "original"


@dataclass(frozen=True)
class Served:
    """One run: how many replicas it had, the bytes that they served or took, the bytes of all requests, and how long
    it took.
    """

    name: str
    replicas: int
    replica_bytes: int
    bytes: int
    seconds: float
    #: Of the engine (docs/formats.md).
    report: Mapping[str, Any]

    @property
    def io_s(self) -> float:
        """The seconds with any read under way and those with any write, added."""
        return float(self.report["in_flight_s"])

    @property
    def mb_s(self) -> float:
        """The program's bytes over the whole run, in 10^6 bytes a second."""
        return self.bytes / self.seconds / 1e6 if self.seconds else 0.0

    @property
    def replica_share(self) -> float:
        """The part of what the program moved that replicas served; above 1 where writes go to several copies."""
        return self.replica_bytes / self.bytes if self.bytes else 0.0

    def times(self, original: Served) -> float | None:
        """The seconds of another run over its own; None where it took none."""
        return original.seconds / self.seconds if self.seconds else None

    def as_json(self, original: Served) -> dict[str, Any]:
        """A row of `simulate --replicas --json`."""
        return {
            "name": self.name,
            "replicas": self.replicas,
            "seconds": self.seconds,
            "mb_s": self.mb_s,
            "times_original": self.times(original),
            "bytes": self.bytes,
            "replica_bytes": self.replica_bytes,
            "bound_s": self.report["bound_s"],
        }


@dataclass(frozen=True)
class _File:
    """What the engine is told of a file or container."""

    name: str
    size_bytes: int
    layout: Layout
    requests: Requests
    views: Views | None = None


def simulate_served(
    workload: Workload,
    cluster: Cluster,
    layouts: Mapping[str, Layout],
    choices: Sequence[tuple[str, Sequence[Candidate]]],
    settings: Settings | None = None,
    has_original: bool = True,
    views: Mapping[str, Views] | None = None,
) -> list[Served]:
    """The workload from its files as they lie, by `layouts`, then with the replicas of each choice (name, replicas).

    Without `has_original` the choices alone. `views`, by path, are calls of MPI-IO that copies may serve.
    Raises WorkloadError for replicas that are of none of the files, PlanError for targets that the cluster lacks.
    """
    given = settings or Settings()
    own = [file.requests for file in workload.files]
    tables = dealt(own, workload.processes)
    is_ranked, by_path = tables is own, views or {}
    files = [
        # Calls find what they made by rank.
        _File(file.path, file.size_bytes, layouts[file.path], table, by_path.get(file.path) if is_ranked else None)
        for file, table in zip(workload.files, tables, strict=True)
    ]
    wanted = [(ORIGINAL, ()), *choices] if has_original else choices
    return [_run(name, files, mine, workload.source, cluster, given) for name, mine in wanted]


def _run(
    name: str, files: Sequence[_File], replicas: Sequence[Candidate], source: str, cluster: Cluster, settings: Settings
) -> Served:
    kept: list[_File] = []
    containers: list[_File] = []
    for file in files:
        mine = [each for each in replicas if each.file == file.name]
        parted = served(file.requests, mine, file.views)
        kept.append(_File(file.name, file.size_bytes, file.layout, parted.file))
        containers += [
            _File(f"replica {number} of {file.name}", sum(part.bytes for part in each.blocks), each.layout, requests)
            for number, (each, requests) in enumerate(zip(mine, parted.containers, strict=True), 1)
        ]
    if replicas and not containers:
        raise WorkloadError(
            f"{source}: no request is of a file that {name} has replicas of, as {replicas[0].file}; give the replicas "
            "of this run, or other files of the trace"
        )
    report = _report([*kept, *containers], source, cluster, settings)
    moved = sum(int(file.requests["size"].sum()) for file in files)
    in_replicas = sum(int(each.requests["size"].sum()) for each in containers)
    return Served(name, len(containers), in_replicas, moved, float(report["seconds"]), report)


def _report(files: Sequence[_File], source: str, cluster: Cluster, settings: Settings) -> dict[str, Any]:
    """The engine's report of these files' requests."""
    servers = cluster.holding
    cycles = Cycles({each.name: number for number, each in enumerate(servers)}, str(cluster.source))
    made = frame(cluster, servers, [(each.name, each.size_bytes) for each in files])
    for each, file in zip(made["files"], files, strict=True):
        each["regions"] = [[r.start, r.len, *cycles.place(r.stripes)] for r in file.layout.regions]
    made |= {"cycles": cycles.made, "seed": settings.seed, "read_ahead_bytes": settings.read_ahead_bytes}
    tables = [np.ascontiguousarray(each.requests).tobytes() for each in files]
    with naming(source):
        return dict(native.call("simulate_requests", json.dumps(made), tables, max(map(len, tables), default=0) + 1))
