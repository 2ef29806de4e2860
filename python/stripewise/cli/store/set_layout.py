"""`stripewise store set-layout`: files that exist get another layout, while programs use them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError
from ...layout import GIVEN, OWN, Layout
from ...limits import Limits
from ...moving.plan_applier import Applied, Wanted, lay_out
from ...store import Store
from ...store.globs import escape
from ...store.kept import rm_command
from ...store.placed import PlacedFile, check_room, placed_at, placed_in
from ...store.plans import that_lay_out
from ...store.room import own_layout, room_bytes
from ...units import format_size, quoted
from ..arguments import flattened
from ..options import JsonOption, MoverOptions
from ..output import moves_ended, print_json, printable, progress, regions_drawn, say, wrapped
from .layout import ROWS_SHOWN
from .options import WantedLayout


@flattened
def set_layout(
    *,
    files: Annotated[list[Path], typer.Argument(help="Managed files.", metavar="FILE...")],
    wanted: WantedLayout,
    mover: MoverOptions,
    json: JsonOption = False,
) -> None:
    """Change the layout of managed files now.

    Programs may keep using them. New files in a directory get theirs from 'store template add STORE DIR/'.
    """
    wanted.check("set-layout")
    stores: dict[str, Store] = {}
    found: dict[str, dict[str, PlacedFile]] = {}
    for path in files:
        if path.is_dir():
            raise UsageError(
                f"{path}: is a directory; 'stripewise store template add STORE {quoted(path)}/' with the same options "
                "lays out the new files in it, and set-layout takes the files that it has"
            )
        store, file = placed_at(path, stores)
        found.setdefault(file.store, {}).setdefault(file.id, file)
    layouts = {root: _laid_out(store, wanted.of(store.config), found[root]) for root, store in stores.items()}
    done = []
    for root, store in stores.items():
        applied = _move(store, list(found[root].values()), layouts[root], mover.limits)
        done.append((root, applied))
        if applied.signal is not None:
            break
    if json:
        _print_json(done, stores, found)
    else:
        _print(done, stores, found)
    if (ended := done[-1][1].signal) is not None:
        count = sum(len(each) for each in found.values())
        laid_out = sum(applied.files for _, applied in done)
        say(f"stripewise: {moves_ended(ended, laid_out, count, done[-1][1].regions)}")
        raise typer.Exit(128 + ended)


def _laid_out(store: Store, layout: Layout, files: Mapping[str, PlacedFile]) -> dict[str, Layout]:
    """The layout of each file by its id; NoSpaceError where they have no room. The store's own gives way to the room of
    the targets, as it does for new files.
    """
    layouts = dict.fromkeys(files, layout)
    if layout.origin == OWN:
        room = room_bytes(store)
        for file in files.values():
            for name, count in file.target_bytes.items():
                room[name] = room.get(name, 0) + count
        layouts = {identity: own_layout(store, room, identity, file.layout) for identity, file in files.items()}
    check_room(store, [(file, layouts[file.id]) for file in files.values()])
    return layouts


def _move(store: Store, files: list[PlacedFile], layouts: Mapping[str, Layout], limits: Limits) -> Applied:
    """Those first that free most of targets with a limit."""
    limited = {target.name for target in store.config.cluster.targets if target.capacity_bytes}

    def growth(file: PlacedFile) -> int:
        after = PlacedFile(file.path, file.store, file.id, file.size, layouts[file.id]).target_bytes
        return sum(after.get(name, 0) - file.target_bytes.get(name, 0) for name in limited)

    order = sorted(files, key=growth)
    # The mover's status is text, which a path need not be.
    wanted = [
        Wanted(printable(file.path), file.id, layout.regions, file.size, layout.origin or GIVEN)
        for file, layout in ((file, layouts[file.id]) for file in order)
    ]
    with progress("moving") as step:
        return lay_out(store, wanted, limits, step, "set-layout")


def _print_json(
    done: list[tuple[str, Applied]], stores: dict[str, Store], found: dict[str, dict[str, PlacedFile]]
) -> None:
    print_json(
        {
            "stores": [{"store": root, **applied.as_json()} for root, applied in done],
            "files": [
                placed_in(stores[root], file.id, file.path).as_json() | {"before": dict(file.target_bytes)}
                for root, _ in done
                for file in found[root].values()
            ],
        }
    )


def _print(done: list[tuple[str, Applied]], stores: dict[str, Store], found: dict[str, dict[str, PlacedFile]]) -> None:
    for root, applied in done:
        layout = None
        size = max(file.size for file in found[root].values())
        for file in found[root].values():
            now = placed_in(stores[root], file.id, file.path)
            if layout != now.layout:
                layout = now.layout
                for line in regions_drawn(layout.regions, ROWS_SHOWN, size):
                    typer.echo(line)
            before, after = file.target_bytes, now.target_bytes
            changed = [
                f"{name} {format_size(before.get(name, 0))} -> {format_size(after.get(name, 0))}"
                for name in dict.fromkeys([*before, *after])
                if before.get(name, 0) != after.get(name, 0)
            ]
            typer.echo(wrapped(f"{printable(file.path)}: {', '.join(changed) or 'as much on each target as before'}"))
        typer.echo(
            f"{applied.files} file(s): {format_size(applied.moved_bytes)} moved in {applied.seconds:.2f} s"
            + (", stopped before the end" if applied.signal is not None else "")
        )
        globs = [escape(file.path) for file in found[root].values()]
        for kept in that_lay_out(stores[root].config, globs):
            typer.echo(
                printable(
                    f"note: the next run of {kept.title} moves files of these back, by the plan that is kept for it; "
                    f"without that: {rm_command(stores[root].root, kept)}"
                )
            )
