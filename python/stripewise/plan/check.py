"""Holds a plan against a cluster: every target exists and none is overfilled, at the start and after every move."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..cluster import Cluster
from ..errors import PlanError
from ..layout import Stripes
from ..units import command_line, format_size
from .document import Plan
from .migrations import replay


def check_plan(
    plan: Plan, cluster: Cluster, source: Path | str, reserved_bytes: Mapping[str, int] | None = None
) -> list[str]:
    """Holds the plan against a cluster of which other files hold `reserved_bytes` by target; returns remarks that do
    not stop it.

    Raises PlanError for a target that is not there and for one that would be overfilled.
    """
    held_by_others = reserved_bytes or {}
    known = {
        target.name: target.usable_bytes and max(1, target.usable_bytes - held_by_others.get(target.name, 0))
        for target in cluster.active
    }
    for number, file in enumerate(plan.files):
        for position, region in enumerate(file.regions):
            _exist(region.stripes, known, cluster, f"{source}: files[{number}].regions[{position}]")
    for number, migration in enumerate(plan.migrations):
        for position, move in enumerate(migration.moves):
            _exist(move.stripes, known, cluster, f"{source}: migrations[{number}].moves[{position}]")
    held = plan.bytes_per_target()
    _fit(held, known, cluster, f"{source}:")
    remarks = []
    if plan.cluster_digest and plan.cluster_digest != cluster.digest():
        remarks.append(
            f"warning: {source}: was made for other targets or figures than {cluster.source} has now; it can be "
            "applied, but a new plan may be faster"
        )
    stated = {name: count for name, count in plan.target_bytes.items() if count}
    if plan.target_bytes and stated != {name: count for name, count in held.items() if count}:
        remarks.append(f"{source}: target_bytes differs from the regions (edited by hand?); the regions count")
    return remarks + _check_moves(plan, known, cluster, source, held)


def _exist(stripes: Stripes, known: Mapping[str, int], cluster: Cluster, where: str) -> None:
    for name, _ in stripes:
        if name in known:
            continue
        if any(target.name == name and target.state == "draining" for target in cluster.targets):
            raise PlanError(
                f"{where}.stripes names the target '{name}', and {name} is being drained ({cluster.source}); "
                f"take it back with '{undo_drain(cluster.source.parent, name)}', or use one of {', '.join(known)}"
            )
        raise PlanError(
            f"{where}.stripes names the target '{name}', which {cluster.source} does not have; plan anew "
            f"(stripewise plan), or use one of {', '.join(known)}"
        )


def undo_drain(store: Path, name: str) -> str:
    """The command that makes a draining target of a store active again."""
    return command_line(["stripewise", "store", "drain", str(store), name, "--undo"])


def _fit(held: Mapping[str, int], known: Mapping[str, int], cluster: Cluster, where: str) -> None:
    for name, count in held.items():
        if not known[name] or count <= known[name]:
            continue
        puts = f"{where} puts {format_size(count)} on '{name}', {format_size(count - known[name])} more than"
        if cluster.targets[cluster.index(name)].room_bytes is None:
            raise PlanError(
                f"{puts} its capacity_bytes in {cluster.source} leaves room for; move regions to another target"
            )
        df = command_line(["stripewise", "store", "df", str(cluster.source.parent)])
        raise PlanError(
            f"{puts} there is room for beside other files ({df}): free space there, move regions to another target, or "
            "plan again"
        )


def _check_moves(
    plan: Plan, known: Mapping[str, int], cluster: Cluster, source: Path | str, held: dict[str, int]
) -> list[str]:
    """Carries out the moves on paper: the end of each must fit; where only its two copies do not, it is remarked."""
    grid = {file.path: file.layout for file in plan.files}
    sizes = {file.path: file.size for file in plan.files}
    remarks = []
    for step in replay(plan.migrations, grid, sizes, held):
        where = f"{source}: migrations[{step.migration}].moves[{step.move}]"
        moved = plan.migrations[step.migration].moves[step.move]
        _fit({name: step.after[name] for name, _ in moved.stripes}, known, cluster, where)
        tight = [name for name, count in step.during.items() if known[name] and count > known[name]]
        if tight:
            remarks.append(f"{where} has no room for both copies on '{tight[0]}'; move another region out first")
    return remarks
