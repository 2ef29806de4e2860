"""`stripewise run`: a program with the library preloaded; its exit status is ours."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...doctor import program
from ...errors import PlanError, UsageError
from ...moving.kept_plan import kept_plan_followed
from ...moving.mover_process import MoverBeside, mover_process
from ...moving.strangers import check_no_strangers
from ...plan import Plan, read_plan
from ...plan.application import working_directory
from ...plan.mpi_way import MpiWay
from ...run import runner
from ...run.collect import NOTHING_RECORDED, note_run, trace_directory
from ...run.hints import Hints
from ...run.ways import beside_given, carried_out
from ...store import Store, plans
from ...store.config import PROCESSES_MAX, KeptPlan, check_untuned
from ...store.kept import pick, prepare, rm_command
from ...store.owned import IDENTITY
from ...units import quoted
from ..arguments import flattened
from ..options import CommandArgument, ManageOption, MoverOptions
from ..output import printable, say
from .engine_options import EngineOptions


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """Whether the run is traced, and what of it."""

    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="DIR", help="New directory for a trace of every I/O call.")
    ] = None
    layers: Annotated[
        str | None,
        typer.Option("--layers", metavar="LAYERS", help="Traced layers: posix, mpi (MPI-IO) or both (default: both)."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class KeptOptions:
    """Whether a plan that the store keeps is followed, and which."""

    follow: Annotated[bool, typer.Option("--follow/--no-follow", help="Follow the plan kept in the store for CMD.")] = (
        True
    )
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes",
            metavar="N",
            min=1,
            max=PROCESSES_MAX,
            help="Number of processes, to choose the kept plan (default: from CMD or its environment).",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class LibraryOptions(EngineOptions):
    """What the library does for the program beside that."""

    refuse_rings: Annotated[
        bool,
        typer.Option(
            "--refuse-rings",
            help="Make the kernel refuse io_uring and libaio, for programs that use them without their libraries. "
            "Breaks sudo and set-user-id programs unless run as root.",
        ),
    ] = False


@dataclass(frozen=True)
class Followed:
    """The plan that a run follows, and its number for the library (0: new files lie as in any other run)."""

    kept: KeptPlan
    plan: Plan
    number: int


def _followed(store: Store, command: Sequence[str], asked: KeptOptions, manage: bool) -> Followed | None:
    """What a run follows, said; a plan that cannot be followed keeps no program from its work. Runs that say what to
    `manage` may make planned files that the store's own rules leave plain.
    """
    picked = pick(store.config.plans, command, os.environ, asked.processes, working_directory())
    if picked.why:
        say(f"stripewise: {printable(picked.why)}")
    if picked.kept is None:
        return None
    try:
        plan, why = prepare(store.config, picked.kept)
    except PlanError as error:
        say(f"stripewise: the plan kept for {printable(picked.kept.title)} is not followed: {printable(str(error))}")
        return None
    if not manage and not plans.is_for(store, plan):
        title, forget = printable(picked.kept.title), printable(rm_command(store.root, picked.kept))
        where = f"none of its files is in {printable(str(store.root))}, or where that takes new files"
        say(f"stripewise: the plan kept for {title} is not followed: {where}; to forget it: {forget}")
        return None
    say(f"stripewise: following the plan kept for {printable(picked.kept.title)}")
    if why:
        say(f"stripewise: new files get their usual layout: {printable(why)}")
    return Followed(picked.kept, plan, 0 if why else int(picked.kept.digest, 16))


def _way(plan: Plan, is_tuned: bool) -> MpiWay | None:
    """How the run carries out MPI-IO by the plan that it follows, said; None: as without one."""
    if plan.mpi is None:
        return None
    told, way = printable(plan.mpi.told), beside_given(plan.mpi, os.environ)
    if is_tuned:
        say(f"stripewise: --engine is given, so the kept plan's way of MPI-IO ('{told}') is not followed")
        return None
    if way is None:
        say(f"stripewise: a file of hints gives all keys that the kept plan has for MPI-IO ('{told}'), and counts more")
    else:
        told = printable(way.told)
        say(f"stripewise: MPI-IO by '{told}', as the kept plan has it; hints of the program count more")
    return way


def _say_without(why: str) -> None:
    """Why MPI-IO is as the program makes it though a plan is followed: that keeps no program from its work."""
    say(f"stripewise: {printable(why)}; it is as the program makes it")


def _all_away(store: Store) -> list[str]:
    """That no target is where the store has it, as after the directory above all of them got another name."""
    if any((target.path / IDENTITY).is_file() for target in store.config.cluster.active):
        return []
    away = next((str(row["away"]) for row in store.devices() if row.get("away")), "")
    return [f"all targets of {store.root} are away, so none of its files can be read: {away}"] if away else []


@flattened
def run(
    *,
    command: CommandArgument,
    store: Annotated[Path | None, typer.Option("--store", metavar="STORE", help="Store whose files CMD uses.")] = None,
    traced: TraceOptions,
    manage: ManageOption = None,
    migrate: Annotated[
        Path | None, typer.Option("--migrate", metavar="PLAN", help="Plan whose moves are carried out during the run.")
    ] = None,
    kept: KeptOptions,
    limits: MoverOptions,
    library: LibraryOptions,
) -> None:
    """Run CMD and its children on a store, traced or tuned."""
    trace, layers = traced.trace, traced.layers
    library.check()
    if store is None and trace is None and not library.engine:
        raise UsageError("run: give --store, --trace or --engine; without them the program needs no stripewise")
    if layers is not None and trace is None:
        raise UsageError("--layers: chooses what a trace records; give --trace DIR too")
    if layers not in (None, "posix", "mpi", "both"):
        raise UsageError(f"--layers: '{layers}' is not known; give one of posix, mpi, both")
    if manage and store is None:
        raise UsageError("--manage: needs --store, where the files go")
    if library.refuse_rings and store is None:
        raise UsageError("--refuse-rings: needs --store; without one io_uring and libaio work as usual")
    if migrate is not None and store is None:
        raise UsageError("--migrate: needs --store, whose files the plan moves")
    if kept.processes is not None and store is None:
        raise UsageError("--processes: needs --store, where plans are kept")
    mover_words = limits.words()
    opened = None if store is None else Store(store)
    for line in () if opened is None else _all_away(opened):
        say(f"stripewise: {printable(line)}")
    root = None if opened is None else opened.root
    if opened and migrate:
        check_untuned(opened.root)
        check_no_strangers(opened, read_plan(migrate), migrate, manage or [])
    logs = None if trace is None else trace_directory(trace)
    followed = _followed(opened, command, kept, bool(manage)) if opened and kept.follow and migrate is None else None
    way = None if followed is None else _way(followed.plan, library.engine)
    env = runner.environment(
        os.environ,
        root,
        logs,
        manage or [],
        command,
        refuse_rings=library.refuse_rings,
        engine=library.engine or (way is not None and way.engine),
        layers=layers,
        plan=0 if followed is None else followed.number,
    )
    hints = Hints(env)
    moving: contextlib.AbstractContextManager[MoverBeside] = contextlib.nullcontext(MoverBeside(say))
    if opened and migrate:
        moving = mover_process(opened.root, migrate, mover_words, say)
    elif opened and followed:
        moving = kept_plan_followed(opened, followed.kept, followed.plan, mover_words, say)
    try:
        with moving as beside, library.tuned(env), carried_out(way, env, _say_without):
            if logs is not None:
                note_run(logs, store=root)
            ended = runner.run(command, env)
            if logs is not None and (why := note_run(logs, ended, root)):
                say(f"stripewise: {printable(why)}")
            if ended.heard is None:
                beside.finish()
    except runner.NotStartedError as error:
        say(f"stripewise: {printable(str(error))}")
        raise typer.Exit(error.status) from error
    finally:
        unreached = None if root is None else program.out_of_reach(tuple(command))
        if unreached is not None:
            say(f"stripewise: {printable(unreached.what)}: {unreached.cure}")
        for line in hints.lines():
            say(f"stripewise: {printable(line)}")
    if logs is not None:
        if ended.heard is not None:
            how = f"{signal.Signals(ended.heard).name} (exit status {ended.status})"
            say(f"stripewise: the run was interrupted by {how}; its trace is marked as such")
        elif ended.status:
            say(f"stripewise: the run failed (exit status {ended.status}); its trace is marked as such")
        if any(logs.glob("*.swt")):
            say(f"stripewise: trace written to {logs}; next: stripewise collect {quoted(logs)}")
        else:
            say(f"stripewise: {logs}: {NOTHING_RECORDED}")
    raise typer.Exit(ended.status)
