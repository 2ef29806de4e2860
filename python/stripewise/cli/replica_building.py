"""What `stripewise replicate` says of the copies that it builds, file by file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from ..errors import StoreError
from ..replicas import Candidate
from ..replicas.accesses import Extent
from ..replicas.building import Skipped, build_all
from ..store import Store
from ..store.copies.build import Built
from ..units import format_size
from .output import print_json, printable, wrapped

#: Lines of what is left out for one reason; --json has all.
SKIPPED_MAX = 20


@dataclass(frozen=True)
class Making:
    """How copies are made: under a lease or without, at most so many bytes per second (0: unlimited)."""

    lease: bool
    bytes_per_s: int


def build_chosen(
    store: Store,
    chosen: Sequence[Candidate],
    extents: Mapping[str, Extent],
    making: Making,
    said: dict[str, Any] | None,
) -> None:
    """Builds what a manager chose, and tells it as it goes, or as JSON behind what `said` holds.

    Raises StoreError where the store refused some.
    """
    built: list[Built] = []
    skipped: dict[str, list[Skipped]] = {}
    for outcome in build_all(store, chosen, extents, making.lease, making.bytes_per_s):
        if isinstance(outcome, Built):
            built.append(outcome)
            if said is None:
                typer.echo(wrapped(printable(_made(outcome))))
        else:
            for each in outcome:
                skipped.setdefault(each.reason, []).append(each)
    left_out = [each for some in skipped.values() for each in some]
    if said is not None:
        made = [_as_json(each) for each in built]
        print_json({**said, "store": str(store.root), "made": made, "skipped": [each.as_json() for each in left_out]})
    else:
        _tell_skipped(skipped)
        if not built:
            typer.echo(f"{printable(str(store.root))}: no copies were made")
    failed = {each.file for each in left_out if each.is_error}
    if failed:
        raise StoreError(f"{len(failed)} file(s) got no copies; see what was left out, and run it again")


def _made(built: Built) -> str:
    count = f"{built.replicas:,} replica{'' if built.replicas == 1 else 's'}"
    return f"{built.path}: {count}, {format_size(built.bytes)}, {built.seconds:.3g} s"


def _tell_skipped(skipped: Mapping[str, Sequence[Skipped]]) -> None:
    for reason, some in skipped.items():
        typer.echo(wrapped(printable(f"not made, {reason}:")))
        for each in some[:SKIPPED_MAX]:
            typer.echo(wrapped(printable(f"  {each.file}: {each.words}")))
        if len(some) > SKIPPED_MAX:
            typer.echo(f"  and {len(some) - SKIPPED_MAX:,} more: --json")


def _as_json(built: Built) -> dict[str, Any]:
    return {
        "file": built.path,
        "name": built.name,
        "container": built.container,
        "replicas": built.replicas,
        "bytes": built.bytes,
        "seconds": built.seconds,
    }
