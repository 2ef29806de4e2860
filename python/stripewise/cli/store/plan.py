"""`stripewise store plan`: plans that a store keeps for applications, and that their runs follow."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ...errors import PlanError, UsageError
from ...plan import Plan, read_plan
from ...plan.summary import range_text, summary_of
from ...store import Store, plans
from ...store.config import PROCESSES_MAX, KeptPlan, read_store
from ...store.kept import read_kept
from ...units import quoted
from ..options import JsonOption, StoreArgument
from ..output import print_json, printable, say, stdout, table

ProcessesOption = Annotated[
    int | None, typer.Option("--processes", metavar="N", min=1, help="Only the plan for this number of processes.")
]


def add(
    store: StoreArgument,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Plan (plan.json).")],
    application: Annotated[
        str | None,
        typer.Option(
            "--application",
            metavar="'CMD...'",
            help="Program and its arguments without the launcher (default: from the plan).",
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes", metavar="N", min=1, max=PROCESSES_MAX, help="Number of processes (default: from the plan)."
        ),
    ] = None,
) -> None:
    """Keep a plan in the store for the runs of an application.

    It replaces the plan kept for the same application and number of processes. Where a relative word of the application
    leads from this directory to a planned file, only runs in this directory follow the plan.
    """
    opened, decided = Store(store), read_plan(plan)
    about = plans.check_files(opened, decided, plan, is_kept=True)
    kept, remarks = plans.keep(opened.root, decided, plan, application, processes)
    for remark in [*about, *remarks]:
        say(f"stripewise: {printable(remark)}")
    typer.echo(f"kept for {printable(kept.title)}; 'stripewise run --store {printable(quoted(store))}' follows it")


def keep_none(store: Store, plan: Plan, ran_in: str, instead: str, tell: Callable[[str], None]) -> None:
    """Tells that a plan is not kept, whose files later runs do not have, and what there is `instead`; forgets the one
    that was kept for the same runs.
    """
    tell(f"no plan is kept: later runs have other files than those {instead}")
    with contextlib.suppress(UsageError):
        kept = plans.kept_for(plan, "the plan", ran_in=ran_in)
        for gone in plans.forget(store.root, kept.application, kept.processes, kept.directory):
            tell(f"forgot the plan kept for {printable(gone.title)}, of files that later runs do not touch")


def rm(
    store: StoreArgument,
    application: Annotated[str, typer.Argument(metavar="'CMD...'", help="Application as shown by 'ls', quoted.")],
    processes: ProcessesOption = None,
    directory: Annotated[
        str | None, typer.Option("--directory", metavar="DIR", help="Only the plan for runs in this directory.")
    ] = None,
) -> None:
    """Remove the plans of an application; files keep their layout."""
    wanted = directory and os.path.realpath(directory)
    for kept in plans.forget(read_store(store).root, application, processes, wanted):
        typer.echo(f"removed the plan for {printable(kept.title)}")


def _key(kept: KeptPlan, places: Sequence[str]) -> list[str]:
    """What says which runs follow a plan, as a table has it; in which directory where any plan has one."""
    return [printable(kept.words), str(kept.processes), *(printable(kept.directory) or "-" for _ in places)]


def _expected_text(plan: Plan) -> str:
    """By what factor a plan is expected to be faster than def, with its copies where it has some; "-": nobody told."""
    if plan.replicas is not None and plan.replicas.gain is not None:
        return f"{plan.replicas.gain:.2f} x def, with copies"
    return f"{range_text(plan.expected)} x def" if plan.expected.is_known else "-"


def ls(store: StoreArgument, json: JsonOption = False) -> None:
    """List the plans that a store keeps."""
    config = read_store(store)
    rows, remarks = [], []
    places = ["in"] if any(kept.directory for kept in config.plans) else []
    made = table("", "application", "processes", *places, "policy", "files", "windows", "expected", "measured")
    for kept in config.plans:
        row = {
            "application": kept.application,
            "processes": kept.processes,
            "directory": kept.directory or None,
            "plan": str(config.root / kept.plan),
        }
        try:
            plan = read_kept(config.root, kept)
            summary = summary_of(plan)
        except PlanError as error:
            rows.append({**row, "error": str(error)})
            made.add_row(*_key(kept, places), "cannot be read", "-", "-", "-", "-")
            say(f"stripewise: {printable(str(error))}")
            continue
        why = plans.suspended(config, kept)
        way = None if plan.mpi is None else plan.mpi.as_json()
        rows.append({**row, **summary.as_json(), "suspended": why or None, "mpi": way})
        if why:
            remarks.append(f"the plan kept for {kept.title} is suspended, runs do not follow it: {why}")
        if plan.mpi is not None:
            remarks.append(f"runs of {kept.title} have MPI-IO by '{plan.mpi.told}'")
        made.add_row(
            *_key(kept, places),
            summary.policy if plan.mpi is None else f"{summary.policy}+{printable(plan.mpi.name)}",
            f"{summary.files:,}",
            str(len(summary.windows)),
            _expected_text(plan),
            "-" if summary.expected.measured_gain is None else f"{summary.expected.measured_gain:.2f} x def",
        )
    if json:
        print_json(rows)
        return
    if not rows:
        typer.echo(
            f"no plans; 'stripewise tune --store {printable(quoted(store))} -- CMD' keeps one for the runs of CMD"
        )
        return
    stdout().print(made)
    for remark in remarks:
        typer.echo(printable(remark))
