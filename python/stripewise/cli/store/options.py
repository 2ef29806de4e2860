"""The options that say which layout files get: those that are there (`set-layout`), and new ones (`template add`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...errors import LayoutError, UsageError
from ...layout import GIVEN, Layout, Stripes
from ...store.config import DEFAULT_STRIPE_BYTES, StoreConfig
from ...store.layouts import check_active, check_width, cycle_layout, named_layout
from ...store.placed import placed_at
from ...units import parse_size


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
        list[str] | None,
        typer.Option("--targets", metavar="A,B,...", help="Targets of equal stripes (default: all); repeatable."),
    ] = None
    stripe: Annotated[
        list[str] | None,
        typer.Option(
            "--stripe",
            metavar="TARGET=SIZE",
            help="Stripe width of one target, for unequal stripes; repeatable, in order.",
        ),
    ] = None

    def check(self, verb: str) -> None:
        """UsageError of a verb unless just one way is taken."""
        ways = [
            self.layout is not None,
            self.like is not None,
            self.stripe_size is not None or bool(self.targets),
            bool(self.stripe),
        ]
        if sum(ways) != 1:
            names = ("--layout", "--like", "--stripe-size" if self.stripe_size is not None else "--targets", "--stripe")
            given = [name for name, is_given in zip(names, ways, strict=True) if is_given]
            why = f"{' and '.join(given)} cannot be combined; " if given else ""
            raise UsageError(
                f"{verb}: {why}give one of --layout, --like, --stripe for each target, or for equal stripes "
                "--stripe-size, --targets or both"
            )

    def of(self, config: StoreConfig) -> Layout:
        """The layout for files of a store; only active targets; OWN where the store's own is named.

        Raises UsageError, LayoutError, StoreError.
        """
        if self.layout is not None:
            layout, source = named_layout(self.layout, config), f"--layout {self.layout}"
        elif self.like is not None:
            layout, source = placed_at(self.like)[1].layout, f"--like {self.like}"
        elif self.stripe:
            layout, source = cycle_layout(tuple(map(_stripe, self.stripe)), config, "--stripe"), "--stripe"
        else:
            # A wrong width is the one option's, a wrong name the other's; without names there is none.
            check_width(width := self._width(), "--stripe-size")
            layout, source = cycle_layout(self._equal(config, width), config, "--targets"), "--targets"
        check_active(layout, config, source, LayoutError if self.layout or self.like else UsageError)
        return layout if self.layout is not None else Layout(layout.regions, GIVEN)

    def _width(self) -> int:
        return DEFAULT_STRIPE_BYTES if self.stripe_size is None else parse_size(self.stripe_size, "--stripe-size")

    def _equal(self, config: StoreConfig, width: int) -> Stripes:
        if not self.targets:
            return tuple((target.name, width) for target in config.cluster.active)
        names = [name.strip() for text in self.targets for name in text.split(",")]
        if not all(names):
            raise UsageError(
                f"--targets: '{' '.join(self.targets)}' has an empty name; write names with commas between them"
            )
        return tuple((name, width) for name in names)


def _stripe(text: str) -> tuple[str, int]:
    name, equals, size = text.rpartition("=")
    if not name or not equals:
        raise UsageError(f"--stripe: '{text}' is not a stripe; write TARGET=SIZE, e.g. ssd0=256KiB")
    return name, parse_size(size, "--stripe")
