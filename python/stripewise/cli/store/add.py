"""`stripewise store add`: a target more, whose class and figures are measured as those of `init` are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ...cluster import CLASSES, Target
from ...cluster.cluster import MISNAMED, is_name
from ...errors import UsageError
from ...moving import retarget
from ...setup import found
from ...setup.checks import Spot
from ...setup.document import FoundTarget
from ...setup.remarks import on_one_device
from ...store import Store
from ...store.owned import check_owned
from ...units import MB, command_line, parse_size
from ..measuring import SCRATCH, SECONDS_MAX, measuring
from ..options import StoreArgument, names_completed
from ..output import printable, say
from .targets import NameArgument, rebalanced


def add(
    store: StoreArgument,
    name: NameArgument,
    path: Annotated[
        Path, typer.Option("--path", metavar="DIR", help="Directory of the target; its data lie in DIR itself.")
    ],
    klass: Annotated[
        str | None,
        typer.Option(
            "--class",
            metavar="CLASS",
            help=f"Target class: {', '.join(CLASSES)} (default: as found, or that of --like).",
            autocompletion=names_completed(CLASSES),
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option("--like", metavar="TARGET", help="Target to copy kind and figures from, so nothing is measured."),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate/--no-calibrate", help="Measure the device, or assume typical figures of the class."),
    ] = True,
    capacity: Annotated[
        str, typer.Option("--capacity", metavar="SIZE", help="Maximum bytes on the target; 0: its whole file system.")
    ] = "0",
    rebalance_too: Annotated[
        bool, typer.Option("--rebalance", help="Rebalance files onto the target afterwards.")
    ] = False,
) -> None:
    """Add a target to a store.

    Measures the directory's device, for 10 s at most. In a store of emulated targets the new one is emulated, too, with
    the figures of one of its class. Programs may run meanwhile; those that start later use it for new files.
    """
    opened = Store(store)
    if klass is not None and klass not in CLASSES:
        raise UsageError(f"--class: '{klass}' is not one of {', '.join(CLASSES)}")
    if not is_name(name):
        raise UsageError(f"TARGET: '{name}' {MISNAMED if name else 'is empty'}; use letters and digits")
    limit, where = parse_size(capacity, "--capacity"), Path(os.path.realpath(path))
    check_owned(where, "--path: ", "give another directory")
    model = retarget.model_for(opened, klass, like)
    if model is None:
        bare = Target(name, klass or "any", "dir", where, limit, 0.0, 0.0, 0.0, 0.0)
        retarget.check_new(opened, bare)
        one = _found(bare, klass, calibrate)
        made, told = one.target, _measured(opened, one)
    else:
        made = retarget.target_like(model, name, klass or model.klass, where, limit)
        told = _copied(made, model, is_asked=like is not None)
    # Measuring takes time.
    check_owned(made.path, "--path: ", "give another directory")
    retarget.add(opened, made)
    kind = "an EMULATED one, slowed down to these figures" if made.kind == "emulated" else f"of kind {made.kind}"
    for line in (f"{opened.root}: target {name} in {made.path}, {kind}", *told):
        typer.echo(printable(line))
    for line in on_one_device([*opened.config.cluster.active, made], made.name):
        say(f"warning: {printable(line)}")
    if rebalance_too:
        rebalanced(store)


def _found(bare: Target, klass: str | None, calibrate: bool) -> FoundTarget:
    """A target that is a directory, with its class and its figures measured or assumed."""
    spot = Spot(bare.name, bare.path, bare.path)
    given = {} if klass is None else {bare.name: klass}
    capacities = {bare.name: bare.capacity_bytes}
    if not calibrate:
        return found.found_targets([spot], None, given, capacities)[0]
    with measuring(SECONDS_MAX, parse_size(SCRATCH, "--scratch")) as measure:
        return found.found_targets([spot], measure, given, capacities)[0]


def _measured(store: Store, one: FoundTarget) -> Iterator[str]:
    yield f"on {one.place.words}; {one.target.klass}: {one.decided.why}"
    if one.target.calibration is not None:
        yield f"measured: {_figures(one.target)}"
        return
    words = ["stripewise", "calibrate", "--store", str(store.root), "--target", one.target.name, "--apply"]
    yield f"assumed, as typical of its class: {_figures(one.target)}; to measure them: {command_line(words)}"


def _copied(made: Target, model: Target, is_asked: bool) -> Iterator[str]:
    other = "" if is_asked else " (--like takes another's)"
    yield f"kind and figures are those of {model.name}{other}: {_figures(made)}"
    if made.klass != model.klass and not is_asked:
        yield f"{model.name} is of class {model.klass}, for the store has no active target of class {made.klass}"


def _figures(target: Target) -> str:
    read, write = (
        f"{1e3 * startup_s:.3f} ms and {1 / per_byte_s / MB:,.0f} MB/s" if per_byte_s else f"{1e3 * startup_s:.3f} ms"
        for startup_s, per_byte_s in (
            (target.startup_read_s, target.per_byte_read_s), (target.startup_write_s, target.per_byte_write_s)
        )
    )  # fmt: skip
    return f"read {read}, write {write}"
