"""`stripewise init`: a calibrated store from nothing but directories on disks and SSDs, or from emulated ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..calibration.calibrate import FIGURES
from ..cluster import CLASSES, Cluster, Network
from ..devices import shared
from ..errors import UsageError
from ..setup import found
from ..setup.document import FoundTarget, cluster_document
from ..setup.left import cluster_left
from ..setup.make import finished_before, make_store, write_cluster
from ..setup.neighbours import overlaps
from ..setup.plain import plain_files
from ..setup.remarks import remarks
from ..setup.request import Request, Words, request
from ..store import Store
from ..store.globs import without_directory
from ..store.room import parted_text, room_bytes
from ..units import format_size, parse_size, quoted
from .arguments import flattened
from .measuring import SCRATCH, SECONDS_MAX, measuring
from .options import JsonOption, ManageOption
from .output import print_json, printable, say, stdout, table, wrapped

#: Seconds for all directories together unless --seconds says it, and for one of them at least.
SECONDS_ALL, SECONDS_MIN = 40.0, 2.0
#: What follows where all targets are on one device.
NO_CHOICE = (
    "since over one device no layout is faster than another and 'tune' has nothing to find; for trials, "
    "'stripewise init --emulate DIR'"
)


@dataclass(frozen=True, kw_only=True)
class PlaceOptions:
    """Where the store and its cluster.toml go, and what goes into the store."""

    store: Annotated[
        Path | None,
        typer.Option(
            "--store", metavar="STORE", help="Store directory to create (default: ./store; with --emulate: DIR/store)."
        ),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Output file for cluster.toml (default: beside the store)."
        ),
    ] = None
    manage: ManageOption = None


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """What the targets are, where that is not to be found out."""

    emulate: Annotated[
        bool, typer.Option("--emulate", help="Create 4 emulated disks and 2 emulated SSDs below DIR, for trials.")
    ] = False
    klass: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="TARGET=CLASS", help=f"Target class: {', '.join(CLASSES)}; repeatable."),
    ] = None
    capacity: Annotated[
        list[str] | None,
        typer.Option("--capacity", metavar="TARGET=SIZE", help="Maximum bytes on the target; repeatable."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """How directories are measured."""

    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate/--no-calibrate", help="Measure the devices, or assume typical figures of their class."
        ),
    ] = True
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            metavar="SECONDS",
            min=1,
            max=86_400,
            help="Measuring time per directory, in seconds (default: 10, but at most 40 for all).",
        ),
    ] = None
    scratch: Annotated[
        str | None,
        typer.Option(
            "--scratch",
            metavar="SIZE",
            help=f"Size of the scratch file (default: {SCRATCH}), at most 1/16 of the free space.",
        ),
    ] = None

    def refuse(self, why: str) -> None:
        """UsageError where something here was given that would not count."""
        for flag, value in (("--seconds", self.seconds), ("--scratch", self.scratch)):
            if value is not None:
                raise UsageError(f"{flag}: {why} leave it out")


@flattened
def init(
    *,
    directories: Annotated[
        list[str],
        typer.Argument(metavar="DIR...", help="One directory per disk or SSD; with --emulate, a new directory."),
    ],
    place: PlaceOptions,
    targets: TargetOptions,
    options: MeasureOptions,
    json: JsonOption = False,
) -> None:
    """Create a calibrated store over directories.

    Find and measure their devices, and write cluster.toml. Each DIR gets a directory of the store's own. With
    --emulate, DIR gets emulated disks and SSDs, and the store.
    """
    words = Words(targets.klass or (), targets.capacity or ())
    asked = request(directories, targets.emulate, place.store, place.output, place.manage or [], words)
    if targets.emulate or not options.calibrate:
        options.refuse("nothing is measured;" if targets.emulate else "--no-calibrate measures nothing;")
    scratch_bytes = parse_size(options.scratch or SCRATCH, "--scratch")
    asked.check_owned()
    store, left = finished_before(asked), cluster_left(asked)
    if store is not None:
        say(f"{printable(str(store.root))}: was made by an init that was interrupted; only its cluster.toml is written")
        known = found.as_made(store.config.cluster.targets, [home for home, _ in asked.homes()])
    else:
        asked.check(left.cluster is not None, left.why)
        known = _known(asked, left.cluster, options, scratch_bytes)
        store = make_store(asked.store, left.cluster or _cluster(asked.cluster_file, known), asked.manage)
    if left.cluster is None:
        write_cluster(asked.cluster_file, cluster_document(_cluster(asked.cluster_file, known), known, asked.store))
    warnings = (*remarks(known), *overlaps(asked.store, asked.globs()), *without_directory(asked.globs()))
    made = Made(store, asked.cluster_file, tuple(known), warnings)
    if left.cluster is not None:
        apart = [asked.cluster_file, *(home for _, home in asked.homes())]
        for text in plain_files(asked.store, asked.globs(), apart):
            say(printable(text))
    if json:
        print_json(made.as_json())
    else:
        made.show()


def _known(asked: Request, left: Cluster | None, options: MeasureOptions, scratch_bytes: int) -> list[FoundTarget]:
    """The targets with their figures: those of the cluster.toml that was `left`, emulated, measured or assumed."""
    emulated, spots = (asked.emulated(), ()) if asked.emulate else ((), asked.spots())
    if left is not None:
        again = f"rm {quoted(asked.cluster_file)}"
        options.refuse(f"the figures are those of {asked.cluster_file}; to measure anew, {again}, or else")
        say(
            f"{printable(str(asked.cluster_file))}: describes these targets already, as an undo leaves it; their "
            f"figures are taken from it, and it stays as it is (to begin anew: {printable(again)})"
        )
        homes = {path: directory for directory, path in asked.homes()}
        return found.as_made(left.targets, [homes[target.path] for target in left.targets])
    if asked.emulate:
        return found.emulated(emulated, asked.capacities)
    seconds = options.seconds or min(SECONDS_MAX, max(SECONDS_MIN, SECONDS_ALL / len(spots)))
    measured = measuring(seconds, scratch_bytes, len(spots)) if options.calibrate else contextlib.nullcontext()
    with measured as each:
        return found.found_targets(spots, each, asked.classes, asked.capacities)


def _cluster(source: Path, known: Sequence[FoundTarget]) -> Cluster:
    return Cluster(source, Network(), tuple(one.target for one in known))


@dataclass(frozen=True)
class Made:
    """What init made, and what it found."""

    store: Store
    cluster_file: Path
    found: tuple[FoundTarget, ...]
    warnings: tuple[str, ...]

    @property
    def is_emulated(self) -> bool:
        return self.found[0].is_emulated

    @property
    def managed(self) -> list[str]:
        """Globs of new files that go into the store."""
        return [rule.glob for rule in self.store.config.rules if rule.action == "manage"]

    @property
    def has_choice(self) -> bool:
        """Whether layouts differ: not all targets are on one device."""
        return self.is_emulated or len(shared([one.place for one in self.found], alone=True)) > 1

    @property
    def next(self) -> str:
        """The command to go on with: the one that brings a choice where there is none."""
        if self.has_choice:
            return self.command("tune")
        return f"stripewise store add {quoted(self.store.root)} NAME --path DIR"

    def command(self, verb: str) -> str:
        """A verb on this store for the shell."""
        return f"stripewise {verb} --store {quoted(self.store.root)} -- CMD"

    def as_json(self) -> dict[str, Any]:
        """As `init --json` prints it."""
        return {
            "store": str(self.store.root),
            "cluster": str(self.cluster_file),
            "emulated": self.is_emulated,
            "managed": self.managed,
            "targets": [_target_json(one) for one in self.found],
            "warnings": list(self.warnings),
            "next": self.next,
        }

    def show(self) -> None:
        """Prints it for people."""
        title = "EMULATED targets: directories, slowed down to these figures" if self.is_emulated else ""
        rows = table(title, "target", "device", "class", "read startup ms", "read MB/s", "free")
        # As `store df` has it: what the store can use, of which targets on one file system have a share each.
        room = room_bytes(self.store)
        for one in self.found:
            target = one.target
            rows.add_row(
                target.name, "emulated" if one.is_emulated else one.place.short, target.klass,
                f"{target.startup_read_s * 1e3:.3f}", one.rate, format_size(room.get(target.name, 0)),
            )  # fmt: skip
        stdout().print(rows)
        for text in parted_text((one.target for one in self.found), room):
            typer.echo(wrapped(printable(text)))
        for one in self.found:
            for text in _details(one):
                typer.echo(printable(text))
        if not self.is_emulated and any(one.target.calibration is None for one in self.found):
            measured_by = f"stripewise calibrate --store {quoted(self.store.root)} --apply"
            typer.echo(printable(f"figures are assumed; have them measured: {measured_by}"))
        for text in self.warnings:
            say(f"warning: {printable(text)}")
        typer.echo(printable(f"{self.cluster_file}: the targets and their figures, with comments"))
        typer.echo(printable(f"{self.store.root}: a store over {len(self.found)} target(s)"))
        typer.echo(printable(f"new files that go into it: {', '.join(self.managed)}"))
        typer.echo(printable(f"check a program first: {self.command('doctor')}"))
        if self.has_choice:
            typer.echo(printable(f"next: {self.next}"))
        else:
            typer.echo(wrapped(printable(f"next: a target on another disk or SSD, with '{self.next}', {NO_CHOICE}")))


def _details(one: FoundTarget) -> Iterator[str]:
    """What the table has no room for."""
    target = one.target
    if not one.is_emulated:
        yield f"{target.name}: {target.path}, on {one.place.words}"
        yield f"    {target.klass}: {one.decided.why}"
    if one.unreliable:
        kinds = ", ".join(kind.replace("_", " ") for kind in one.unreliable)
        yield f"    measured unreliably: {kinds}; docs/calibration.md says what that means"
    if target.capacity_bytes:
        yield f"{target.name}: at most {format_size(target.capacity_bytes)}"


def _target_json(one: FoundTarget) -> dict[str, Any]:
    target = one.target
    return {
        "name": target.name,
        "path": str(target.path),
        "class": target.klass,
        "kind": target.kind,
        "decided_by": one.decided.by,
        "why": one.decided.why,
        "device": f"emulated, on {one.place.words}" if one.is_emulated else one.place.words,
        "disks": [disk.name for disk in one.place.disks],
        "rotational": one.place.rotational,
        "free_bytes": one.free_bytes,
        "capacity_bytes": target.capacity_bytes,
        "measured": target.calibration is not None,
        "unreliable": one.unreliable,
        **{name: getattr(target, name) for name, _, _ in FIGURES},
    }
