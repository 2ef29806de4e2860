"""`stripewise replicate TRACE`: which replicas PDLA and RADAR would make, what they are worth, and making them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from ...cluster import Cluster, read_cluster
from ...errors import UsageError
from ...findings import DEFAULT_CLUSTER, RunFacts, facts_of, reads_of, span_of
from ...layout import is_rotation
from ...pattern import PatternReport, report_as_asked, report_of
from ...plan.replicas import ON_WRITE
from ...replicas import (
    DECAYS,
    MANAGERS,
    Candidate,
    Decision,
    Found,
    Options,
    RadarOptions,
    Setting,
    accesses_of,
    by_hand,
    decay_named,
    decide,
)  # fmt: skip
from ...replicas.building import files_elsewhere, without_files
from ...replicas.candidate import STANDS_ALREADY, VERSION
from ...replicas.lying import Lying, lying
from ...replicas.managers import PER_SSERVER
from ...replicas.prices import space_bytes
from ...replicas.standing import digest_of, turn_of
from ...replicas.stored import read_stored
from ...setup.remarks import modelled_apart
from ...store import Store
from ...store.config import check_untuned, read_store
from ...units import format_size, parse_size, parse_span, seconds_text
from ...workload.copied import copied_in, copied_text
from ...workload.layouts import store_of_trace
from ...workload.trace import partial_reasons, run_end, trace_file
from ..arguments import flattened
from ..options import JsonOption, MoverOptions, names_completed
from ..output import (
    print_json,
    printable,
    say,
    say_partial,
    standing,
    stdout,
    stripes_text,
    table,
    targets_text,
    wrapped,
)
from ..plan.options import FileOptions, say_of_trace
from .building import Making, build_chosen, say_elsewhere, tell_not_made
from .watching import take_up_all

LAYERS = ("auto", "posix", "mpi")
SECONDS_RANK = (
    "the model's seconds, building's among them, rank replicas; those of a run are simulated by 'stripewise plan "
    "--replicas SIZE'"
)
#: Rows of a table; --json has all.
ROWS_MAX = 20
#: The model's seconds over the run's from which something else than its devices is told to serve the files.
QUICKER = 1.5
#: Times between the model's seconds and those of the run's own reads from which the model is said to be off.
OFF = 3
#: The reads of a run took less than copies would save, beyond what runs differ by.
NEAR = 1.2


@dataclass(frozen=True, kw_only=True)
class ManagerOptions:
    """Who decides, and by what."""

    manager: Annotated[
        str,
        typer.Option(
            "--manager",
            metavar="NAMES",
            help=f"Managers, comma-separated: {', '.join(MANAGERS)}.",
            autocompletion=names_completed(MANAGERS, with_commas=True),
        ),
    ] = "radar"
    space: Annotated[
        str | None,
        typer.Option(
            "--space",
            metavar="SIZE",
            help="Maximum space of replicas: in all (h-pdla, radar), or on each SServer (s-pdla, s-orig, ns-pdla).",
        ),
    ] = None
    min_benefit: Annotated[
        float,
        typer.Option("--min-benefit", metavar="SECONDS", min=0, help="s-pdla: minimum benefit of a critical pattern."),
    ] = 0.0
    bucket: Annotated[
        str | None,
        typer.Option(
            "--bucket",
            metavar="TIME",
            help="radar: window whose patterns act together, by their start (default: those that overlap in time).",
        ),
    ] = None
    stored: Annotated[
        Path | None,
        typer.Option("--stored", metavar="FILE", help="radar: existing replicas, as the --json of an earlier run."),
    ] = None
    decay: Annotated[
        str,
        typer.Option(
            "--decay",
            metavar="DECAY",
            help=f"radar: decay of their benefit: {', '.join(DECAYS)} or FILE.py:NAME.",
        ),
    ] = "half-life"
    on_write: Annotated[
        str,
        typer.Option(
            "--on-write",
            metavar="ACTION",
            help="What writes of a managed file do to the copies: update them, or invalidate what they write.",
            autocompletion=names_completed(ON_WRITE),
        ),
    ] = ON_WRITE[0]

    def names(self) -> list[str]:
        """The managers, each once. UsageError for an unknown one."""
        found = list(dict.fromkeys(self.manager.split(",")))
        for name in found:
            if name not in MANAGERS:
                raise UsageError(f"--manager: '{name}' is not known; give one or more of {', '.join(MANAGERS)}")
        return found

    def made(self) -> Options:
        """As managers take them. Raises UsageError for a bad one."""
        if self.on_write not in ON_WRITE:
            raise UsageError(f"--on-write: '{self.on_write}' is not known; give one of {', '.join(ON_WRITE)}")
        stored = () if self.stored is None else read_stored(self.stored)
        bucket_ns = None if self.bucket is None else parse_span(self.bucket, "--bucket")
        radar = RadarOptions(bucket_ns, decay_named(self.decay), stored)
        space_bytes = None if self.space is None else parse_size(self.space, "--space")
        return Options(space_bytes, self.min_benefit, radar, on_write=self.on_write)


@dataclass(frozen=True, kw_only=True)
class PlaceOptions:
    """Where replicas would stand, and of what."""

    cluster: Annotated[
        Path | None, typer.Option("--cluster", metavar="FILE", help="Cluster to price on (default: the trace's store).")
    ] = None
    store: Annotated[
        Path | None, typer.Option("--store", metavar="STORE", help="Store to build in, and to price on.")
    ] = None
    layer: Annotated[
        str,
        typer.Option(
            "--layer", metavar="LAYER", help="Traced layer: mpi, posix, or auto (mpi for files read by MPI-IO)."
        ),
    ] = "auto"
    pattern: Annotated[
        list[str] | None,
        typer.Option(
            "--pattern",
            metavar="PATTERN",
            help="Pattern of runs to come, as FILE,read:BASE:BLOCK:STRIDExCOUNT@PROCESSES; repeatable.",
        ),
    ] = None

    def store_of(self, trace: Path) -> Path | None:
        """The store whose devices and layouts count: the one that is named, else the one that had the files."""
        if self.store is not None or self.cluster is not None:
            return self.store
        found = store_of_trace(trace)
        return None if found is None else Path(found)

    def priced_on(self, trace: Path) -> Cluster:
        """The devices that are named, else those of the store that had the files, else usual ones."""
        if self.cluster is not None and self.store is not None:
            raise UsageError("--store: names the devices, and so does --cluster; give one of them")
        if self.cluster is not None:
            return read_cluster(self.cluster)
        store = self.store_of(trace)
        return DEFAULT_CLUSTER if store is None else read_store(store).cluster


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """Whether anything is made, and how."""

    what_if: Annotated[bool, typer.Option("--what-if", help="Estimate only: gain, space, time to build.")] = False
    without_lease: Annotated[
        bool, typer.Option("--without-lease", help="Take no lease: you make sure that no program writes the files.")
    ] = False
    watch: Annotated[
        bool, typer.Option("--watch", help="Take up each collected trace in the directory TRACE, and those to come.")
    ] = False

    def check(self, managers: list[str], store: Path | None, json: bool) -> None:
        """UsageError unless it is an estimate, or one manager's choice and a store to build it in."""
        if self.watch and (self.what_if or json or managers != ["radar"]):
            raise UsageError("--watch: builds what radar chooses, run by run; leave out --what-if, --json, --manager")
        if self.what_if:
            return
        if store is None:
            raise UsageError(
                "replicate: give --store STORE, in which the copies are to stand, or --what-if for an estimate alone"
            )
        if len(managers) != 1:
            raise UsageError(
                f"--manager: {', '.join(managers)} decide each for himself; give the one whose choice is built, or "
                "--what-if to compare them"
            )

    def making(self, mover: MoverOptions) -> Making:
        """As `build_all` takes it. Raises UsageError for a bad one."""
        return Making(not self.without_lease, mover.limits)


