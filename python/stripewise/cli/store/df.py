"""`stripewise store df`: the room of a store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import typer

from ...errors import LayoutError, StoreError
from ...layout import target_bytes
from ...store import Store
from ...store.copies.build import is_container
from ...store.nameless import cure, nameless
from ...store.room import (
    SMALL_MEANS,
    full_text,
    known_room_bytes,
    parted_text,
    read_only_targets,
    small_targets,
    unwritable_targets,
    used_bytes,
)
from ...units import format_size, quoted
from ..options import JsonOption, StoreArgument
from ..output import print_json, printable, stdout, table, wrapped


def df(store: StoreArgument, json: JsonOption = False) -> None:
    """Show used and free space of the targets of a store.

    Active targets on one file system split its free space, so the sum is about what new files can take; a draining
    one has no part in it, nor has one that is mounted read-only. Used is what is allocated, so holes take nothing.
    A target is away when its directory is missing or does not say that it is this store's.
    """
    opened = Store(store)
    devices = opened.devices()
    rows, room = {str(row["name"]): row for row in devices}, known_room_bytes(opened, devices)
    used, read_only = used_bytes(opened), read_only_targets(opened)
    copies = _containers(opened)
    targets = [target for target in opened.config.cluster.targets if target.state != "removed"]
    found: list[dict[str, Any]] = [
        {
            "name": target.name,
            "class": target.klass,
            "state": target.state,
            "used_bytes": used.get(target.name, 0),
            "free_bytes": room[target.name],
            "read_only": target.name in read_only,
            "files": _without(rows[target.name]["files"], copies.count(target.name)),
            "copies": copies.count(target.name),
        }
        for target in targets
    ]
    free = sum(row["free_bytes"] or 0 for row in found)
    gone = nameless(opened)
    if json:
        nobody = {"files": len(gone.ids), "bytes": gone.bytes}
        print_json({"targets": found, "used_bytes": sum(used.values()), "free_bytes": free, "nameless": nobody})
        return
    made = table("", "target", "class", "used", "free", "use%", "files on it")
    for row in found:
        away = "away" if row["free_bytes"] is None else "read-only" if row["read_only"] else ""
        is_active = row["state"] == "active"
        made.add_row(
            row["name"],
            row["class"] if is_active else f"{row['class']} ({row['state']})",
            format_size(row["used_bytes"]),
            away or (format_size(row["free_bytes"]) if is_active else "-"),
            "-" if away or not is_active else _percent(row["used_bytes"], row["free_bytes"]),
            "-" if row["files"] is None else f"{row['files']:,}",
        )
    made.add_row("all", "", format_size(sum(used.values())), format_size(free), _percent(sum(used.values()), free), "")
    stdout().print(made)
    for line in parted_text(targets, room):
        typer.echo(wrapped(printable(line)))
    for target in targets:
        if rows[target.name]["away"]:
            typer.echo(printable(f"target {target.name} is away: {rows[target.name]['away']}"))
            if target.is_active:
                lays = f"'stripewise store drain {quoted(store)} {target.name}' lays them elsewhere"
                typer.echo(printable(f"new files, which take a part of every target, fail until then; {lays}"))
    for why in unwritable_targets(opened).values():
        typer.echo(wrapped(printable(why)))
    for why in read_only.values():
        typer.echo(wrapped(printable(f"{why}; what lies there can be read, new files go to the others until then")))
    if copies:
        typer.echo(f"copies are no files here, but take room: 'stripewise store replica ls {printable(quoted(store))}'")
    if gone.ids:
        typer.echo(printable(f"{gone.what}: {cure(opened)}"))
    for line in warnings(opened):
        typer.echo(wrapped(printable(line)))


def _containers(store: Store) -> list[str]:
    """The target of every part of a file that holds copies: the store's own files, not the user's."""
    found = []
    for file in store.files():
        if is_container(store.root, file.path):
            with contextlib.suppress(StoreError, LayoutError):
                held = target_bytes(store.layout(file.id).regions, file.size)
                found += [name for name, count in held.items() if count]
    return found


def _without(files: int | None, copies: int) -> int | None:
    return None if files is None else max(0, files - copies)


def _percent(used: int, free: int) -> str:
    return f"{100 * used / (used + free):.0f} %" if used + free else "-"


def warnings(store: Store) -> Iterator[str]:
    """What the room of a store's targets means for new files, a line each."""
    if full := full_text(store):
        yield full
    elif small := small_targets(store):
        named = ", ".join(
            f"{name} {format_size(free)}" for name, free in sorted(small.items(), key=lambda each: each[1])
        )
        yield f"targets with much less room than the others: {named}; {SMALL_MEANS}"
