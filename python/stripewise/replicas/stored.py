"""What managers chose, read from the `--json` of the run that chose it (docs/replicas/reference.md): the replicas of
each, and RADAR's sets that stand.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..cluster import Cluster
from ..errors import PlanError, WorkloadError
from ..files.fields import Fields, read_json
from ..layout import Layout, parse_regions
from ..plan import PlannedReplicas
from ..plan.replicas import ON_WRITE
from ..units import OFFSET_BYTES_MAX
from .blocks import DIMS_MAX, Standing, StridedBlocks
from .candidate import STANDS, VERSION, Candidate, Decision, ReplicaSet

#: The most that a time or an age can be.
SECONDS_MAX = 1e12
#: Blocks of one replica that are looked up; each takes some 24 bytes.
BLOCKS_MAX = 1 << 24
_WHAT = "what 'stripewise replicate --what-if --json' printed"


def read_stored(path: Path) -> tuple[ReplicaSet, ...]:
    """The sets in a file of `replicate --what-if --json`, of all its managers; WorkloadError with file and key."""
    return sets_in(read_json(path, WorkloadError, _WHAT), path)


def read_choices(path: Path) -> list[tuple[str, tuple[Candidate, ...]]]:
    """Each manager in such a file with the replicas that it chose; WorkloadError with file and key."""
    return _choices_in(read_json(path, WorkloadError, _WHAT), path)


def _choices_in(data: Any, path: Path) -> list[tuple[str, tuple[Candidate, ...]]]:
    found = []
    for fields in _managers(data, path):
        chosen = []
        for number, each in enumerate(fields.tables("replicas")):
            inner = Fields(each, path, f"{fields.where}replicas[{number}].", WorkloadError)
            chosen.append(_candidate(inner))
            _check_blocks(inner, chosen[-1])
        found.append((fields.text("manager"), tuple(chosen)))
    return found


def planned(replicas: PlannedReplicas, cluster: Cluster, source: Path) -> Decision:
    """What a plan has beside its layouts, to be made; PlanError with file and key, and for targets that the cluster
    lacks.
    """
    try:
        data = {"version": VERSION, "managers": [replicas.as_decision()]}
        ((manager, chosen),) = _choices_in(data, source)
        sets = tuple(replace(each, is_stored=False) for each in sets_in(data, source))
    except WorkloadError as error:
        raise PlanError(str(error).replace("managers[0]", "replicas")) from error
    active = {each.name for each in cluster.active}
    for each in chosen:
        for name in sorted({name for region in each.layout.regions for name, _ in region.stripes} - active):
            raise PlanError(
                f"{source}: replicas of '{each.file}' name the target '{name}', which {cluster.source} does not have "
                f"as an active one; use one of {', '.join(sorted(active))}, or plan anew"
            )
    return Decision(manager, chosen, (), sets)


def sets_in(data: Any, path: Path) -> tuple[ReplicaSet, ...]:
    """The sets of all managers in the value of such a file; WorkloadError as above."""
    found = []
    for fields in _managers(data, path):
        for position, one in enumerate(fields.tables("sets")):
            found.append(_set(Fields(one, path, f"{fields.where}sets[{position}].", WorkloadError)))
    return tuple(found)


def _managers(data: Any, path: Path) -> list[Fields]:
    """The decision of each manager."""
    top = Fields(data, path, "", WorkloadError)
    version = top.integer("version", 1, 2**31)
    if version > VERSION:
        raise top.error("version", f"= {version} is newer than this program knows ({VERSION})", "upgrade stripewise")
    return [
        Fields(each, path, f"managers[{number}].", WorkloadError) for number, each in enumerate(top.tables("managers"))
    ]


def _check_blocks(fields: Fields, replica: Candidate) -> None:
    """Refuses blocks that no replica has: none, too many to look up, or such that share a byte."""
    count = sum(each.count for each in replica.blocks)
    if not 0 < count <= BLOCKS_MAX:
        raise fields.error("blocks", f"are {count:,}", f"give 1 to {BLOCKS_MAX:,}")
    if any(each.base + each.reach > OFFSET_BYTES_MAX for each in replica.blocks):
        raise fields.error("blocks", "reach beyond 2^62", "give smaller strides or counts")
    start, end = Standing(replica.blocks).intervals()
    if (start[1:] < end[:-1]).any():
        raise fields.error("blocks", "share bytes", "give each byte of a replica once")


def _set(fields: Fields) -> ReplicaSet:
    replicas = fields.tables("replicas")
    candidates = tuple(
        _candidate(Fields(each, fields.source, f"{fields.where}replicas[{number}].", WorkloadError))
        for number, each in enumerate(replicas)
    )
    return ReplicaSet(
        fields.text("file"),
        candidates,
        fields.integer("start_ns", 0, 2**63 - 1),
        fields.number("benefit_s", -SECONDS_MAX, SECONDS_MAX),
        fields.number("age", 0.0, SECONDS_MAX),
        is_stored=True,
    )


def _candidate(fields: Fields) -> Candidate:
    blocks = tuple(
        _blocks(Fields(each, fields.source, f"{fields.where}blocks[{number}].", WorkloadError))
        for number, each in enumerate(fields.tables("blocks"))
    )
    layout = Fields(fields.table("layout"), fields.source, f"{fields.where}layout.", WorkloadError)
    regions = parse_regions(layout.items("regions"), fields.source, f"{layout.where}regions", None, WorkloadError)
    space = Fields(fields.table("space_bytes"), fields.source, f"{fields.where}space_bytes.", WorkloadError)
    return Candidate(
        file=fields.text("file"),
        words=fields.text("pattern"),
        also=tuple(str(each) for each in fields.items("also")),
        blocks=blocks,
        operation=fields.choice("operation", ("read", "write", "both")),
        processes=fields.integer("processes", 1, 2**31),
        requests=fields.integer("requests", 1, 2**62),
        bytes=fields.integer("bytes", 1, 2**62),
        request_bytes=fields.integer("request_bytes", 1, 2**62),
        space=fields.text("space"),
        scheme=fields.text("scheme"),
        layout=Layout(regions),
        benefit_s=fields.number("benefit_s", -SECONDS_MAX, SECONDS_MAX),
        original_s=fields.number("original_s", 0.0, SECONDS_MAX),
        replica_s=fields.number("replica_s", 0.0, SECONDS_MAX),
        space_bytes={name: space.integer(name, 0, OFFSET_BYTES_MAX) for name in space.data},
        build_s=0.0,
        reasons=STANDS,
        # Earlier versions know no other.
        on_write=fields.choice("on_write", ON_WRITE) if "on_write" in fields.data else ON_WRITE[0],
    )


def _blocks(fields: Fields) -> StridedBlocks:
    dims: list[tuple[int, int]] = []
    given: list[Any] = fields.items("dims")
    for number, pair in enumerate(given):
        if not isinstance(pair, list) or len(pair) != 2 or not all(type(each) is int and each > 0 for each in pair):
            raise fields.error(f"dims[{number}]", "is not a pair", "write [stride, count], both above 0")
        dims.append((pair[0], pair[1]))
    if len(dims) > DIMS_MAX:
        raise fields.error("dims", f"has {len(dims)} loops", f"give {DIMS_MAX} at most")
    return StridedBlocks(
        fields.integer("base", 0, OFFSET_BYTES_MAX), fields.integer("block", 1, OFFSET_BYTES_MAX), tuple(dims)
    )
