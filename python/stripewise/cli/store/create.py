"""`stripewise store create`: makes a store over the targets of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...setup.remarks import on_one_device
from ...store import create_store
from ...store.globs import without_directory
from ...units import parse_size, quoted
from ..options import ManageOption, RegionOption, StoreArgument
from ..output import printable, say
from . import df


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
    typer.echo(f"{made.root}: a store over {len(made.config.cluster.targets)} target(s)")
    typer.echo(f"new files that go into it: {', '.join(made.config.managed)}")
    for line in df.warnings(made):
        typer.echo(line)
    for line in (*on_one_device(made.config.cluster.targets), *without_directory(made.config.managed)):
        say(f"warning: {printable(line)}")
    typer.echo(f"next: stripewise run --store {quoted(made.root)} -- CMD")
