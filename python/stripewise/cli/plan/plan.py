"""`stripewise plan`: from a trace to plan.json, and the check of a plan."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ...cluster import read_cluster
from ...errors import NoRequestsError, StripewiseError, UsageError
from ...files.parts import check_output
from ...plan import Plan, read_plan, write_plan
from ...plan.check import check_plan
from ...plan.migrations import DIRECTIONS
from ...plan.summary import PlanSummary, layouts_json, likely_lines, run_moving, summary_of, why_left, windows_text
from ...policy import POLICIES, plan_by, policy_named, refuse_foreign
from ...policy.default import Default
from ...replicas.stored import planned
from ...run.baseline import against_present
from ...run.kept_gains import measured_shares
from ...run.recreated import as_made, passing_files
from ...run.simulated import with_simulation
from ...run.tuned import without_files
from ...store import Store, plans
from ...store.config import KeptPlan
from ...store.placed import with_room
from ...store.traced import on_store, plain_advice
from ...units import command_line, format_size, quoted
from ...workload import Workload
from ...workload.copied import Copied, copied_in
from ...workload.counted import Choice
from ...workload.layouts import store_of_trace
from ...workload.made import made_in
from ...workload.maps import with_maps
from ...workload.trace import Progress, is_profile, read_meta, read_trace, run_end, run_place, trace_file
from ..arguments import flattened
from ..options import JsonOption, names_completed
from ..output import (
    aligned,
    print_json,
    printable,
    progress,
    regions_drawn,
    regions_text,
    say,
    say_partial,
    shown,
    targets_text,
    wrapped,
)
from ..store.plan import keep_none
from .caveats import of_copies, of_devices, of_lost_targets, of_regions, of_room, standing_copies
from .expected import all_lines
from .options import (
    FileOptions,
    SearchOptions,
    SeedOption,
    SizeOptions,
    WindowOptions,
    plan_options,
    require_window,
    say_of_trace,
)
from .with_copies import CopyOptions, copies_json, copies_lines, tried_lines

#: Of a plan so many files are shown, and so many rows of regions of each; the others are counted.
FILES_SHOWN = 8
ROWS_SHOWN = 12
#: Of more windows than these, those alone are shown that have moves, and the first one.
WINDOWS_SHOWN = 12


def print_plan(plan: Plan, summary: PlanSummary, title: str, whole: str, gains: Iterable[str]) -> None:
    """The plan for people; `whole` says where all of its regions stand, `gains` are the lines of what it gains."""
    typer.echo(wrapped(printable(title)))
    _print_regions(plan, whole)
    held = [(name, format_size(count)) for name, count in summary.target_bytes.items()]
    _print_lines(aligned(("target", "bytes"), held))
    if plan.replicas is not None:
        _print_lines(copies_lines(plan.replicas))
        typer.echo("of the layouts alone:")
    _print_lines(gains)
    if plan.comment:
        typer.echo(wrapped(plan.comment))
    _print_windows(summary)


def _print_regions(plan: Plan, whole: str) -> None:
    """Where the plan puts the largest files to begin with."""
    order = sorted(plan.files, key=lambda file: -file.size)
    for file in order[:FILES_SHOWN]:
        counted = regions_text(file.layout, file.size)
        typer.echo(f"{printable(file.path)}: {format_size(file.size)}, {counted}")
        _print_lines(regions_drawn(file.layout, ROWS_SHOWN, file.size))
    if order:
        grows = {targets_text({name for name, _ in file.regions[-1].stripes}) for file in order}
        where = f"on {grows.pop()}" if len(grows) == 1 else "on those of each file's last row"
        typer.echo(wrapped(f"growth: what files get behind their last planned region later, {where}"))
    more = len(order) - FILES_SHOWN
    regions = sum(len(file.regions) for file in order[FILES_SHOWN:])
    if more > 0:
        typer.echo(f"and {more:,} further file(s), none larger, with {regions:,} region(s)")
    if more > 0 or any(len(file.regions) > ROWS_SHOWN for file in order):
        typer.echo(wrapped(f"all regions: {whole}"))


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)


def _print_windows(plan: PlanSummary) -> None:
    """The windows of a plan, for people: how many, how long, and where there are several, what is in each."""
    if said := windows_text(plan):
        typer.echo(wrapped(said))
    if len(plan.windows) < 2:
        return
    moving = [window for window in plan.windows if sum(window.moves.values())]
    all_drawn = len(plan.windows) <= WINDOWS_SHOWN
    drawn = [window for window in plan.windows if all_drawn or window in moving or not window.number]
    typer.echo("share on hybrid servers, and cost in s; with / without migration:")
    served = []
    for window in drawn:
        number, figures = str(window.number), window.figures
        served.append(
            (
                number,
                f"{window.start_s:g} s",
                "-" if figures is None else f"{figures.requests:,}",
                "-" if figures is None else f"{figures.hybrid_regions:,}",
                "-" if figures is None else _both(100 * window.hybrid_share, 100 * window.hybrid_share_static, 1),
                "-" if figures is None else _both(figures.cost_s, figures.cost_static_s, 2),
            )
        )
    _print_lines(aligned(("window", "starts", "requests", "hybrid regions", "% on hybrid", "cost s"), served))
    if len(drawn) < len(plan.windows):
        typer.echo(f"and {len(plan.windows) - len(drawn):,} window(s) more, at whose beginning nothing moves")
    if moving:
        moved = [
            (
                str(window.number),
                *(str(window.moves[direction]) for direction in DIRECTIONS),
                format_size(window.moved_bytes),
                shown(100 * window.moved_share, 1),
                shown(window.copy_cost_s, 2),
            )
            for window in moving
        ]
        typer.echo("moves at their beginning:")
        _print_lines(aligned(("window", *DIRECTIONS, "moved", "% of data", "copies s"), moved))
        if len(moving) < len(plan.windows):
            typer.echo(f"no moves at the beginning of {len(plan.windows) - len(moving):,} window(s)")
    typer.echo(
        wrapped(
            f"region mapping table: {plan.table_entries:,} entries (each region, and each of its moves), "
            f"{format_size(plan.table_bytes)} at 128 bytes each"
        )
    )
    if plan.migration_gain is not None:
        said = (
            f"migration: {plan.migration_gain.requests_only:.2f} times cheaper than staying as in window 0 by the "
            f"request model, {plan.migration_gain.with_copies:.2f} times with the copies counted"
        )
        typer.echo(wrapped(said))


def _both(here: float, static: float, digits: int) -> str:
    """With and without migration."""
    return f"{shown(here, digits)} / {shown(static, digits)}"


def _holds(store: Store, path: str) -> bool:
    """Whether a file lies in the store; one in a store that this user may not open does not."""
    with contextlib.suppress(StripewiseError):
        return store.resolve(path) is not None
    return False


def _read(trace: Path, choice: Choice, step: Progress, store: Store | None) -> Workload:
    """The requests to plan for."""
    try:
        return read_trace(trace, choice, step, lambda path: store is not None and _holds(store, path))
    except NoRequestsError as error:
        raise with_maps(error, trace, choice) from error


def _gone(workload: Workload, store: Store) -> UsageError:
    """What to raise where nothing of a run lies any more in the store that had it."""
    command = printable(command_line(["stripewise", "plan", workload.source, "--cluster", str(store.root)]))
    if advice := plain_advice(workload, store):
        return UsageError(f"plan: the files of this run are not in {store.root} any more; {advice}; or {command}")
    return UsageError(
        f"plan: the files of this run are gone from {store.root} (removed since): run the program again, or give "
        f"--cluster: {command}"
    )


def _of_store(
    workload: Workload, store: Store, given: Path | None, asked: PlanRequest, words: Sequence[str]
) -> Workload:
    """What of a workload lies in the store, which is said where no store was `given`; UsageError with what helps where
    nothing does.
    """
    found = on_store(workload, store)
    is_own = asked.cluster is None and given is None
    if found.files:
        if is_own:
            say(f"stripewise: planned for {printable(str(store.root))}, the store that has its files")
        return found
    if is_own:
        raise _gone(workload, store)
    command = ["stripewise", "plan", str(asked.trace), "--cluster", str(asked.cluster or store.root), *words]
    if asked.policy != "best":
        command += ["--policy", asked.policy]
    if asked.output is not None:
        command += ["-o", str(asked.output)]
    cure = plain_advice(workload, store) or "trace a run that makes its files in the store"
    raise UsageError(
        f"--store: {store.root} holds none of the files in {workload.source}; {cure}; to plan on its devices whatever "
        f"lies there: {printable(command_line(command))}"
    )


def _on_own_store(asked: PlanRequest, trace: Path) -> PlanRequest:
    """The same for the store that has the trace's files. UsageError where there is none, or none alone."""
    trace_file(trace)
    if (root := store_of_trace(trace)) is None:
        raise _no_devices(trace)
    return dataclasses.replace(asked, store=Path(root))


