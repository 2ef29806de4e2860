"""`stripewise store ls|info`: what a store has, and how it is set up."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from ...errors import StoreError
from ...store import Store
from ...store.config import Rule
from ...store.copies.build import COPIES_DIR, is_container
from ...store.nameless import nameless
from ...store.room import known_room_bytes
from ...store.store import StoredFile
from ...units import format_size, quoted
from ..options import JsonOption, StoreArgument
from ..output import print_json, printable, say, stdout, table

#: Of the rules of one action so many are told.
RULES_SHOWN = 3


def ls(store: StoreArgument, json: JsonOption = False) -> None:
    """List the files of a store."""
    opened = Store(store)
    files = opened.files()
    gone = nameless(opened, len(files)).ids
    if json:
        rows = [
            {
                "id": file.id,
                "path": file.path,
                "size": file.size,
                "name_gone": file.id in gone,
                "copies": is_container(opened.root, file.path),
            }
            | ({"error": file.details["error"]} if file.details.get("error") else {})
            for file in files
        ]
        print_json(rows)
        _check_all(store, files)
        return
    if not files:
        say(f"no files; 'stripewise run --store {printable(quoted(store))} -- CMD' puts the new files of CMD here")
    # A line each, with the name last: a table is laid out as a whole, which takes minutes for 60,000 files.
    copies = sum(is_container(opened.root, file.path) for file in files)
    for file in files:
        if is_container(opened.root, file.path):
            continue
        wrong = f" ({file.details['error']})" if file.details.get("error") else ""
        lost = " (name gone)" if file.id in gone else ""
        size = "-" if wrong else format_size(file.size)
        typer.echo(f"{file.id}  {size:>10}  {printable(file.path or '(no name)')}{lost}{wrong}")
    if copies:
        see = printable(quoted(store))
        typer.echo(f"copies of {copies} file(s) are no files here: 'stripewise store replica ls {see}'")
    _check_all(store, files)


def _check_all(store: Path, files: Sequence[StoredFile]) -> None:
    """StoreError where some of them could not be looked at."""
    if wrong := sum(bool(file.details.get("error")) for file in files):
        see = f"'stripewise store fsck {quoted(store)}' says what helps"
        raise StoreError(f"{store}: {wrong} file(s) cannot be looked at; {see}")


def info(store: StoreArgument, json: JsonOption = False) -> None:
    """Show targets, device counters since boot, and rules of a store."""
    opened = Store(store)
    details, devices = opened.info(), opened.devices()
    room = known_room_bytes(opened, devices)
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
            format_size(target.capacity_bytes) if target.capacity_bytes else "-",
            format_size(room[target.name] or 0) if target.is_active and room[target.name] is not None else "-",
            "-" if row.get("files") is None else f"{row['files']:,}",
            f"{row.get('accesses_read', 0):,}",
            f"{row.get('accesses_write', 0):,}",
            # Only an emulated device's time is known: it is made here.
            f"{busy_s:.2f}" if target.kind == "emulated" else "-",
        )
    stdout().print(made)
    if (opened.root / COPIES_DIR).is_dir() and any((opened.root / COPIES_DIR).iterdir()):
        typer.echo("files are those with an object there, and so are the store's own that hold copies")
    for row in devices:
        if row.get("away"):
            typer.echo(printable(f"target {row['name']} is away: {row['away']}"))
        if row.get("io_errors"):
            typer.echo(f"target {row['name']}: {row['io_errors']:,} error(s) since boot, the last: {row['last_error']}")
    typer.echo(
        f"new files get regions of {format_size(opened.config.region_bytes)}, laid out as "
        f"{opened.config.default_layout}; plans may lay out each region for itself"
    )
    for line in _rules_told(opened.config.rules):
        typer.echo(printable(line))


def _rules_told(rules: Sequence[Rule]) -> Iterator[str]:
    """The first globs of files that are managed, then of those that are left alone; all stand in --json."""
    for action, what in (("manage", "new files in the store"), ("ignore", "files left alone")):
        found = [rule for rule in rules if rule.action == action]
        if not found and action == "manage":
            yield "no new file goes into the store: no [[rule]] of store.toml manages any ('store adopt' takes some in)"
            continue
        yield f"{what}, by {len(found)} rule(s)" + (":" if found else "")
        for rule in found[:RULES_SHOWN]:
            yield f"  {rule.glob}" + (f" as {rule.layout}" if rule.layout else "")
        if len(found) > RULES_SHOWN:
            yield f"  and {len(found) - RULES_SHOWN} more (--json)"
