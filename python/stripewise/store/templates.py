"""Templates: rules of store.toml that give new files a layout by glob, kept from the most to the least particular."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..cluster.cluster import toml_string
from ..errors import LayoutError, UsageError
from ..files.parts import remove_part
from ..layout import Layout
from .config import Rule, StoreConfig
from .copies.build import is_container
from .globs import matches, one_of, template_globs, template_rank
from .layouts import save_layout
from .rewrite import changing, write_changed
from .store import Store


def templates_in(config: StoreConfig) -> list[Rule]:
    """The templates of a store, in the order in which they are tried."""
    return [rule for rule in config.rules if rule.layout]


@dataclass(frozen=True)
class Added:
    """A template: its globs, its layout's name in the store, and the layouts that the same globs had, by glob; None for
    one that cannot be read any more; `outside`, globs of files that stayed plain until then.
    """

    globs: list[str]
    saved: str
    replaced: dict[str, Layout | None]
    outside: list[str]


def add(root: Path, glob: str, layout: Layout) -> Added:
    """Gives new files that `glob` means a layout. A template of the same globs is replaced. Raises StoreError."""
    with changing(root) as config:
        return _add(config, template_globs(glob), layout)


def add_layout(root: Path, glob: str, layout: Layout) -> Added:
    """The same for a glob that is taken as it is."""
    with changing(root) as config:
        return _add(config, [glob], layout)


def layout_of(config: StoreConfig, rule: Rule) -> Layout | None:
    """The layout of a template; None where it cannot be read."""
    with contextlib.suppress(LayoutError, OSError):
        return config.layout(str(rule.layout))
    return None


def check_addable(config: StoreConfig, globs: Collection[str]) -> None:
    """ClusterError where `add_layout` would refuse these globs: one that store.toml cannot hold, or too many rules."""
    for glob in globs:
        toml_string(glob)
    kept = [rule for rule in config.rules if not (rule.glob in globs and rule.layout)]
    config.with_rules([*map(Rule, globs), *kept])


def _add(config: StoreConfig, patterns: list[str], layout: Layout) -> Added:
    # Before the new one takes its place on disk.
    replaced = {rule.glob: layout_of(config, rule) for rule in templates_in(config) if rule.glob in patterns}
    name = hashlib.sha256(patterns[0].encode("utf-8", "surrogateescape")).hexdigest()[:16]
    saved = save_layout(config, name, layout)
    kept = [rule for rule in config.rules if not (rule.glob in patterns and rule.layout)]
    _write(config, _ordered([*(Rule(pattern, "manage", saved) for pattern in patterns), *kept]))
    outside = [glob for glob in patterns if not any(matches(rule.glob, one_of(glob)) for rule in config.rules)]
    return Added(patterns, saved, replaced, outside)


def files_there(store: Store, globs: Collection[str]) -> int:
    """How many files of the store match one of the globs: they keep their layout, also when a program empties them."""
    named = (file.path for file in store.files() if file.path and not is_container(store.root, file.path))
    return sum(os.path.lexists(path) for path in named if any(matches(glob, path) for glob in globs))


def that_name(config: StoreConfig, target: str) -> list[tuple[Rule, Layout | None]]:
    """The templates that lay something out on a target while it takes new files, each with the layout that it has now:
    another one while the target does not.
    """
    back = [replace(each, state="active") if each.name == target else each for each in config.cluster.targets]
    found = []
    for rule in templates_in(config):
        layout = layout_of(config.with_targets(back), rule)
        if layout is not None and any(target in dict(region.stripes) for region in layout.regions):
            found.append((rule, layout_of(config, rule)))
    return found


def remove(root: Path, glob: str) -> list[Rule]:
    """Forgets the templates of `glob` and returns them; layouts that nobody names any more are removed.

    Raises UsageError when there is none.
    """
    patterns = template_globs(glob)
    with changing(root) as config:
        gone = [rule for rule in config.rules if rule.layout and rule.glob in (glob, *patterns)]
        if not gone:
            raise UsageError(
                f"template rm: {config.path} has no template for '{glob}'; see 'stripewise store template ls'"
            )
        kept = [rule for rule in config.rules if rule not in gone]
        _write(config, kept)
        still = {rule.layout for rule in kept} | {config.default_layout}
        for rule in gone:
            if rule.layout not in still:
                with contextlib.suppress(OSError):
                    remove_part(config.root, str(rule.layout))
    return gone


def _ordered(rules: Sequence[Rule]) -> list[Rule]:
    """The rules with the templates by how much they say about a path, the newest first among equals.

    They stand after the rules that the store begins with for what is never managed: its own files and its targets'.
    """
    templates = sorted((rule for rule in rules if rule.layout), key=lambda rule: template_rank(rule.glob))
    others = [rule for rule in rules if not rule.layout]
    leading = next((place for place, rule in enumerate(others) if rule.action != "ignore"), len(others))
    return [*others[:leading], *templates, *others[leading:]]


def _write(config: StoreConfig, rules: list[Rule]) -> None:
    write_changed(config, config.with_rules(rules))
    Store(config.root)
