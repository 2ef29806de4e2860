"""`stripewise store set-layout`: files that exist get another layout, while programs use them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError
from ...layout import Layout, Stripes
from ...moving.mover_session import Limits
from ...moving.plan_applier import Applied, Wanted, lay_out
from ...store import Store
from ...store.config import DEFAULT_STRIPE_BYTES, StoreConfig
from ...store.layouts import check_active, cycle_layout, named_layout
from ...store.placed import PlacedFile, check_room, placed_at, placed_in
from ...units import format_size, parse_size
from ..arguments import flattened
from ..options import JsonOption, MoverOptions
from ..output import print_json, printable, progress, regions_drawn, wrapped
from .layout import ROWS_SHOWN


@dataclass(frozen=True, kw_only=True)
class WantedLayout:
    """A layout in one of four ways."""

    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            metavar="LAYOUT",
            help="Layout: def (all targets), hservers, a layout JSON or a plan of one file.",
        ),
    ] = None
    like: Annotated[Path | None, typer.Option("--like", metavar="FILE", help="Managed file whose layout to copy.")] = (
        None
    )
    stripe_size: Annotated[
        str | None,
        typer.Option(
            "--stripe-size", metavar="SIZE", help="Stripe width, equal on all targets, e.g. 1MiB (default: 64KiB)."
        ),
    ] = None
    targets: Annotated[
        str | None, typer.Option("--targets", metavar="A,B,...", help="Targets of equal stripes (default: all).")
    ] = None
    stripe: Annotated[
        list[str] | None,
        typer.Option(
            "--stripe",
            metavar="TARGET=SIZE",
            help="Stripe width of one target, for unequal stripes; repeatable, in order.",
        ),
    ] = None

    def check(self) -> None:
        """UsageError unless just one way is taken."""
        ways = [
            self.layout is not None,
            self.like is not None,
            self.stripe_size is not None or self.targets is not None,
            bool(self.stripe),
        ]
        if sum(ways) != 1:
            raise UsageError(
                "set-layout: give one of --layout, --like, --stripe TARGET=SIZE ..., and --stripe-size with --targets"
            )

    def of(self, config: StoreConfig) -> Layout:
        """The layout for files of a store; only active targets. Raises UsageError, LayoutError, StoreError."""
        if self.layout is not None:
            layout, source = named_layout(self.layout, config), f"--layout {self.layout}"
        elif self.like is not None:
            layout, source = placed_at(self.like)[1].layout, f"--like {self.like}"
        elif self.stripe:
            layout, source = cycle_layout(tuple(map(_stripe, self.stripe)), config, "--stripe"), "--stripe"
        else:
            layout, source = cycle_layout(self._equal(config), config, "--stripe-size, --targets"), "--targets"
        check_active(layout, config, source)
        return layout

    def _equal(self, config: StoreConfig) -> Stripes:
        width = DEFAULT_STRIPE_BYTES if self.stripe_size is None else parse_size(self.stripe_size, "--stripe-size")
        if self.targets is None:
            return tuple((target.name, width) for target in config.cluster.active)
        names = [name.strip() for name in self.targets.split(",")]
        if not all(names):
            raise UsageError(f"--targets: '{self.targets}' has an empty name; write names with commas between them")
        return tuple((name, width) for name in names)


def _stripe(text: str) -> tuple[str, int]:
    name, equals, size = text.rpartition("=")
    if not name or not equals:
        raise UsageError(f"--stripe: '{text}' is not a stripe; write TARGET=SIZE, e.g. ssd0=256KiB")
    return name, parse_size(size, "--stripe")


@flattened
def set_layout(
    *,
    files: Annotated[list[Path], typer.Argument(help="Managed files.", metavar="FILE...")],
    wanted: WantedLayout,
    mover: MoverOptions,
    json: JsonOption = False,
) -> None:
    """Change the layout of managed files now.

    Programs may keep using them. New files in a directory get theirs from 'store template add STORE DIR/ --layout'.
    """
    wanted.check()
    stores: dict[str, Store] = {}
    found: dict[str, dict[str, PlacedFile]] = {}
    for path in files:
        if path.is_dir():
            raise UsageError(
                f"{path}: is a directory; 'stripewise store template add STORE {path}/ --layout L.json' lays out the "
                "new files in it, and set-layout takes the files that it has"
            )
        store, file = placed_at(path, stores)
        found.setdefault(file.store, {}).setdefault(file.id, file)
    layouts = {root: wanted.of(store.config) for root, store in stores.items()}
    for root, store in stores.items():
        check_room(store, [(file, layouts[root]) for file in found[root].values()])
    limits = Limits(mover.bytes_per_s, mover.max_slowdown)
    done = []
    for root, store in stores.items():
        applied = _move(store, list(found[root].values()), layouts[root], limits)
        done.append((root, applied))
        if applied.signal is not None:
            break
    if json:
        _print_json(done, stores, found)
    else:
        _print(done, stores, found)
    if (ended := done[-1][1].signal) is not None:
        raise typer.Exit(128 + ended)


def _move(store: Store, files: list[PlacedFile], layout: Layout, limits: Limits) -> Applied:
    """Those first that free most of targets with a limit."""
    limited = {target.name for target in store.config.cluster.targets if target.capacity_bytes}

    def growth(file: PlacedFile) -> int:
        after = PlacedFile(file.path, file.store, file.id, file.size, layout).target_bytes
        return sum(after.get(name, 0) - file.target_bytes.get(name, 0) for name in limited)

    order = sorted(files, key=growth)
    # The mover's status is text, which a path need not be.
    wanted = [Wanted(printable(file.path), file.id, layout.regions, file.size) for file in order]
    with progress("moving") as step:
        return lay_out(store, wanted, limits, step)


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
