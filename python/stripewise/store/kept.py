"""Kept plans: by application and number of processes, which plan a run follows (H2DP, sections 4.2 and 4.4).

A [[plan]] table of store.toml says that there is one. What it does to new files is compiled into a file of rules that
the library reads in such runs alone; what it does to files that are there is a mover's (`moving`). So a plan that is
damaged, or large, is nothing to any other run or verb.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import native
from ..errors import PlanError, StoreError
from ..files.fields import read_json
from ..files.parts import read_part, replace_part
from ..files.spelling import path_meant
from ..layout import Layout, to_indexes
from ..plan import FilePlan, Plan, RegionPlan, plan_from_json
from ..plan.application import is_respelled, is_run_by, processes_of
from ..plan.check import check_plan, undo_drain
from ..units import command_line
from .config import KeptPlan, StoreConfig
from .globs import escape
from .substitute import on_active

#: So many of its files get rules, the largest ones, with so many regions: a program reads them all when it begins.
PLAN_RULES_MAX = 1024
PLAN_REGIONS_MAX = 16_384
#: Where a compiled file has the digest of what it was made from.
_DIGEST_AT = slice(24, 56)


@dataclass(frozen=True)
class Picked:
    """What a run follows: `kept`, or nothing for the reason `why` (empty: no plan is kept for that application)."""

    kept: KeptPlan | None = None
    why: str = ""


def read_kept(root: Path, kept: KeptPlan) -> Plan:
    """The plan itself; PlanError naming its file and the cure."""
    path = root / kept.plan
    try:
        return plan_from_json(read_json(path, PlanError, "a plan", root), path)
    except PlanError as error:
        raise PlanError(
            f"{error}, or keep one anew for {kept.title}, or forget it: {rm_command(root, kept)}"
        ) from error


def rm_command(store: Path, kept: KeptPlan) -> str:
    """The command that forgets a plan, for the shell."""
    words = ["stripewise", "store", "plan", "rm", str(store), kept.words, "--processes", str(kept.processes)]
    return command_line([*words, *(["--directory", kept.directory] if kept.directory else [])])


def read_followed(config: StoreConfig, kept: KeptPlan) -> Plan:
    """The plan as runs follow it: what its files grow by, behind what was planned, goes to targets in use alone.

    Raises as `read_kept`.
    """
    plan = read_kept(config.root, kept)
    return replace(plan, files=tuple(_growing_on_active(file, config) for file in plan.files))


def _growing_on_active(file: FilePlan, config: StoreConfig) -> FilePlan:
    if not any(_is_growth(file, region) for region in file.regions[-1:]):
        return file
    *planned, growth = file.regions
    (region,) = on_active(Layout((growth.region,)), config.cluster).regions
    return replace(file, regions=(*planned, replace(growth, stripes=region.stripes)))


def _is_growth(file: FilePlan, region: RegionPlan) -> bool:
    """Whether it is the last region, and begins behind what was planned."""
    return region is file.regions[-1] and region.start >= file.size


def pick(
    plans: Sequence[KeptPlan],
    command: Sequence[str],
    environment: Mapping[str, str],
    processes: int | None = None,
    directory: str = "",
) -> Picked:
    """The plan that a run of `command` in `directory` follows: the application's, of as many processes as it has (None:
    as the command or the environment says), one of that directory before one of any.
    """
    ours = [kept for kept in plans if is_run_by(kept.application, command)]
    if not ours:
        return Picked(why=_respelled(plans, command, directory))
    # Of 'app -x' and 'x app -x' the longer says more.
    application = max((kept.application for kept in ours), key=len)
    ours = [kept for kept in ours if kept.application == application]
    processes = processes or processes_of(application, command, environment)
    here = [kept for kept in ours if kept.directory in ("", directory)]
    if not here:
        return Picked(why=_elsewhere(ours, processes, directory))
    fitting = [kept for kept in here if processes in (None, kept.processes)]
    fitting = [kept for kept in fitting if kept.directory] or fitting
    if len(fitting) == 1:
        return Picked(fitting[0])
    counts = ", ".join(str(count) for count in sorted({kept.processes for kept in here}))
    if processes is None:
        return Picked(
            why=f"plans are kept for {KeptPlan(application, 1).name} with {counts} processes, and the command does not "
            "say how many it has; give --processes"
        )
    return Picked(why=f"no plan is kept for {KeptPlan(application, processes).title}, only with {counts}")


def _elsewhere(plans: Sequence[KeptPlan], processes: int | None, directory: str) -> str:
    """Why a run in another directory than those of all plans of its application follows none."""
    kept = next((kept for kept in plans if processes in (None, kept.processes)), plans[0])
    others = f" (nor are {len(plans) - 1} more)" if len(plans) > 1 else ""
    return (
        f"the plan kept for {kept.title} is not followed{others}: this run is in {directory}, where the same words "
        "name other files; tune there, too, or run it in that directory"
    )


def _respelled(plans: Sequence[KeptPlan], command: Sequence[str], directory: str) -> str:
    """Why a run of no application that plans are kept for follows none, where other words of one name the same files.

    A plan of any directory has no word that leads to its files from one, so the run's own does for it.
    """
    kept = next(
        (each for each in plans if is_respelled(each.application, each.directory or directory, command, directory)),
        None,
    )
    if kept is None:
        return ""
    return (
        f"the plan kept for {kept.title} is not followed: this run spells its paths otherwise, and a plan is kept for "
        "a program's words; run it in the same words, or tune in these"
    )


def prepare(config: StoreConfig, kept: KeptPlan) -> tuple[Plan, str]:
    """The plan, ready to be followed by a run, and why new files will not follow it (empty: they will).

    Raises PlanError where it cannot be followed: it cannot be read, or is for targets that the store has no more.
    """
    plan = read_followed(config, kept)
    path = config.root / kept.plan
    check_followed(config, plan, path)
    try:
        digest = hashlib.sha256(config.digest().encode() + read_part(config.root, kept.plan)).hexdigest()
    except OSError as error:
        raise PlanError(f"{path}: cannot be read ({error.strerror}); keep it anew") from error
    try:
        if read_part(config.root, kept.compiled)[_DIGEST_AT].hex() == digest:
            return plan, ""
    except OSError:
        pass
    rules = [
        {"glob": escape(path_meant(file.path)), "action": "manage", "layout": to_indexes(file.layout, config.cluster)}
        for file in ruled(plan)
    ]
    try:
        made = native.call("store_compile", config.spec(digest, only=rules))
        replace_part(config.root, kept.compiled, [made], make=True)
    except (OSError, StoreError) as error:
        return plan, str(error)
    return plan, ""


def check_followed(config: StoreConfig, plan: Plan, path: Path) -> None:
    """PlanError where the kept plan at `path` cannot be followed, with the target of the store that is the reason."""
    states = {target.name: target.state for target in config.cluster.targets}
    for name in targets_named(plan):
        if states.get(name) == "draining":
            raise PlanError(
                f"{name} is being drained; take it back with '{undo_drain(config.root, name)}', or plan anew"
            )
        if states.get(name, "removed") == "removed":
            raise PlanError(f"the store has no target '{name}' now; plan anew")
    try:
        check_plan(plan, config.cluster, path)
    except PlanError as error:
        raise PlanError(f"{error}, or plan anew: the store's targets have changed") from error


def targets_named(plan: Plan) -> dict[str, None]:
    """The targets that a plan lays something out on, now or later; what its files grow by may go elsewhere."""
    cycles = [region.stripes for file in plan.files for region in file.regions if not _is_growth(file, region)]
    cycles += [move.stripes for migration in plan.migrations for move in migration.moves]
    return {name: None for cycle in cycles for name, _ in cycle}


def ruled(plan: Plan) -> list[FilePlan]:
    """The planned files that get a rule: the largest ones, as far as rules and regions go."""
    chosen: list[FilePlan] = []
    left = PLAN_REGIONS_MAX
    for file in sorted(plan.files, key=lambda file: -file.size):
        if len(chosen) < PLAN_RULES_MAX and len(file.regions) <= left:
            chosen.append(file)
            left -= len(file.regions)
    return chosen


def without_ids(plan: Plan) -> Plan:
    """The plan by paths alone: a program that makes its files anew gives them new ids."""
    return replace(plan, files=tuple(replace(file, id=None) for file in plan.files))