@flattened
def replicate(
    *,
    trace: Annotated[Path, typer.Argument(help="Collected trace.", metavar="TRACE")],
    building: BuildOptions,
    managers: ManagerOptions,
    place: PlaceOptions,
    files: FileOptions,
    mover: MoverOptions,
    json: JsonOption = False,
) -> None:
    """Copy what a run reads, in its order of access.

    Or say only what copies are worth. Programs that read plain files use them until one is opened for writing; copies
    of managed files are written with them, or stale from then on. The same copies that still count are left alone.

    Managers: h-pdla (a replica per pattern on HServers), s-pdla (critical patterns on SServers or both), radar (read
    patterns, by benefit and space). For comparison: s-orig (files on SServers), ns-pdla (all patterns on SServers).
    """
    if place.layer not in LAYERS:
        raise UsageError(f"--layer: '{place.layer}' is not known; give one of {', '.join(LAYERS)}")
    building.check(managers.names(), place.store, json)
    making = building.making(mover)
    if building.watch and place.store is not None:
        take_up_all(
            trace, Store(place.store), lambda each: _take_up(each, building, making, managers, place, files, json)
        )
        return
    _take_up(trace, building, making, managers, place, files, json)


def _take_up(
    trace: Path,
    building: BuildOptions,
    making: Making,
    managers: ManagerOptions,
    place: PlaceOptions,
    files: FileOptions,
    json: bool,
) -> None:
    """One trace."""
    names, options, given = managers.names(), managers.made(), [by_hand(each) for each in place.pattern or ()]
    cluster = place.priced_on(trace)
    with contextlib.ExitStack() as held:
        held.enter_context(standing(lambda: "no copies were made, and no file has changed"))
        turn = None
        if place.store is not None:
            if not building.what_if:
                check_untuned(read_store(place.store).root)
            turn = held.enter_context(turn_of(Store(place.store), digest_of(trace_file(trace)), building.what_if))
            options = options if managers.stored is not None else turn.options(options)
        report = _reported(trace, files, place.layer)
        say_partial(str(trace), partial_reasons(trace))
        say_of_trace(str(trace), ended=run_end(trace).text)
        found = accesses_of(report)
        found = Found((*given, *found.patterns), found.without, found.extents)
        lies = lying(trace, {each.file for each in found.patterns}, place.store_of(trace))
        setting = Setting(cluster, lies.layouts)
        elsewhere = files_elsewhere(found, turn.store) if turn is not None else []
        found, left_out = without_files(found, elsewhere)
        decisions = [decide(name, found, setting, options) for name in names]
        said = {"version": VERSION, "cluster": str(cluster.source), "managers": [each.as_json() for each in decisions]}
        said |= {"elsewhere": elsewhere, "laid_now": sorted(lies.now), "laid_anew": sorted(lies.anew)}
        if json and building.what_if:
            print_json(said)
            return
        copied = copied_in(trace, {each.path for each in report.files})
        if copied:
            by_mpi = any(each.path in copied and each.layer == "mpi" for each in report.files)
            sieved = ", request by request, where the MPI library may sieve: its seconds are at most these" * by_mpi
            say(
                f"stripewise: {printable(copied_text(copied))}, in this run; the model has them read from the file "
                f"itself{sieved}"
            )
        elif not given and any(each.of_run for each in decisions):
            _say_measured(trace, facts_of(trace, files.choice()), decisions, lies)
        if not building.what_if and turn is not None:
            if not json:
                say_elsewhere(elsewhere)
                if found.patterns or not elsewhere:
                    _tell(decisions[0], options)
                    _tell_prices(cluster, {each.file for each in found.patterns}, setting, lies)
            build_chosen(turn, decisions[0], found.extents, making, said if json else None, left_out)
            return
        for decision in decisions:
            _tell(decision, options)
        say_elsewhere(elsewhere)
        _tell_prices(cluster, {each.file for each in found.patterns}, setting, lies)


