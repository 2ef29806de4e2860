"""`stripewise tune`: the whole circle in one command, with a table of before and after."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from ...cluster import Target
from ...errors import ClusterError, StripewiseError, UsageError
from ...files.spelling import path_meant
from ...layout import Layout
from ...plan import Plan
from ...plan.application import working_directory
from ...plan.summary import likely_text, model_range
from ...policy import policies_named, policy_named, refuse_foreign
from ...run.circle import Turns
from ...run.collect import trace_directory
from ...run.measure import ratio
from ...run.repeats import Repeated
from ...run.shown import Shown
from ...run.tune import Tuner
from ...run.tuned import Tuned, without_files
from ...run.ways import levers_named
from ...store import Store, plans, templates
from ...store.config import KeptPlan, read_store
from ...store.kept import read_kept, rm_command
from ...units import command_line
from ..arguments import flattened
from ..options import (
    CommandArgument,
    JsonOption,
    ManageOption,
    StoreOption,
)
from ..output import print_json, printable, progress, say, shown, stdout, table, wrapped
from ..plan.caveats import of_copies, of_devices, standing_copies
from ..plan.options import SearchOptions, SeedOption, SizeOptions, plan_options
from ..store.plan import keep_none
from .kept_layout import kept_layout


def _print(tuned: Tuned, targets: Sequence[Target]) -> None:
    rows = [each.mean for each in tuned.layouts]
    first = rows[0]
    note = " (emulated devices)" if any(target.kind == "emulated" for target in targets) else ""
    stays = tuned.kept
    titles = [f"{each.policy} (stays)" if each is stays else each.policy for each in tuned.layouts]
    made = table(f"measured{note}", "", *titles)
    unsure = " (too little I/O to be sure)" if tuned.unsure else ""
    simulated = _simulated(tuned)
    lines = [
        ("runs", [str(len(each.runs)) for each in tuned.layouts]),
        ("read MB/s", [shown(row.read_mb_s) for row in rows]),
        ("write MB/s", [shown(row.write_mb_s) for row in rows]),
        ("I/O seconds", [_seconds(row.io_seconds) for row in rows]),
        ("simulated I/O, s", simulated),
        ("95 % interval", [_between(each.io_range, _seconds) for each in tuned.layouts]),
        (f"times as fast as {first.policy}{unsure}", [_times(first.io_seconds, row.io_seconds) for row in rows]),
        ("whole run, s", [_seconds(each.run_seconds) for each in tuned.layouts]),
        *((f"busy {target.name}, s", [_seconds(row.busy_s.get(target.name)) for row in rows]) for target in targets),
        ("imbalance", [shown(row.imbalance, 3) for row in rows]),
        ("bound ratio", [shown(row.bound_ratio, 3) for row in rows]),
        ("verified bytes", ["-" if row.verified_bytes is None else f"{row.verified_bytes:,}" for row in rows]),
    ]
    for name, cells in lines:
        # What is known of no layout has no row.
        if set(cells) != {"-"}:
            made.add_row(name, *cells)
    stdout().print(made)
    typer.echo(wrapped(_claim(tuned)))
    if tuned.fastest is not tuned.layouts[0]:
        typer.echo(wrapped(_whole_run(tuned)))
    for note in _notes(tuned, simulated):
        typer.echo(wrapped(f"note: {note}"))
    for each in tuned.layouts:
        if each.plan.mpi is not None:
            typer.echo(wrapped(f"note: {each.policy}: MPI-IO by '{printable(each.plan.mpi.told)}'"))
    if tuned.kept is not None:
        for line in kept_layout(tuned.kept.plan, tuned.anew, {each.name: each.klass for each in targets}):
            typer.echo(line)
    for remark in tuned.remarks:
        typer.echo(f"note: {printable(remark)}")


def _with_caveats(tuned: Tuned, store: Store) -> Tuned:
    """With remarks on copies that served its files, or may have, and on targets that share a device."""
    files = [file.path for file in tuned.layouts[0].plan.files]
    said = [
        *of_copies({}, standing_copies(store, files), store.root, True),
        *of_devices(store.config.cluster, store.root),
    ]
    return replace(tuned, remarks=(*tuned.remarks, *said))


def _simulated(tuned: Tuned) -> list[str]:
    """What the I/O was simulated to take under each layout: with devices alone, whatever program and library do."""
    default_s = _default_s(tuned)
    return [
        _seconds(default_s if each.policy == "def" and default_s else each.plan.expected.simulated_io_s)
        for each in tuned.layouts
    ]


def _default_s(tuned: Tuned) -> float | None:
    """DEF's simulated I/O in the run that the fastest layout was planned from, else in that of any."""
    own = [each for each in (tuned.fastest, *tuned.layouts) if each.plan.mpi is None]
    known = (each.plan.expected.simulated_io_def_s for each in own)
    return next(filter(None, known), None)


