"""`stripewise store template`: layouts for new files by glob, kept in store.toml as rules."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ...errors import StoreError, UsageError
from ...files.durable import write_durably
from ...files.parts import remove_part
from ...store import Store, read_layout, save_layout
from ...store.config import Rule, StoreConfig, read_store
from ...store.globs import template_globs, template_rank
from ..options import JsonOption, StoreArgument
from ..output import print_json, stdout, table

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
GlobArgument = Annotated[str, typer.Argument(metavar="GLOB", help="A glob over absolute paths; quote it.")]


def ordered(rules: Sequence[Rule]) -> list[Rule]:
    """The rules with the templates by how much they say about a path, the newest first among equals.

    They stand after the rules that the store begins with for what is never managed: its own files and its targets'.
    """
    templates = sorted((rule for rule in rules if rule.layout), key=lambda rule: template_rank(rule.glob))
    others = [rule for rule in rules if not rule.layout]
    leading = next((place for place, rule in enumerate(others) if rule.action != "ignore"), len(others))
    return [*others[:leading], *templates, *others[leading:]]


def _write(config: StoreConfig, rules: list[Rule]) -> None:
    changed = config.with_rules(rules)
    try:
        write_durably(config.path, changed.text())
    except OSError as error:
        raise StoreError(f"{config.path}: cannot be written ({error.strerror}); make the store writable") from error
    Store(config.root)


@app.command("add")
def add(
    store: StoreArgument,
    glob: GlobArgument,
    layout: Annotated[Path, typer.Option("--layout", help="A layout JSON, or a plan of one file.")],
) -> None:
    """New files that match GLOB, or lie in it or below if it is a directory, get this layout.

    A path goes before globs, globs before directories, a directory before those that it lies in.
    """
    opened = Store(store)
    config = opened.config
    patterns = template_globs(glob)
    name = hashlib.sha256(patterns[0].encode("utf-8", "surrogateescape")).hexdigest()[:16]
    saved = save_layout(config, name, read_layout(layout, config))
    kept = [rule for rule in config.rules if not (rule.glob in patterns and rule.layout)]
    _write(config, ordered([*(Rule(pattern, "manage", saved) for pattern in patterns), *kept]))
    typer.echo(f"new files matching {' or '.join(patterns)} are laid out as {config.root / saved}")


@app.command("rm")
def rm(store: StoreArgument, glob: GlobArgument) -> None:
    """Forget the template of GLOB; files that exist keep their layout."""
    config = read_store(store)
    patterns = template_globs(glob)
    gone = [rule for rule in config.rules if rule.layout and rule.glob in (glob, *patterns)]
    if not gone:
        raise UsageError(f"template rm: {config.path} has no template for '{glob}'; see 'stripewise store template ls'")
    _write(config, [rule for rule in config.rules if rule not in gone])
    still = {rule.layout for rule in config.rules if rule not in gone} | {config.default_layout}
    for rule in gone:
        if rule.layout not in still:
            with contextlib.suppress(OSError):
                remove_part(config.root, str(rule.layout))
    typer.echo(f"forgot the template of {' or '.join(rule.glob for rule in gone)}")


@app.command("ls")
def ls(store: StoreArgument, json: JsonOption = False) -> None:
    """List the templates of a store, in the order in which they are tried."""
    rules = [rule for rule in read_store(store).rules if rule.layout]
    if json:
        print_json([{"glob": rule.glob, "layout": rule.layout} for rule in rules])
        return
    made = table("", "glob", "layout")
    for rule in rules:
        made.add_row(rule.glob, str(rule.layout))
    stdout().print(made)