def _reported(trace: Path, files: FileOptions, layer: str) -> PatternReport:
    """The patterns of the layer that is asked for, those of MPI-IO with what was made of them."""
    if layer == "posix":
        return report_of(trace, files.choice(), layer)
    report = report_as_asked(trace, files.choice())
    if layer == "auto":
        return report
    kept = tuple(each for each in report.files if each.layer == layer)
    # Without any, the error says what there is.
    return replace(report, files=kept) if kept else report_of(trace, files.choice(), layer)


#: A reason why a run may take longer than the model has it.
READS_ON = "it has servers read on over gaps below 128 KiB, which some disks do not: "


def _say_measured(trace: Path, run: RunFacts, decisions: Sequence[Decision], lies: Lying) -> None:
    """That the run's own time for the reads of one of the decisions contradicts the model's, if it does."""
    span_s = 0.0 if run.is_predicted else span_of(run)
    # Of this run: what stands of others was priced by theirs.
    for each in decisions:
        copies = [one for one in each.of_run if not one.is_home]
        moved, took_s = reads_of(run, {one.file for one in copies})
        model_s = each.original_s
        is_of_all = len(copies) == len(each.of_run) and sum(one.bytes for one in copies) * OFF >= moved * (OFF - 1)
        saved_s = sum(one.gain_s for one in copies)
        is_quick = 0 < took_s < max(saved_s / NEAR, model_s / OFF) or 0 < span_s * QUICKER < model_s
        if is_quick or (copies and is_of_all and took_s > model_s * OFF):
            took = f"{seconds_text(took_s)} s for these reads" if took_s else f"{seconds_text(span_s)} s"
            why = "memory or faster devices serve these, so copies may be slower: " if is_quick else READS_ON
            why = f"{why}the model is off"
            if lies.anew & {one.file for one in each.of_run}:
                why = "files were laid out anew since, and the model has them as they lie now"
            say(
                f"stripewise: {printable(str(trace))}: the traced run took {took}, the model says "
                f"{seconds_text(model_s)} s: {why}. Time the program with copies and without; "
                "'stripewise store replica rm' drops them"
            )
            return


def _tell_prices(cluster: Cluster, paths: set[str], setting: Setting, lies: Lying) -> None:
    """What prices are of: devices, how files were taken to lie on them, and which of these are one in truth."""
    known = [path for path in paths if setting.is_known(path)]
    typer.echo(wrapped(f"priced on {printable(str(cluster.source))}; {lies.text(paths, known)}"))
    # Usual devices stand for none of this machine.
    for one in () if cluster is DEFAULT_CLUSTER else modelled_apart(cluster.active):
        typer.echo(wrapped(printable(one)))