def _no_devices(trace: Path) -> UsageError:
    """What to raise where nothing tells which devices to plan on, with the commands that do."""
    words = command_line(["stripewise", "plan", str(trace)])
    return UsageError(
        f"plan: give the devices: {printable(words)} --cluster CLUSTER (cluster.toml, store.toml or a store's "
        "directory), or --store STORE for files that lie in a store"
    )


def _check(path: Path, cluster: Path | None, root: Path | None, json: bool) -> None:
    """Holds a plan against a cluster, and against a store: its targets and its files."""
    plan = read_plan(path)
    store = None if root is None else Store(root)
    described = read_cluster(cluster) if cluster is not None else store.config.cluster if store else None
    # First, for what else is wrong with a plan of another store tells little.
    remarks = [] if store is None else plans.check_files(store, plan, path)
    if described is not None and (store is None or described is not store.config.cluster):
        remarks += check_plan(plan, described, path)
    if plan.replicas is not None and described is not None:
        planned(plan.replicas, described, path)
    if store is not None:
        sizes = {file.path: file.size for file in plan.files}
        on, reserved = with_room(store, store.config.cluster, sizes)
        remarks += [each for each in check_plan(plan, on, path, reserved) if each not in remarks]
        found = ((each, store.resolve(each)) for each in sizes if each.startswith("/"))
        ids = {each: identity for each, identity in found if identity is not None}
        lying = {each: store.layout(identity) for each, identity in ids.items()}
        remarks += [*of_lost_targets(store, plan, lying), *filter(None, [of_room(store, plan, ids)])]
    summary = summary_of(plan, [] if described is None else [target.name for target in described.targets])
    if json:
        print_json({"ok": True, "remarks": remarks, **summary.as_json(), "layouts": layouts_json(plan)})
        return
    for remark in remarks:
        say(f"stripewise: {remark}")
    alone = " by itself (its targets and files are looked at with --cluster or --store)" if described is None else ""
    print_plan(plan, summary, f"{path}: sound{alone}", f"{path}, or --json", all_lines(plan.expected))


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """What is planned, by whom, and where the plan goes."""

    trace: Annotated[Path | None, typer.Argument(help="Collected trace, or profile.json.", metavar="TRACE")] = None
    check: Annotated[
        Path | None, typer.Option("--check", metavar="PLAN", help="Plan to validate, in place of planning.")
    ] = None
    cluster: Annotated[
        Path | None, typer.Option("--cluster", metavar="CLUSTER", help="cluster.toml, store.toml or store directory.")
    ] = None
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="POLICY",
            help=f"Policy: {', '.join(sorted(POLICIES))}, or a Python file of your own.",
            autocompletion=names_completed(sorted(POLICIES)),
        ),
    ] = "best"
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Output file for the plan.")] = (
        None
    )
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", metavar="STORE", help="Store whose files to plan, within the space that its other files leave."
        ),
    ] = None
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the plan in the store, for later runs of the application.")
    ] = False