def _of_other_runs(tuned: Tuned) -> Iterator[str]:
    """Layouts that are simulated in a run in which DEF takes another time than its column says."""
    default_s = _default_s(tuned)
    for each in tuned.layouts:
        there_s = None if each.policy == "def" or each.plan.mpi else each.plan.expected.simulated_io_def_s
        if default_s and there_s and not 1 / INEXACT <= there_s / default_s <= INEXACT:
            yield (
                f"simulated I/O of {each.policy} is of the run that it was planned from, in which that of def is "
                f"{_seconds(there_s)} s"
            )


def _notes(tuned: Tuned, simulated: Sequence[str]) -> Iterator[str]:
    """What the table and the claim below it leave open."""
    first, fastest, found = tuned.layouts[0], tuned.fastest, tuned.measured_range
    expected = fastest.plan.expected
    here_s, def_s = expected.simulated_io_s, expected.simulated_io_def_s
    model = model_range(expected)
    # Expectations are over def, MPI-IO being alike; one without a range is no more exact than the figures of devices.
    is_expected = first.policy == "def" and fastest.plan.mpi is None
    if is_expected and found is not None and here_s and def_s and not _meet(found, model):
        yield (
            f"measured, {_between(found)}, and the model, {_range(model)}, do not meet: "
            f"{_beside(fastest, here_s)}, and {_beside(first, def_s)}"
        )
    whole, simulated_whole = ratio(fastest.run_seconds, first.run_seconds), expected.simulated_gain
    if is_expected and whole and simulated_whole and not 1 / APART <= whole / simulated_whole <= APART:
        yield (
            f"the whole run was {whole:.2f} times as fast measured and {simulated_whole:.2f} simulated: a simulated "
            "run keeps the time that the traced one spent between its reads and writes (computing, syncs, calls on "
            "names), whatever the layout"
        )
    if any(row.mean.io_seconds > row.run_seconds for row in tuned.layouts):
        yield (
            "I/O seconds are those with any read under way and those with any write, added, so they may be more than "
            "the whole run takes"
        )
    for rival in tuned.rivals if fastest is not first else ():
        yield _not_apart(fastest, rival)
    for policy, twin in tuned.same.items():
        yield f"{policy} proposes the same layout as {twin}: its figures are those of {twin}"
    yield from _of_other_runs(tuned)
    if "-" in simulated and set(simulated) != {"-"}:
        yield "simulated I/O is - where the traced run had files of other names than the plan"


#: The model's range where it has none: figures of devices are no more exact.
INEXACT = 1.1
#: The same of whole runs, which launching and computing are part of.
APART = 1.5


def _meet(found: tuple[float, float], model: tuple[float, float]) -> bool:
    """Whether the measured range and the model's have a factor in common."""
    return found[0] <= model[1] * INEXACT and model[0] / INEXACT <= found[1]


def _range(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.2f}" if ends[0] == ends[1] else _between(ends)


def _beside(layout: Repeated, simulated_s: float) -> str:
    """What a layout's I/O took beside what was simulated, and where the difference may lie."""
    took_s = layout.mean.io_seconds
    said = f"I/O took {_seconds(took_s)} s with {layout.policy}, simulated were {_seconds(simulated_s)} s"
    if took_s > simulated_s * INEXACT:
        return f"{said} (devices alone, without library, program and what else the machine does)"
    return f"{said} (memory may have served some)" if took_s * INEXACT < simulated_s else said


def _not_apart(fastest: Repeated, rival: Repeated) -> str:
    """That chance may have put the fastest layout before another one."""
    times = ratio(fastest.mean.io_seconds, rival.mean.io_seconds)
    between = fastest.gain_range(rival)
    known = "with one run each" if between is None else f"{_between(between)} with 95 % confidence"
    return f"{fastest.policy} cannot be told apart from {rival.policy}: {shown(times, 2)} times as fast ({known})"