def _tell(decision: Decision, options: Options) -> None:
    """A table for each file, the sum, and what is not made."""
    by_file: dict[str, list[Candidate]] = {}
    for each in decision.of_run:
        by_file.setdefault(each.file, []).append(each)
    for path, mine in by_file.items():
        made = table(
            f"{decision.manager}: {printable(path)}",
            "pattern", "layout", "gain s", "times as fast", "space", "build s",
        )  # fmt: skip
        for each in mine[:ROWS_MAX]:
            fast = "-" if each.times_as_fast is None else f"{each.times_as_fast:.2f}"
            made.add_row(
                printable(each.words), _layout_text(each), seconds_text(each.gain_s), fast,
                format_size(each.total_bytes), seconds_text(each.build_s),
            )  # fmt: skip
        stdout().print(made)
        if len(mine) > ROWS_MAX:
            typer.echo(f"and {len(mine) - ROWS_MAX:,} more: --json")
        for number, each in enumerate(mine[:ROWS_MAX], 1):
            said = [f"serves also: {text}" for text in each.also] + list(each.reasons)
            for text in said:
                typer.echo(wrapped(printable(f"row {number}: {text}")))
    typer.echo(wrapped(_sum(decision, options)))
    if decision.of_run:
        typer.echo(wrapped(SECONDS_RANK))
    if decision.of_others:
        typer.echo(wrapped(_beside(decision)))
    tell_not_made(decision.refused)


def _sum(decision: Decision, options: Options) -> str:
    # A pattern whose blocks follow several loops has a replica for each.
    patterns, count = len(decision.of_run), sum(len(each.blocks) for each in decision.of_run)
    if not patterns:
        return f"{decision.manager}: no replica is worth making"
    less = decision.original_s - decision.replica_s
    saved = f"{seconds_text(abs(less))} s {'less' if less >= 0 else 'more'}"
    stand = sum(len(each.blocks) for each in decision.of_run if STANDS_ALREADY in each.reasons)
    building = f"{seconds_text(sum(each.build_s for each in decision.of_run))} s to build"
    if stand:
        alone = "all stand already" if count > 1 else "it stands already"
        building = f"{building}, {stand:,} stand already" if stand < count else f"nothing to build, {alone}"
    fast = f" ({decision.original_s / decision.replica_s:.2f} times as fast)" if decision.replica_s else ""
    bound, held = "", sum(space_bytes(each.space_bytes for each in decision.of_run).values())
    if options.space_bytes is not None:
        each = " on each SServer" if decision.manager in PER_SSERVER else ""
        bound = f" (at most {format_size(options.space_bytes)}{each})"
    return (
        f"{decision.manager}: {count:,} replica{'' if count == 1 else 's'}"
        f"{'' if count == patterns else f' of {patterns:,} pattern(s)'}, I/O by the model "
        f"{seconds_text(decision.original_s)} s from the file{'' if _is_one(decision) else 's'}, "
        f"{saved} from replicas{fast}, {format_size(held)} of space{bound}, {building}"
    )


def _is_one(decision: Decision) -> bool:
    return len({each.file for each in decision.of_run}) == 1


def _beside(decision: Decision) -> str:
    """What stands of other runs, and in which files."""
    others = decision.of_others
    files = sorted({each.file for each in others})
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    held = sum(space_bytes(each.space_bytes for each in others).values())
    count = f"{len(others):,} {'replicas stand' if len(others) > 1 else 'replica stands'}"
    return printable(f"of other runs, not in the sum: {count}, {format_size(held)} of space, of {files[0]}{more}")


def _layout_text(each: Candidate) -> str:
    """The scheme, the first cycle, and over which targets others are, where not over the same ones."""
    regions = each.layout.regions
    targets = targets_text({name for region in regions for name, _ in region.stripes})
    if each.scheme == "1-DV":
        return f"1-DV: each process on one of {targets}"
    first = stripes_text(regions[0].stripes)
    rotated = all(is_rotation(regions[0].stripes, region.stripes) for region in regions)
    several = ", rotated" if any(region.stripes != regions[0].stripes for region in regions) else ""
    if per_process := re.fullmatch(r"n_p (\d+)", each.scheme):
        count = int(per_process[1])
        servers = f"each process on {count:,} server{'' if count == 1 else 's'}"
        if rotated:
            return f"{first}, {servers}{several}"
        return f"{first} for the first process, {servers} of {targets}"
    return f"{each.scheme}: {first}{several}" + ("" if rotated else f", in all over {targets}")