@flattened
def plan(
    *,
    asked: PlanRequest,
    files: FileOptions,
    sizes: SizeOptions,
    seed: SeedOption = 0,
    windows: WindowOptions,
    search: SearchOptions,
    copies: CopyOptions,
    json: JsonOption = False,
) -> None:
    """Plan layouts for the files of a trace, or check a plan.

    With --replicas copies, too, which 'apply' makes.
    """
    trace, cluster, output = asked.trace, asked.cluster, asked.output
    if asked.check is not None:
        if trace is not None or output is not None or asked.keep:
            raise UsageError("--check: takes a plan, --cluster and --store; leave out the trace, -o and --keep")
        _check(asked.check, cluster, asked.store, json)
        return
    if trace is None:
        raise UsageError("plan: give a collected TRACE, or --check plan.json")
    if is_profile(trace):
        from ...pioneer.synthesis.requests import as_trace

        trace = as_trace(trace)
        asked = replace(asked, trace=trace)
    given = asked.store
    if cluster is None and given is None:
        asked = _on_own_store(asked, trace)
    if asked.keep and asked.store is None:
        raise UsageError("--keep: needs --store, where the plan is kept")
    _refuse_several(asked)
    chosen = policy_named(asked.policy)
    options = plan_options(sizes, seed, search, windows)
    refuse_foreign([chosen], options)
    require_window(windows)
    if copies != CopyOptions():
        copies.check(windows, asked.keep)
    if output is not None:
        check_output(output)
    opened = None if asked.store is None else Store(asked.store)
    described = read_cluster(cluster) if cluster is not None else opened.config.cluster if opened else None
    assert described is not None  # one of the two was given
    with progress("reading the trace") as step:
        workload = _read(trace, files.choice(), step, opened)
    ended = run_end(trace)
    say_partial(workload.source, workload.partial)
    say_of_trace(workload.source, ended=ended.text, left_out=workload.left_out)
    about: dict[str, Any] = {"exit_status": ended.status, "left_out": dict(workload.left_out)}
    if opened is not None:
        workload = _of_store(workload, opened, given, asked, files.choice().words() if files.flags else [])
        known = {each.path: each.size_bytes for each in workload.files}
        described, reserved = with_room(opened, described, known, copies.space_bytes)
        options = dataclasses.replace(options, reserved_bytes=reserved)
    joint = None
    with progress(f"planning with {chosen.name}"):
        if copies.replicas is None:
            made = plan_by(chosen, workload, described, options)
        else:
            joint = copies.jointly(trace, files.choice(), workload, (described, chosen, options))
            made = joint.plan()
    if joint is None and made.expected.simulated_io_s is None and chosen.name != Default.name:
        with progress(f"simulating {chosen.name}"):
            made = with_simulation(made, workload, described, options)
    copied: dict[str, Copied] = {}
    caveats: list[str] = []
    lost: list[str] = []
    crowded = ""
    # Of a cluster alone nobody knows whether it is this machine's.
    if opened is not None:
        copied = copied_in(trace, {each.path for each in workload.files})
        standing = standing_copies(opened, [each.path for each in workload.files])
        caveats = [
            *of_copies(copied, standing, asked.store),
            *of_devices(described, asked.store),
            *of_regions(made, described),
        ]
        caveats = caveats if made.policy != Default.name else []
        ids = {each.path: each.id for each in workload.files if each.id is not None}
        lying = {path: opened.layout(identity) for path, identity in ids.items()}
        lost = list(of_lost_targets(opened, made, lying))
        crowded = "" if made.leave else of_room(opened, made, ids)
        for each in filter(None, [*lost, crowded]):
            say(f"stripewise: warning: {printable(each)}")
    about |= {"caveats": [*lost, *filter(None, [crowded]), *caveats]}
    about |= {"copied": {path: {"reads": each.reads, "bytes": each.bytes} for path, each in copied.items()}}
    passing: frozenset[str] = frozenset()
    if opened is not None:
        anew = made_in(trace)
        made, passing = as_made(made, anew), passing_files(made, anew)
    if output is not None:
        write_plan(made, output)
    kept = None
    if opened is not None and asked.keep:
        kept = _keep(opened, made, passing, workload.source, run_place(read_meta(trace)), output)
    summary = summary_of(made, [target.name for target in described.targets])
    if json:
        said = summary.as_json() | about | {"layouts": layouts_json(made)}
        said |= {} if joint is None else copies_json(joint, made)
        print_json(said | ({"kept": [kept.application, kept.processes]} if kept is not None else {}))
        return
    why = why_left(made)
    whole = "-o PLAN writes them, --json prints them" if output is None else f"{output}, or --json"
    shares = () if opened is None else measured_shares(opened.config)
    gains = [wrapped(line) for line in likely_lines(made.expected, shares)]
    if opened is not None and made.policy != Default.name and not made.leave:
        present = against_present(made, workload, described, options, lying)
        gains += [wrapped(present)] if present else []
    gains += [*(wrapped(f"but {printable(caveat)}") for caveat in caveats), _whereabouts(output)]
    if made.expected.simulated_gain is None and chosen.name != Default.name and joint is None:
        policies = ",".join(dict.fromkeys(("def", "best", asked.policy)))
        against = [str(trace), "--cluster", str(cluster or asked.store), "--policy", policies]
        against += files.choice().words() if files.flags else []
        simulating = printable(command_line(["stripewise", "simulate", "--trace", *against]))
        gains.append(f"simulated, to compare it with others: {simulating}")
    print_plan(made, summary, f"{chosen.name}: {len(made.files)} file(s)", whole, gains)
    if joint is not None:
        _print_lines(tried_lines(joint))
    if why and not (made.leave and made.replicas is None):
        typer.echo(f"leave it as it is: this plan {why}")
    if kept is not None:
        typer.echo(
            f"kept for {printable(kept.title)}: 'stripewise run --store' follows it where CMD ends with these words"
        )
    if output is not None:
        store = "STORE" if asked.store is None else str(asked.store)
        following = f"stripewise apply {quoted(output)} --store {quoted(store)}"
        then = f"leave it as it is, or: {following} --anyway" if why else f"next: {following}"
        once = "its targets are back" if lost else "there is room for it" if crowded else ""
        then = then.replace("next: ", f"next, once {once}: ", 1) if once else then
        if asked.store is None and not why and any(file.id is None for file in made.files):
            then += ", which has its files ('stripewise store adopt' brings plain ones in)"
        is_nothing = made.leave and made.replicas is None
        typer.echo(f"{output}: written; {'apply would move nothing' if is_nothing else then}")
        if summary.later_moves and not why:
            typer.echo(f"then, for the {summary.later_moves:,} move(s) during the run: {run_moving(output, store)}")
            typer.echo("windows begin at the traced run's times: a run that is faster has its phases before them")