def _claim(tuned: Tuned) -> str:
    """What came out, as far as it is known."""
    first, fastest = tuned.layouts[0], tuned.fastest
    if fastest is first:
        alone = len(tuned.layouts) == 1 and tuned.same
        return f"nothing to compare: {first.policy} alone" if alone else f"{first.policy} was the fastest"
    expected = f"by the model {likely_text(fastest.plan.expected)}"
    if fastest.plan.mpi is not None:
        expected += ", both with that way of MPI-IO"
    found = tuned.measured_range
    between = (
        "one run each, so nothing is known of how much it varies"
        if found is None
        else f"{_between(found)} with 95 % confidence"
    )
    times = f"{shown(tuned.measured_gain, 2)} times as fast as {first.policy}"
    if tuned.unsure:
        return f"{fastest.policy}: {times} in runs too short to be sure ({between}); {expected}"
    sure = "" if tuned.kept is not None else ", which may be chance"
    return f"{fastest.policy}: {times}, measured ({between}){sure}; {expected}"


def _whole_run(tuned: Tuned) -> str:
    """What the user waits for: the command from its start to its end, with launching and computing."""
    first, fastest = tuned.layouts[0], tuned.fastest
    took = (
        f"{_seconds(first.run_seconds)} s with {first.policy}, {_seconds(fastest.run_seconds)} s with {fastest.policy}"
    )
    return (
        f"the whole run: {took}, {_times(first.run_seconds, fastest.run_seconds)} times as fast, start and end included"
    )


def _seconds(value: float | None) -> str:
    """Two digits behind the point, below 1 s three significant ones."""
    digits = 2 if not value or value >= 1 else 2 - math.floor(math.log10(value))
    return shown(value, digits)


def _between(ends: tuple[float, float] | None, text: Callable[[float], str] = "{:.2f}".format) -> str:
    """An interval."""
    return "-" if ends is None else f"{text(ends[0])} to {text(ends[1])}"


def _times(before_s: float, after_s: float) -> str:
    return "-" if (times := ratio(after_s, before_s)) is None else f"{times:.2f}"


def _say_traces(tuned: Tuned, traces: Path) -> None:
    """The command that shows the first run of the fastest layout beside that of the baseline."""
    first, *others = (each.policy for each in tuned.layouts)
    shown_first = tuned.fastest.policy if tuned.fastest.policy != first else next(iter(others), first)
    words = ["stripewise", "show", f"{traces}/{shown_first}-collected"]
    if shown_first != first:
        words += ["--beside", f"{traces}/{first}-collected", "--html", "tune.html"]
    typer.echo(f"see the runs: {printable(command_line(words))}")
    delete = command_line(["rm", "-r", str(traces)])
    typer.echo(printable(f"their traces stay in {traces}; once seen, they may be deleted: {delete}"))


def _keep(store: Store, tuned: Tuned, kept: Repeated) -> KeptPlan | None:
    """Keeps the plan whose layout stays, for runs of the same application, with what it gained over DEF if that is
    known.
    """
    plan = without_files(kept.plan, tuned.passing)
    if tuned.passing and not plan.files:
        instead = "measured, and templates lay new ones out"
        keep_none(store, kept.plan, working_directory(), instead, typer.echo)
        return None
    # Of the model's promises that is no measure where another way of MPI-IO has its part in it.
    if tuned.layouts[0].policy == "def" and not tuned.unsure and plan.mpi is None:
        plan = replace(plan, expected=replace(plan.expected, measured_gain=tuned.measured_gain))
    before = _kept_before(store, plan)
    try:
        found, remarks = plans.keep(store.root, plan, f"the plan of {kept.policy}", ran_in=working_directory())
    except StripewiseError as error:
        say(f"stripewise: the plan is not kept: {printable(str(error))}; tune again")
        return None
    for remark in remarks:
        say(f"stripewise: {printable(remark)}")
    instead = "" if before is None else f", in place of the one of {printable(before)}"
    typer.echo(f"kept the plan of {kept.policy} for {printable(found.title)}{instead}; 'run --store' follows it")
    return found


def _kept_before(store: Store, plan: Plan) -> str | None:
    """The policy of the plan that is kept for the same runs until now, with its way of MPI-IO; None: there is none."""
    with contextlib.suppress(StripewiseError):
        wanted = plans.kept_for(plan, "the plan", ran_in=working_directory())
        for kept in read_store(store.root).plans:
            if kept == wanted:
                there = read_kept(store.root, kept)
                return there.policy if there.mpi is None else f"{there.policy}+{there.mpi.name}"
    return None


