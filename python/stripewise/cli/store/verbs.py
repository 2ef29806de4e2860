"""`stripewise store`: make, list, describe and check stores."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import StoreError
from ...store import Store, create_store
from ...units import format_size, parse_size
from ..options import JsonOption, ManageOption, RegionOption, StoreArgument
from ..output import print_json, printable, stdout, table
from . import df, find, layout, set_layout, targets, transfer, trust, upkeep

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
transfer.register(app)
upkeep.register(app)
targets.register(app)
trust.register(app)
layout.register(app)
df.register(app)
set_layout.register(app)
find.register(app)


@app.command("create")
def create(
    store: StoreArgument,
    cluster: Annotated[
        Path, typer.Option("--cluster", metavar="CLUSTER", help="cluster.toml that defines the targets.")
    ],
    manage: ManageOption = None,
    region_size: RegionOption = "64MiB",
    layout: Annotated[
        str,
        typer.Option(
            "--layout", metavar="LAYOUT", help="Layout of new files: def (all targets), hservers or a layout JSON."
        ),
    ] = "def",
    shared: Annotated[
        bool, typer.Option("--shared", help="Access for all users of the machine (default: only you).")
    ] = False,
) -> None:
    """Create a store over the targets of a cluster."""
    made = create_store(store, cluster, manage or [], parse_size(region_size, "--region-size"), layout, shared)
    managed = [rule.glob for rule in made.config.rules if rule.action == "manage"]
    typer.echo(f"{made.root}: a store over {len(made.config.cluster.targets)} target(s)")
    typer.echo(f"new files that go into it: {', '.join(managed)}")
    for line in df.warnings(made):
        typer.echo(line)
    typer.echo(f"next: stripewise run --store {made.root} -- CMD")


@app.command("ls")
def ls(store: StoreArgument, json: JsonOption = False) -> None:
    """List the files of a store."""
    files = Store(store).files()
    if json:
        print_json([{"id": file.id, "path": file.path, "size": file.size} for file in files])
        return
    # A line each, with the name last: a table is laid out as a whole, which takes minutes for 60,000 files.
    for file in files:
        wrong = f" ({file.details['error']})" if file.details.get("error") else ""
        typer.echo(f"{file.id}  {format_size(file.size):>10}  {printable(file.path or '(no name)')}{wrong}")


@app.command("info")
def info(store: StoreArgument, json: JsonOption = False) -> None:
    """Show targets, device counters since boot, and rules of a store."""
    opened = Store(store)
    details, devices = opened.info(), opened.devices()
    if json:
        rules = [dataclasses.asdict(rule) for rule in opened.config.rules]
        print_json({**details, "devices": devices, "rules": rules})
        return
    counters = {str(row["name"]): row for row in devices}
    made = table(f"{opened.root}", "target", "class", "kind", "capacity", "free", "files", "reads", "writes", "busy s")
    for target in opened.config.cluster.targets:
        row = counters.get(target.name, {})
        busy_s = (int(row.get("busy_read_ns", 0)) + int(row.get("busy_write_ns", 0))) / 1e9
        made.add_row(
            target.name,
            target.klass if target.is_active else f"{target.klass} ({target.state})",
            target.kind,
            format_size(target.capacity_bytes) if target.capacity_bytes else "its disk's",
            "-" if row.get("free_bytes") is None else format_size(row["free_bytes"]),
            "-" if row.get("files") is None else f"{row['files']:,}",
            f"{row.get('accesses_read', 0):,}",
            f"{row.get('accesses_write', 0):,}",
            f"{busy_s:.2f}",
        )
    stdout().print(made)
    for row in devices:
        if row.get("away"):
            typer.echo(f"target {row['name']}: {row['away']}")
        if row.get("io_errors"):
            typer.echo(f"target {row['name']}: {row['io_errors']:,} error(s) since boot, the last: {row['last_error']}")
    typer.echo(
        f"regions of {format_size(opened.config.region_bytes)}, new files laid out as {opened.config.default_layout}"
    )
    for rule in opened.config.rules:
        typer.echo(f"{rule.action} {rule.glob}" + (f" as {rule.layout}" if rule.layout else ""))


#: Of findings of one kind so many are shown one by one; the rest is counted (--json has all).
SHOWN = 5


def grouped(found: Mapping[str, Any]) -> Iterator[str]:
    """The sentences of a check, those of a kind after each other, and how many more of it there are."""
    kinds: dict[tuple[str, str, bool], list[str]] = {}
    for finding in found.get("findings", []):
        if finding["severity"] != "info":
            kinds.setdefault((finding["code"], finding["cure"], finding["repaired"]), []).append(finding["message"])
    for (code, cure, repaired), messages in kinds.items():
        end = " (mended)" if repaired else f"; {cure}"
        yield from (f"{message}{end}" for message in messages[:SHOWN])
        if len(messages) > SHOWN:
            yield f"and {len(messages) - SHOWN:,} more like these ({code}){end}"


def _mended(found: Mapping[str, Any]) -> int:
    return sum(finding["repaired"] for finding in found.get("findings", []) if finding["severity"] != "info")


def _verdict(found: Mapping[str, Any]) -> str:
    """What is true of a store in which no error stands, after what was mended."""
    mended, warnings = _mended(found), int(found.get("warnings", 0))
    said = f", {mended} finding(s) mended" if mended else ""
    if warnings:
        return f"no byte is lost or ambiguous{said}, but {warnings} warning(s) stand; see them above"
    return f"sound now{said}" if mended else "sound"


@app.command("fsck")
def fsck(
    store: StoreArgument,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired without data loss.")] = False,
    sums: Annotated[bool, typer.Option("--scrub", help="Verify checksums afterwards, as 'store scrub' does.")] = False,
    json: JsonOption = False,
) -> None:
    """Check the consistency of a store, and repair it with --repair.

    Every byte has one place, no slices overlap, no object is missing, capacities hold.

    Exit status: 0 where no byte is lost or ambiguous (the store is sound, or all that was wrong is mended, or only
    warnings stand), 1 where an error stands.
    """
    found = Store(store).fsck(repair)
    problems = [str(problem) for problem in found.get("problems", [])]
    if json:
        print_json(found)
    else:
        for line in grouped(found):
            typer.echo(printable(line))
    # Warnings are said and no failure: nothing is lost or ambiguous.
    errors = int(found.get("errors", 0 if found.get("repaired") else len(problems)))
    if errors:
        mended = f", {_mended(found)} finding(s) mended" if _mended(found) else ""
        cure = "--repair cannot mend them" if repair else "--repair mends what it can"
        raise StoreError(f"{store}: {errors} error(s) stand{mended}; see them above, {cure}")
    if not json:
        typer.echo(f"{store}: {_verdict(found)}")
    if sums:
        upkeep.scrub([store], json=json)