def _keep(
    store: Store, made: Plan, passing: frozenset[str], source: str, ran_in: str, output: Path | None
) -> KeptPlan | None:
    """Keeps a plan but for the `passing` files, which later runs do not have; None where it has no others."""
    apply = command_line(["stripewise", "apply", "PLAN" if output is None else str(output), "--store", str(store.root)])
    templates = f"{'with -o PLAN, ' if output is None else ''}'{apply}' leaves templates"
    rest = without_files(made, passing)
    if passing and not rest.files:
        instead = f"traced; {templates}, which lay new ones out"
        keep_none(store, made, ran_in, instead, lambda text: say(f"stripewise: {printable(text)}"))
        return None
    kept, remarks = plans.keep(store.root, rest, source, ran_in=ran_in)
    if passing:
        first, *others = sorted(passing)
        more = f" and {len(others)} more" if others else ""
        remarks.append(f"kept without {first}{more}: later runs have others in their place; {templates} for these")
    for remark in remarks:
        say(f"stripewise: {printable(remark)}")
    return kept


def _refuse_several(asked: PlanRequest) -> None:
    """UsageError for several policies in place of one, naming the command that compares them."""
    if "," not in asked.policy or os.path.lexists(asked.policy):
        return
    trace = "TRACE" if asked.trace is None else str(asked.trace)
    cluster = next((str(each) for each in (asked.cluster, asked.store) if each is not None), "CLUSTER")
    words = ["stripewise", "simulate", "--trace", trace, "--cluster", cluster, "--policy", asked.policy]
    raise UsageError(f"--policy: plan takes one policy; to compare several: {printable(command_line(words))}")


def _whereabouts(plan: Path | None) -> str:
    """Where all factors are told of a plan that lies there, or nowhere yet."""
    if plan is None:
        return "bounds and proof: -o PLAN writes them, --json prints them"
    verb = "show" if plan.suffix == ".json" else "plan --check"
    return f"bounds and proof: stripewise {verb} {quoted(plan)}"
