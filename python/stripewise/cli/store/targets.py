"""`stripewise store drain|remove|rebalance`: what lies on targets moves while programs run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ...errors import InUseError, StoreError, UsageError
from ...limits import Limits
from ...moving import retarget
from ...moving.mover_session import MoverSession
from ...moving.swept import Swept
from ...store import Store, plans, templates
from ...store.config import StoreConfig
from ...store.copies.build import is_container
from ...units import command_line, format_size, parse_age, quoted
from ..arguments import flattened
from ..options import JsonOption, MoverOptions, PatienceOption, StoreArgument
from ..output import print_json, printable, progress, say
from .template import layout_text

NameArgument = Annotated[str, typer.Argument(metavar="TARGET", help="Target name.")]

#: Templates whose layout changes are named up to so many.
TEMPLATES_SHOWN = 8


def _complain(text: str) -> None:
    say(f"stripewise: {printable(text)}")


def _report(store: Path, swept: Swept, what: str, done: str, json: bool) -> None:
    """What was done; ends the verb where something is left."""
    if json:
        print_json(swept.as_json())
    else:
        typer.echo(f"{what}: {done}")
        for line in swept.left:
            typer.echo(f"left: {printable(line)}")
    if swept.signal is not None:
        if swept.stopped:
            _complain(f"{what}: {_cure(store, swept)}")
        raise typer.Exit(128 + swept.signal)
    if swept.left or swept.stopped:
        waited = "is not empty" if swept.drained else "is not complete"
        if swept.waited_s:
            waited += f", after {swept.waited_s:g} s in which nothing got better (--patience)"
        raise StoreError(f"{store}: {what} {'' if swept.stopped else f'{waited}; '}{_cure(store, swept)}")


def _cure(store: Path, swept: Swept) -> str:
    if swept.stopped and swept.drained:
        again = "run it again for the rest, or take it back with --undo"
        return f"stopped before the end; what has moved stays where it is now, the target is still draining; {again}"
    if swept.stopped:
        return "stopped before the end; run it again for the rest"
    if swept.is_away:
        return (
            f"it is away: bring it back, or remove what lies there ('stripewise run --store {quoted(store)} -- rm "
            f"FILE') and restore it from a copy; then run the same command again"
        )
    if any(" is away: " in line for line in swept.left):
        return "run the same command again when what is away is back"
    back = ", or take the target, which is draining still, back with --undo" if swept.drained else ""
    if any("room" in line for line in swept.left):
        return f"add a target or remove files, then run the same command again{back}"
    return f"run the same command again for the rest{back}"


@flattened
def drain(
    *,
    store: StoreArgument,
    target: NameArgument,
    remove_it: Annotated[bool, typer.Option("--remove", help="Remove the target from the store afterwards.")] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Take a draining target back: it is active again, and takes new files.")
    ] = False,
    now: Annotated[
        bool,
        typer.Option(
            "--now", help="With --remove: do not wait for programs started before; their new files on the target fail."
        ),
    ] = False,
    mover: MoverOptions,
    patience: PatienceOption = "60s",
    json: JsonOption = False,
) -> None:
    """Move all data off a target.

    Programs may run meanwhile; new files go to other targets, those of templates that name the target, too. Regions
    that name the target move whole, so more is copied than lay on it. --undo takes the target back, before, while or
    after it is emptied, and with it the layouts that templates had.

    Of a target that is away nothing moves: the files with a part there are named. Where it is lost for good, remove
    each of them ('stripewise run --store STORE -- rm FILE') and restore it from a copy, drain again, then remove the
    target ('stripewise store remove').
    """
    if now and not remove_it:
        raise UsageError("--now: needs --remove; programs started before could fill the target again")
    if undo and remove_it:
        raise UsageError("--undo: takes a target back, which --remove takes out; give one of them")
    patience_s = parse_age(patience, "--patience")
    opened = Store(store)
    if undo:
        _take_back(opened, target, json)
        return
    if retarget.is_removed(opened, target):
        _report(store, Swept(), f"target {target}", "is removed already; nothing is to be done", json)
        return
    if now:
        retarget.put_back(opened, target)
    opened.config.target(target)
    retarget.check_room(opened, target)
    if opened.config.target(target).is_active:
        # By a mover's lock, so that a drain which another mover keeps from its work changes nothing.
        with MoverSession(opened, {"verb": "drain", "target": target}, Limits()):
            opened = retarget.write_config(opened, retarget.with_state(opened, target, "draining"))
    for kept in plans.that_name(opened.config, target):
        cure = "plan anew" if remove_it else "take the target back (--undo), or plan anew"
        _complain(f"the plan kept for {kept.title} names {target}, so runs do not follow it from now on; {cure}")
    back = "" if remove_it else "; --undo gives them their former layout back"
    for line in _templates_told(opened.config, target, f"are laid out without {target} from now on", back):
        _complain(line)
    try:
        with (
            progress("draining") as step,
            MoverSession(opened, {"verb": "drain", "target": target}, mover.limits, step) as session,
        ):
            swept = retarget.drain(session, target, _complain, patience_s, not now)
    except InUseError as error:
        raise InUseError(
            f"{error}; {target} is draining: run the same command again, or take it back (--undo)"
        ) from error
    _report(store, swept, f"target {target}", _cleared(swept), json)
    if remove_it:
        _, directory = retarget.remove(Store(store), target, not now)
        typer.echo(f"{store}: without {target} now; {directory} can be removed")
    elif not json:
        typer.echo(f"it is empty; remove it with: stripewise store remove {quoted(store)} {target}")
        typer.echo(f"or take it back with: stripewise store drain {quoted(store)} {target} --undo")


def _templates_told(config: StoreConfig, target: str, what: str, back: str = "") -> Iterator[str]:
    """A line for each of the templates that have another layout with a target than without, of many the first ones:
    `what` becomes of their new files, how these lie, and the way `back`.
    """
    found = templates.that_name(config, target)
    for rule, layout in found[:TEMPLATES_SHOWN]:
        yield f"new files matching {rule.glob} {what}: {layout_text(layout)}{back}"
    if len(found) > TEMPLATES_SHOWN:
        listing = command_line(["stripewise", "store", "template", "ls", str(config.root)])
        yield f"and those of {len(found) - TEMPLATES_SHOWN} more templates; see '{listing}'"


def _cleared(swept: Swept) -> str:
    """What lay on a target and lies elsewhere now, and what was copied for it."""
    cleared = format_size(swept.cleared_bytes)
    text = f"{cleared} of {swept.whole} moved off it"
    if swept.part:
        text = f"{cleared} moved off it, all of {swept.whole} and a part of {printable(swept.part)}"
    elif swept.stopped and not swept.files + swept.copied:
        text = "nothing moved off it yet, for regions move whole and none was done"
    if swept.moved_bytes > swept.cleared_bytes:
        text += f"; {format_size(swept.moved_bytes)} copied, for regions move whole"
    return text


def _take_back(store: Store, target: str, json: bool) -> None:
    after, laid_out = None, []
    if not store.config.target(target).is_active:
        with MoverSession(store, {"verb": "drain", "target": target}, Limits()) as session:
            after = retarget.take_back(session, target)
            laid_out = [] if after is None else retarget.laid_out_off(after, target)
    # Those that hold copies are no files that the user lays out.
    moved_off = [path for path in laid_out if not is_container(store.root, path)]
    if json:
        print_json({"target": target, "state": "active", "was_draining": after is not None})
        return
    if after is None:
        typer.echo(f"target {target}: is not being drained, so there is nothing to take back; it is active")
        return
    typer.echo(f"target {target}: active again, for new files of programs that start from now on")
    for kept in plans.that_name(after.config, target):
        why = plans.suspended(after.config, kept)
        now = f"is still not followed: {why}" if why else "is followed again"
        typer.echo(printable(f"the plan kept for {kept.title} {now}"))
    for line in _templates_told(after.config, target, f"are laid out with {target} again"):
        typer.echo(printable(line))
    if moved_off:
        again = command_line(["stripewise", "store", "set-layout", moved_off[0], "--layout", "def"])
        typer.echo(
            printable(
                f"{len(moved_off)} file(s) that set-layout, a template or a plan laid out, and that a drain of this "
                f"target or of another one moved, grow without it; what was moved stays where it is now; to lay one "
                f"out as new files are: {again}; one that a plan laid out, as that had it: stripewise apply PLAN "
                f"--store {quoted(store.root)}"
            )
        )
    typer.echo(
        f"files with the store's own layout spread over it again with: stripewise store rebalance {quoted(store.root)}"
    )


def remove(store: StoreArgument, target: NameArgument) -> None:
    """Remove an empty target from a store.

    Its directory is kept, and is free for other use. No later target of the store can have its name.
    """
    if retarget.is_removed(Store(store), target):
        typer.echo(f"target {target}: is removed already; nothing is to be done")
        return
    _, directory = retarget.remove(Store(store), target)
    typer.echo(f"{store}: without {target} now; {directory} can be removed")


@flattened
def rebalance(
    *,
    store: StoreArgument,
    everything: Annotated[
        bool, typer.Option("--all", help="Include files that set-layout, a template or a plan laid out.")
    ] = False,
    mover: MoverOptions,
    json: JsonOption = False,
) -> None:
    """Give existing files the layout of new ones, over all targets.

    Programs may run meanwhile.
    """
    rebalanced(store, everything, mover, json)


def rebalanced(store: Path, everything: bool = False, mover: MoverOptions | None = None, json: bool = False) -> None:
    """As the verb does it, without limits unless they are given."""
    limits = Limits() if mover is None else mover.limits
    opened = Store(store)
    with (
        progress("moving") as step,
        MoverSession(opened, {"verb": "rebalance"}, limits, step) as session,
    ):
        swept = retarget.rebalance(session, everything)
    part = f" and a part of {printable(swept.part)}" if swept.part else ""
    moved = f"{swept.whole}{part} moved, {format_size(swept.moved_bytes)} copied"
    if swept.kept:
        moved += f"; {swept.kept} file(s) that set-layout, a template or a plan laid out stay so (--all: these, too)"
    _report(store, swept, "rebalance", moved, json)