def _lay_out_anew(store: Store, tuned: Tuned) -> list[str]:
    """Leaves templates for the files that the program makes anew, whose layout went with the old ones; their globs."""
    left = []
    for glob, file in tuned.anew.items():
        try:
            templates.add_layout(store.root, glob, Layout(file.layout))
        except ClusterError as error:
            why = f"{printable(str(error))}; its files get the default layout"
            say(f"stripewise: no template for {printable(glob)}: {why}")
            continue
        left.append(glob)
        # The next run, or the reset before it, may have removed the one that was planned.
        like = f"like {printable(file.path)}" if os.path.lexists(path_meant(file.path)) else "as planned"
        typer.echo(f"new files matching {printable(glob)} are laid out {like}")
    return left


def _say_way_back(root: Path, globs: Sequence[str], kept: KeptPlan | None) -> None:
    """The commands after which new files lie as before."""
    commands = [command_line(["stripewise", "store", "template", "rm", str(root), glob]) for glob in globs]
    commands += [] if kept is None else [rm_command(root, kept)]
    if commands:
        typer.echo("to take that back:")
    for command in commands:
        typer.echo(f"  {printable(command)}")


@dataclass(frozen=True, kw_only=True)
class TuneRequest:
    """What is tuned with and compared, and on which files."""

    policy: Annotated[
        str, typer.Option("--policy", metavar="POLICY,...", help="Policies to compare, separated by commas.")
    ] = "best"
    baseline: Annotated[
        str, typer.Option("--baseline", metavar="POLICY", help="Policy that gains are relative to.")
    ] = "def"
    levers: Annotated[
        str,
        typer.Option(
            "--levers",
            metavar="LEVER,...",
            help="What is looked for: layout, mpi (ways of MPI-IO, with --baseline's layout), or layout,mpi: pairs.",
        ),
    ] = "layout"
    manage: ManageOption = None
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="DIR", help="New directory for the traces (default: traces are deleted)."),
    ] = None
    keep: Annotated[
        bool,
        typer.Option(
            "--keep/--no-keep",
            help="Keep the fastest plan in the store, for later runs of CMD and its new files.",
        ),
    ] = True
    repeat: Annotated[
        int | None,
        typer.Option(
            "--repeat",
            metavar="N",
            min=1,
            help="Runs of each layout, interleaved (default: 2, up to 5 until the mean is known to 5 %).",
        ),
    ] = None
    reset: Annotated[
        str | None,
        typer.Option(
            "--reset",
            metavar="CMD",
            help="Shell command that restores the inputs of CMD before each run but the first.",
        ),
    ] = None


@flattened
def tune(
    *,
    command: CommandArgument,
    store: StoreOption,
    asked: TuneRequest,
    sizes: SizeOptions,
    seed: SeedOption = 0,
    search: SearchOptions,
    json: JsonOption = False,
) -> None:
    """Trace CMD, plan layouts, measure them, and keep the fastest."""
    options = plan_options(sizes, seed, search)
    levers = levers_named(asked.levers)
    compared, chosen = policy_named(asked.baseline), policies_named(asked.policy)
    if not chosen:
        raise UsageError("--policy: no policy given; give one, or several separated by commas")
    chosen = chosen if "layout" in levers else []
    refuse_foreign([compared, *chosen], options)
    opened = Store(store)
    kept = None if asked.trace is None else trace_directory(asked.trace)
    # With --json stdout is the answer's alone; what people and the program say goes to stderr.
    out = sys.stderr.buffer if json else sys.stdout.buffer

    def line(text: bytes) -> None:
        out.write(text)
        out.flush()

    show = Shown(say, line, progress)
    tuner = Tuner(opened, command, options, asked.manage or [], Turns(asked.repeat, asked.reset, levers), show)
    tuned = _with_caveats(tuner.tune(compared, chosen, kept), opened)
    with contextlib.redirect_stdout(sys.stderr) if json else contextlib.nullcontext():
        _print(tuned, [each for each in opened.config.cluster.targets if each.state != "removed"])
        if asked.keep and tuned.kept is not None:
            globs = _lay_out_anew(opened, tuned)
            _say_way_back(opened.root, globs, _keep(opened, tuned, tuned.kept))
        if asked.trace is not None:
            _say_traces(tuned, asked.trace)
    if json:
        print_json(tuned.as_json())
