"""`stripewise apply`: moves a store's files to where a plan puts them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...errors import ClusterError, PlanError
from ...files.spelling import path_meant
from ...layout import Layout
from ...moving.plan_applier import Applied, apply_plan
from ...plan import Plan, read_plan
from ...plan.check import check_plan
from ...plan.summary import run_moving, summary_of, why_left
from ...replicas.standing import digest_of, turn_of
from ...replicas.stored import planned
from ...store import Store, templates
from ...store.config import read_store
from ...store.globs import escape, matches
from ...store.plans import check_files
from ...units import command_line, format_size, quoted
from ..arguments import flattened
from ..copies.building import Making, build_chosen
from ..options import JsonOption, MoverOptions, StoreOption
from ..output import moves_ended, print_json, printable, progress, say, wrapped


def _keeping(plan: Path, root: Path) -> str:
    """The command that keeps a plan."""
    return printable(command_line(["stripewise", "store", "plan", "add", str(root), str(plan)]))


@flattened
def apply(
    *,
    plan: Annotated[Path, typer.Argument(help="Plan (plan.json).", metavar="PLAN")],
    store: StoreOption,
    mover: MoverOptions,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Apply the plan even if it is expected to be no faster than DEF.")
    ] = False,
    leave_templates: Annotated[
        bool,
        typer.Option(
            "--templates/--no-templates", help="Add templates that give new files the layout of the planned ones."
        ),
    ] = True,
    json: JsonOption = False,
) -> None:
    """Move a store's files to a plan's layouts, and make its copies.

    Programs may keep using the files; memory-mapped files are not moved. A plan that found no faster layout than DEF
    leaves the files where they lie.
    """
    decided = read_plan(plan)
    why = "" if anyway else why_left(decided)
    if why and not decided.leave:
        raise PlanError(f"{plan}: {why}; plan with another policy (best), or apply it with --anyway")
    opened = Store(store)
    # First, for what else is wrong with a plan of another store tells little.
    check_files(opened, decided, plan)
    ids = opened.identities(decided, plan)
    for remark in check_plan(decided, opened.config.cluster, plan):
        say(f"stripewise: {remark}")
    if decided.mpi is not None:
        told = f"MPI-IO by '{printable(decided.mpi.told)}' is for runs that follow it: {_keeping(plan, opened.root)}"
        say(f"stripewise: {plan}: {told}")
    if why:
        _say_left(plan, len(decided.files), json)
        return
    copies = None
    if decided.replicas is not None:
        copies = planned(decided.replicas, opened.config.cluster, plan)
    stays = decided.leave and not anyway
    wanted = _templates(decided) if leave_templates and not stays else {}
    # Before a file is moved, which the templates would follow.
    try:
        templates.check_addable(opened.config, wanted)
    except ClusterError as error:
        raise PlanError(f"{plan}: no templates can be added: {error}, or apply it with --no-templates") from error
    if stays:
        result = Applied(0, 0, 0.0)
    else:
        with progress("moving") as step:
            result = apply_plan(opened, decided, ids, mover.limits, step)
    anew = wanted if result.signal is None else {}
    for glob, layout in anew.items():
        templates.add_layout(opened.root, glob, layout)
    said = result.as_json() | {"templates": list(anew), "left": len(decided.files) if stays else 0}
    if json and (copies is None or result.signal is not None):
        print_json(said)
    elif stays and not json:
        # Only with copies; without them that was said above.
        why = "with the copies no other layout is expected to be faster"
        typer.echo(f"{len(decided.files)} file(s) left where they lie: {why}")
    elif not json:
        if result.moved_bytes or result.signal is not None:
            typer.echo(
                f"{result.files} file(s) laid out anew: {format_size(result.moved_bytes)} moved in "
                f"{result.seconds:.2f} s" + (", stopped before the end" if result.signal is not None else "")
            )
        else:
            typer.echo(f"{result.files} file(s) lie as planned already: nothing was moved")
        if leave_templates and result.signal is None:
            _say_without(opened, decided)
        for glob in anew:
            typer.echo(f"new files matching {printable(glob)} are laid out {_like(decided, glob)}")
        if anew:
            typer.echo(f"see 'stripewise store template ls {quoted(opened.root)}'; 'template rm' removes one")
        later = summary_of(decided).later_moves
        if later and result.signal is None:
            typer.echo(
                f"{later:,} move(s) during the run are left: {printable(run_moving(plan, opened.root))}, or "
                f"'stripewise migrate' beside it"
            )
    if result.signal is not None:
        stands = moves_ended(result.signal, result.files, len(decided.files), result.regions, copies is not None)
        say(f"stripewise: {stands}")
        raise typer.Exit(128 + result.signal)
    if copies is not None:
        with turn_of(opened, digest_of(plan), False) as turn:
            making = Making(True, mover.limits)
            build_chosen(turn, turn.beside_others(copies), {}, making, said if json else None)


def _say_left(plan: Path, files: int, json: bool) -> None:
    """That the files of a plan stay where they lie."""
    if json:
        print_json(Applied(0, 0, 0.0).as_json() | {"templates": [], "left": files})
        return
    typer.echo(
        f"{files} file(s) left where they lie: no layout is expected to be faster than def; --anyway gives them the "
        f"layout of {printable(str(plan))}"
    )


def _like(plan: Plan, glob: str) -> str:
    """As what the template of a glob lays out new files, where the planned ones of that glob lie in several ways."""
    of_glob = [file for file in plan.files if file.made_as == glob]
    if len({file.layout for file in of_glob}) < 2:
        return "as planned"
    largest = max(of_glob, key=lambda file: file.size)
    return f"like {printable(largest.path)}, the largest of {len(of_glob)} planned files, which have different layouts"


def _say_without(store: Store, plan: Plan) -> None:
    """Says which files have no template, for nothing tells that the traced run created them; and the cure."""
    held = templates.templates_in(read_store(store.root))
    left = [
        file.path for file in plan.files if not file.made_as and not any(matches(rule.glob, file.path) for rule in held)
    ]
    if not left:
        return
    more = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
    path = path_meant(left[0])
    words = ["stripewise", "store", "template", "add", str(store.root), escape(path), "--like", path]
    said = f"no template for {left[0]}{more}: by its trace the run found it there. A later run that creates it anew "
    typer.echo(wrapped(printable(f"{said}gives it the store's layout for new files, unless you add a template:")))
    typer.echo(printable(f"  {command_line(words)}"))


def _templates(plan: Plan) -> dict[str, Layout]:
    """Layouts of new files by glob: of the files of a glob, the largest one's."""
    found: dict[str, Layout] = {}
    for file in sorted(plan.files, key=lambda file: -file.size):
        if file.made_as:
            found.setdefault(file.made_as, Layout(file.layout))
    return found
