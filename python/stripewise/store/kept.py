"""Kept plans: by application and number of processes, which plan a run follows (H2DP sections 4.2 and 4.4).

A [[plan]] table of store.toml names each. What it does to new files is compiled into rules that count for its runs
alone; what it does to files that are there is a mover's (`moving`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..cluster import Cluster
from ..errors import PlanError
from ..files.fields import read_json
from ..layout import Layout, to_indexes
from ..plan import FilePlan, Plan, plan_from_json
from ..plan.application import is_run_by, processes_of
from .globs import escape
from .substitute import on_active

#: They are kept here, inside the store.
PLANS_DIR = "plans"
#: Of the 8,192 rules that a store can have, so many may be one plan's: its largest files'.
PLAN_RULES_MAX = 256
#: So many regions may stand in them: a program reads them all when it begins.
PLAN_REGIONS_MAX = 16_384


@dataclass(frozen=True)
class KeptPlan:
    """The plan for runs of `application` (its words as a shell reads them) with `processes`; `plan` is its JSON file's
    name relative to the store.
    """

    application: str
    processes: int
    plan: str

    @property
    def number(self) -> int:
        """What stands for it in store.bin, and in the environment of a run that follows it; never 0."""
        return int(_digest(self.application, self.processes), 16) or 1

    @property
    def title(self) -> str:
        """For people."""
        return f"'{self.application}' with {self.processes} process{'' if self.processes == 1 else 'es'}"


@dataclass(frozen=True)
class Picked:
    """What a run follows: `kept`, or nothing for the reason `why` (empty: no plan is kept for that application)."""

    kept: KeptPlan | None = None
    why: str = ""


def kept_name(application: str, processes: int) -> str:
    """The name of a kept plan's file, relative to the store."""
    return f"{PLANS_DIR}/{_digest(application, processes)}.json"


def _digest(application: str, processes: int) -> str:
    key = f"{processes} {application}".encode("utf-8", "surrogateescape")
    return hashlib.sha256(key).hexdigest()[:16]


def read_kept(root: Path, kept: KeptPlan) -> Plan:
    """The plan itself; PlanError naming its file and the cure."""
    path = root / kept.plan
    cure = f"forget it with 'stripewise store plan rm {root}', or keep it anew"
    try:
        return plan_from_json(read_json(path, PlanError, "a plan", root), path)
    except PlanError as error:
        raise PlanError(f"{error}; {cure}") from error


def pick(
    plans: Sequence[KeptPlan], command: Sequence[str], environment: Mapping[str, str], processes: int | None = None
) -> Picked:
    """The plan that a run of `command` follows: the application's, of as many processes as it has (None: as the command
    or the environment says).
    """
    ours = [kept for kept in plans if is_run_by(kept.application, command)]
    if not ours:
        return Picked()
    # Of 'app -x' and 'x app -x' the longer says more.
    application = max((kept.application for kept in ours), key=len)
    ours = [kept for kept in ours if kept.application == application]
    processes = processes or processes_of(application, command, environment)
    fitting = [kept for kept in ours if processes in (None, kept.processes)]
    if len(fitting) == 1:
        return Picked(fitting[0])
    counts = ", ".join(str(kept.processes) for kept in sorted(ours, key=lambda kept: kept.processes))
    if processes is None:
        return Picked(
            why=f"plans are kept for '{application}' with {counts} processes, and the command does not say how many "
            "it has; give --processes"
        )
    return Picked(why=f"no plan is kept for '{application}' with {processes} process(es), only with {counts}")


def rules_of(kept: KeptPlan, plan: Plan, cluster: Cluster) -> list[dict[str, Any]]:
    """The rules for new files of its runs, in the native module's form."""
    return [
        {
            "glob": escape(file.path),
            "action": "manage",
            "layout": to_indexes(on_active(Layout(file.layout), cluster).regions, cluster),
            "plan": kept.number,
        }
        for file in ruled(plan)
    ]


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
