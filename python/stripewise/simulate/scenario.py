"""A plan and a cluster as the scenario that the engine takes: servers, cycles of stripes, files, moves.

Cycles are shared: regions whose stripes are one cycle begun at different servers name it once, with the entry that is
first. The form is drawn in docs/formats.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..cluster import Cluster, Target
from ..errors import PlanError
from ..layout import Stripes
from ..plan import FilePlan, Plan

VERSION = 1
#: The mover's chunk (moving/).
CHUNK_BYTES = 8 << 20
TIMELINE_BUCKETS = 100


class Cycles:
    """The cycles of a scenario, each once however it is rotated."""

    def __init__(self, index: dict[str, int], source: str) -> None:
        self.made: list[list[list[int]]] = []
        self._index = index
        self._source = source
        self._numbers: dict[tuple[tuple[int, int], ...], int] = {}
        #: By identity: policies share tuples, and hashing one of thousands of stripes is not free. Kept alive here.
        self._seen: dict[int, tuple[Stripes, int, int]] = {}

    def place(self, stripes: Stripes) -> tuple[int, int]:
        """The number of the cycle and the entry that these stripes begin with."""
        if id(stripes) in self._seen:
            return self._seen[id(stripes)][1:]
        try:
            entries = tuple((self._index[name], width) for name, width in stripes)
        except KeyError as error:
            raise PlanError(
                f"{self._source}: has no active target {error}, which the plan names; plan for this cluster"
            ) from error
        low = entries.index(min(entries))
        turned = entries[low:] + entries[:low]
        number = self._numbers.setdefault(turned, len(self.made))
        if number == len(self.made):
            self.made.append([list(entry) for entry in turned])
        first = (len(entries) - low) % len(entries)
        self._seen[id(stripes)] = (stripes, number, first)
        return number, first


def scenario(
    plan: Plan,
    cluster: Cluster,
    paths: Sequence[str],
    seed: int = 1,
    read_ahead_bytes: int = 0,
    copy_bytes_per_s: float = 0.0,
) -> dict[str, Any]:
    """The scenario of a workload on `paths` placed by `plan`; requests name files by their position in `paths`.

    Raises PlanError for a path that the plan lacks and for a target that the cluster lacks.
    """
    named = {name for file in plan.files for region in file.regions for name, _ in region.stripes}
    servers = [target for target in cluster.targets if target.is_active or target.name in named]
    cycles = Cycles({target.name: number for number, target in enumerate(servers)}, str(cluster.source))
    files = files_of(plan, paths)
    made = frame(cluster, servers, [(file.path, file.size) for file in files])
    for each, file in zip(made["files"], files, strict=True):
        each["regions"] = [[r.start, r.len, *cycles.place(r.stripes)] for r in file.regions]
    return {
        **made,
        "seed": seed,
        "moves": moves_of(plan, files, cycles),
        "copy": {**made["copy"], "rate_bytes_per_s": copy_bytes_per_s},
        "read_ahead_bytes": read_ahead_bytes,
        "timeline_buckets": TIMELINE_BUCKETS,
        "cycles": cycles.made,
    }


def frame(cluster: Cluster, servers: Sequence[Target], files: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """What a scenario is without a layout: servers, network, files by name and size in bytes."""
    network = cluster.network
    return {
        "version": VERSION,
        "servers": [
            {"name": target.name, "device": _device(target), "disk": target.device.disk_settings()}
            for target in servers
        ],
        "network": {
            "establish_s": network.establish_s,
            "per_byte_s": network.per_byte_s,
            "processes_per_node": network.processes_per_node,
        },
        "files": [{"name": name, "size_bytes": size, "regions": []} for name, size in files],
        "cycles": [],
        "copy": {"chunk_bytes": CHUNK_BYTES, "in_flight": 1},
    }


def files_of(plan: Plan, paths: Sequence[str]) -> list[FilePlan]:
    """The plan's files for `paths`; where both have just one, that is it whatever it is called."""
    known = {file.path: file for file in plan.files}
    if len(paths) == len(plan.files) == 1:
        return list(plan.files)
    for path in paths:
        if path not in known:
            raise PlanError(f"the plan of {plan.policy} has no file '{path}', which the workload touches; plan for it")
    return [known[path] for path in paths]


def _device(target: Target) -> dict[str, Any]:
    read = (target.startup_read_s, target.startup_read_spread_s, target.per_byte_read_s)
    write = (target.startup_write_s, target.startup_write_spread_s, target.per_byte_write_s)
    return target.device.as_scenario(read, write)


def moves_of(plan: Plan, files: Sequence[FilePlan], cycles: Cycles) -> list[dict[str, Any]]:
    """The plan's moves of these files, in their order, of the part of a region that the file reaches."""
    index = {file.path: number for number, file in enumerate(files)}
    moves = []
    for migration in plan.migrations:
        for move in migration.moves:
            number = index.get(move.file)
            if number is None:
                continue
            length = min(move.len, files[number].size - move.start)
            if length > 0:
                cycle, first = cycles.place(move.stripes)
                at_s = migration.start_ns / 1e9
                moves.append(
                    {"at_s": at_s, "file": number, "start": move.start, "len": length, "cycle": cycle, "first": first}
                )
    return moves
