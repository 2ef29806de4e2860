"""`stripewise store find`: files of a store by name, size, age and place."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...cluster import CLASSES
from ...errors import StoreError, UsageError
from ...store import Store
from ...store.find import Conditions, age_span, count_span, find, size_span, targets_of
from ...store.placed import placed_at
from ..arguments import flattened
from ..options import JsonOption, StoreArgument, names_completed
from ..output import print_json, printable, say


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which files; all conditions must hold."""

    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATTERN]",
            help="Glob of the name; with a / in it of the path, from the working directory; quoted.",
        ),
    ] = None
    name: Annotated[
        str | None, typer.Option("--name", metavar="PATTERN", help="Another way to give PATTERN, as find has it.")
    ] = None
    size: Annotated[
        str | None,
        typer.Option(
            "--size", metavar="[+-]SIZE", help="File size: larger than (+), smaller than (-), or exactly SIZE."
        ),
    ] = None
    changed: Annotated[
        str | None,
        typer.Option("--mtime", metavar="+-AGE", help="Last change: longer ago than (+7d), or within (-7d)."),
    ] = None
    target: Annotated[
        list[str] | None,
        typer.Option("--target", metavar="TARGET", help="Files with data on this target; repeatable (any of them)."),
    ] = None
    klass: Annotated[
        list[str] | None,
        typer.Option(
            "--class",
            metavar="CLASS",
            help="Files with data on a target of this class.",
            autocompletion=names_completed(CLASSES),
        ),
    ] = None
    not_on: Annotated[
        list[str] | None, typer.Option("--not-on", metavar="TARGET", help="Files without data on this target.")
    ] = None
    stripe_count: Annotated[
        str | None,
        typer.Option(
            "--stripe-count", metavar="[+-]N", help="Number of targets in the widest region that holds bytes."
        ),
    ] = None
    like: Annotated[
        Path | None, typer.Option("--layout-of", metavar="FILE", help="Files with the layout of this managed file.")
    ] = None

    copies: Annotated[
        bool, typer.Option("--copies", help="List the files that hold copies, too; 'store replica ls' says whose.")
    ] = False

    def conditions(self, store: Store) -> Conditions:
        """The same, checked. Raises UsageError, StoreError."""
        if self.pattern is not None and self.name is not None:
            raise UsageError("store find: PATTERN and --name say the same; give one of them")
        on = None if not self.target and not self.klass else targets_of(store, self.target or [], self.klass or [])
        return Conditions(
            pattern=self.pattern if self.name is None else self.name,
            size=None if self.size is None else size_span(self.size, "--size"),
            changed=None if self.changed is None else age_span(self.changed, "--mtime"),
            on=on,
            not_on=targets_of(store, self.not_on or [], []),
            stripe_count=None if self.stripe_count is None else count_span(self.stripe_count, "--stripe-count"),
            like=None if self.like is None else placed_at(self.like)[1].layout,
            copies=self.copies,
        )


@flattened
def store_find(
    *,
    store: StoreArgument,
    wanted: Wanted,
    print0: Annotated[
        bool, typer.Option("-0", "--print0", help="Names terminated by a zero byte, for xargs -0.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """List the files of a store by name, size, age, targets or layout.

    All conditions must hold. Holes count as data; what is laid out behind a file's end does not count.
    """
    if print0 and json:
        raise UsageError("store find: give -0 or --json, not both")
    opened = Store(store)
    conditions = wanted.conditions(opened)
    problems: list[str] = []
    found = find(opened, conditions, problems)
    if json:
        print_json([each.as_json() for each in found])
    else:
        nameless = 0
        for each in found:
            nameless += not each.path
            if print0:
                sys.stdout.buffer.write(os.fsencode(each.path) + b"\0" if each.path else b"")
            else:
                typer.echo(printable(each.path) if each.path else f"(no name: file {each.file.id})")
        sys.stdout.flush()
        if nameless and print0:
            say(f"stripewise: {nameless} file(s) without a name left out; see 'stripewise store ls'")
    for problem in problems:
        say(f"stripewise: {printable(problem)}")
    if problems:
        raise StoreError(f"{store}: {len(problems)} file(s) could not be checked; run store fsck")
