"""What `stripewise replicate` says of the copies that it builds, file by file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from ...errors import StoreError
from ...limits import Limits
from ...replicas import Decision, Refused
from ...replicas.accesses import Extent
from ...replicas.building import ELSEWHERE, Skipped, build_all, lost_of, root_of
from ...replicas.standing import Turn
from ...store.copies.build import Built
from ...store.copies.listed import copies_of
from ...units import format_size, seconds_text
from ..output import print_json, printable, say, standing, wrapped

#: Patterns of a file that are not made, and such files, which are told; --json has all.
NOT_MADE_MAX = 5
#: Files of other stores that are named.
FILES_MAX = 8


@dataclass(frozen=True)
class Making:
    """How copies are made: under a lease or without, and what they may take from programs that run."""

    lease: bool
    limits: Limits


def build_chosen(
    turn: Turn,
    decision: Decision,
    extents: Mapping[str, Extent],
    making: Making,
    said: dict[str, Any] | None,
    elsewhere: Sequence[Skipped] = (),
) -> None:
    """Builds what a manager chose, and tells it as it goes, or as JSON behind what `said` holds, `elsewhere` with it.

    Raises StoreError where the store refused some.
    """
    left_out: list[Skipped] = []
    evicted = turn.make_way(decision)
    chosen, built = turn.to_make(decision)
    for file in sorted({each.file for each in chosen if not each.is_home}):
        written = extents[file].written_bytes if file in extents else 0
        if written and root_of(file) is not None:
            is_updated = any(each.on_write == "update" for each in chosen if each.file == file and not each.is_home)
            unpriced = "" if decision.manager == "radar" else ": that time is in no gain"
            then = (
                f"writes go to its copies too{unpriced}; 'stripewise store replica rm' drops them"
                if is_updated
                else "its copies are stale there from then on; the same command again makes them anew"
            )
            say(f"stripewise: {printable(file)}: the run writes {format_size(written)} of it, and {then}")
    if said is None:
        for file, why in evicted.items():
            typer.echo(wrapped(printable(f"{file}: its copies are removed: {why}")))
        for stands in built:
            typer.echo(wrapped(printable(_made(stands))))
    before = {each.name: each for each in copies_of(turn.store)}
    with standing(lambda: _stands(built, lost_of(turn.store, before))):
        for outcome in build_all(turn.store, chosen, extents, making.lease, making.limits):
            if isinstance(outcome, Built):
                built.append(outcome)
                if said is None:
                    typer.echo(wrapped(printable(_made(outcome))))
            else:
                left_out += outcome
    turn.done(decision, built)
    if said is not None:
        print_json(
            {
                **said,
                "store": str(turn.store.root),
                "evicted": [{"file": file, "reason": why} for file, why in evicted.items()],
                "made": [
                    {**_as_json(each), "seconds": each.seconds, "replaced": each.has_replaced}
                    for each in built
                    if not each.is_up_to_date
                ],
                "up_to_date": [_as_json(each) for each in built if each.is_up_to_date],
                "skipped": [each.as_json() for each in (*elsewhere, *left_out)],
            }
        )
    else:
        tell_not_made(left_out)
        if not built:
            typer.echo(f"{printable(str(turn.store.root))}: no copies were made")
    failed = {each.file for each in left_out if each.is_error}
    if failed:
        raise StoreError(f"{len(failed)} file(s) got no copies; see what was left out, and run it again")


def _stands(built: Sequence[Built], lost: Sequence[str]) -> str:
    """What stands where a signal ends the building; `lost` are files whose earlier copies went before others stood."""
    made = sum(not each.is_up_to_date for each in built)
    whole, rest = (f"the copies of {made:,} file(s) are made", "the rest") if made else ("no copies were made", "them")
    gone = f", the earlier copies of {len(lost):,} file(s) are gone ({lost[0]})" if lost else ""
    return f"{whole}, none are left half-made{gone}, and no file has changed; the same command again makes {rest}"


def _made(built: Built) -> str:
    count = f"{built.replicas:,} replica{'' if built.replicas == 1 else 's'}"
    if built.is_up_to_date:
        return f"{built.path}: up to date: {count}, {format_size(built.bytes)}, left alone"
    instead = ", in place of earlier copies" if built.has_replaced else ""
    return f"{built.path}: {count}, {format_size(built.bytes)}, {seconds_text(built.seconds)} s{instead}"


def say_elsewhere(files: Sequence[str]) -> None:
    """One line on managed files of other stores, which are left out."""
    if not files:
        return
    more = f" and {len(files) - FILES_MAX:,} more" if len(files) > FILES_MAX else ""
    names = f"{', '.join(files[:FILES_MAX])}{more}"
    typer.echo(wrapped(printable(f"left out: {names}: {ELSEWHERE}; give that one with --store")))


def tell_not_made(left_out: Iterable[Refused | Skipped]) -> None:
    """What is not made, file by file, and why."""
    by_file: dict[str, list[Refused | Skipped]] = {}
    for each in left_out:
        by_file.setdefault(each.file, []).append(each)
    most_first = sorted(by_file.items(), key=lambda item: -sum(each.bytes for each in item[1]))
    for file, some in itertools.islice(most_first, NOT_MADE_MAX):
        typer.echo(printable(f"not made of {file}:"))
        # Those of most bytes are shown, and what they have for a reason stands together.
        some.sort(key=lambda each: -each.bytes)
        first = {reason: at for at, reason in reversed(list(enumerate(each.reason for each in some)))}
        shown = sorted(some[:NOT_MADE_MAX], key=lambda each: first[each.reason])
        for reason, those in itertools.groupby(shown, lambda each: each.reason):
            typer.echo(wrapped(printable(f"{reason}:"), "  "))
            for each in those:
                typer.echo(wrapped(printable(each.words), "    "))
        if len(some) > NOT_MADE_MAX:
            typer.echo(f"  and {len(some) - NOT_MADE_MAX:,} more (--json has all)")
    if len(by_file) > NOT_MADE_MAX:
        typer.echo(f"not made of {len(by_file) - NOT_MADE_MAX:,} more files (--json has all)")


def _as_json(built: Built) -> dict[str, Any]:
    return {
        "file": built.path,
        "name": built.name,
        "container": built.container,
        "replicas": built.replicas,
        "bytes": built.bytes,
    }
