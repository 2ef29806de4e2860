"""`stripewise store template`: layouts for new files by glob, kept in store.toml as rules."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

from ...layout import Layout
from ...store import Store, plans, templates
from ...store.config import read_store
from ...store.kept import rm_command
from ...store.room import room_bytes, small_targets, spread
from ...units import command_line, format_size, quoted
from ..arguments import flattened
from ..options import JsonOption, StoreArgument
from ..output import print_json, printable, say, stdout, stripes_text, table
from .options import WantedLayout

GlobArgument = Annotated[str, typer.Argument(metavar="GLOB", help="Glob over absolute paths, quoted.")]


@flattened
def add(*, store: StoreArgument, glob: GlobArgument, wanted: WantedLayout) -> None:
    """Set the layout of new files that match GLOB; a template of the same glob is replaced, and shown.

    A directory stands for all files below it. A path takes precedence over globs, globs over directories, a directory
    over its parents. New files that no rule of the store meant until then go into the store by it, with the output
    saying so. Files that are there keep their layout, also where a program empties them as it opens them (mode "w"):
    'set-layout' changes it.
    """
    wanted.check("template add")
    opened = Store(store)
    layout = wanted.of(opened.config)
    added = templates.add(opened.root, glob, layout)
    typer.echo(printable(f"new files matching {' or '.join(added.globs)} are laid out as: {layout_text(layout)}"))
    for old, before in added.replaced.items():
        was = "the same layout" if before == layout else layout_text(before)
        typer.echo(printable(f"replaced the template of {old}, which was: {was}"))
    if added.outside:
        globs = " or ".join(added.outside)
        typer.echo(printable(f"they stayed plain files until now: new ones matching {globs} go into the store by it"))
    root = str(opened.root)
    if there := templates.files_there(opened, added.globs):
        keep = f"{there:,} file(s) that are there and match keep their layout, also where a program opens them anew"
        typer.echo(f"{keep} (mode \"w\"); 'set-layout' with the same options changes it")
    typer.echo(printable(f"show all templates: {command_line(['stripewise', 'store', 'template', 'ls', root])}"))
    # As the working directory may be another then.
    whole = glob if os.path.isabs(glob) else os.path.join(os.getcwd(), glob)
    typer.echo(printable(f"remove this one: {command_line(['stripewise', 'store', 'template', 'rm', root, whole])}"))
    for line in _warnings(opened, small_targets(opened), layout):
        say(f"warning: {line}")


def layout_text(layout: Layout | None) -> str:
    """The cycle of a layout in a line, or the first of several."""
    if layout is None:
        return "a layout that cannot be read"
    first, *others = layout.regions
    if not others:
        return stripes_text(first.stripes)
    (name, width), *rest = first.stripes
    where = f"whole on {name}" if not rest and width >= first.len else stripes_text(first.stripes)
    return f"{where} in the first {format_size(first.len)}, and {len(others):,} further region(s)"


def _warnings(store: Store, small: Mapping[str, int], layout: Layout) -> Iterator[str]:
    """What little room on some targets means for files of a layout."""
    used = {name for region in layout.regions for name, _ in region.stripes}
    rooms = {name: f"target {name} has room for {format_size(free)}" for name, free in small.items() if name in used}
    if rooms and len(layout.regions) == 1 and len(used) > 1:
        now = spread(layout, store.config.cluster, room_bytes(store), None)
        yield (
            f"{', '.join(rooms.values())}: targets of a template without regions get as much of a file as they have of "
            f"the room of all; one that is made now: {layout_text(now)}"
        )
        return
    for room in rooms.values():
        yield f"{room}; such a file that needs more of it ends with 'no space', whatever is free elsewhere"


def rm(store: StoreArgument, glob: GlobArgument) -> None:
    """Remove the template of GLOB; existing files keep their layout.

    A plan that is kept for an application goes by 'store plan rm'.
    """
    gone = [rule.glob for rule in templates.remove(store, glob)]
    typer.echo(printable(f"removed the template of {' or '.join(gone)}"))
    config = read_store(store)
    for kept in plans.that_lay_out(config, gone):
        typer.echo(printable(f"the plan kept for {kept.title} still lays such files out; remove it, too, with:"))
        typer.echo(printable(f"  {rm_command(config.root, kept)}"))


def ls(store: StoreArgument, json: JsonOption = False) -> None:
    """List the templates of a store in order of precedence, and warn of those on targets with little room."""
    config = read_store(store)
    rules = templates.templates_in(config)
    if json:
        print_json([{"glob": rule.glob, "layout": rule.layout} for rule in rules])
        return
    laid_out = [(rule, templates.layout_of(config, rule)) for rule in rules]
    if not rules:
        add_it = f"stripewise store template add {quoted(store)} GLOB --stripe-size SIZE"
        typer.echo(printable(f"no templates, new files have the store's own layout; make one with: {add_it}"))
        return
    made = table("", "glob", "layout")
    for rule, layout in laid_out:
        made.add_row(printable(rule.glob), layout_text(layout))
    stdout().print(made)
    opened = Store(store)
    small = small_targets(opened)
    for rule, layout in laid_out:
        for line in _warnings(opened, small, layout) if layout is not None else ():
            say(f"warning: {printable(rule.glob)}: {line}")
