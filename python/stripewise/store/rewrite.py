"""Changing a store.toml that an administrator keeps: only what differs is touched; comments, order and spelling stay.

The file that comes out is read back before it is written. Where it would not say what it should, as it may with tables
in an order that nobody writes, the plain form without comments takes its place.

What the library's form was compiled from last is kept beside it for the day when it is lost: store.bin, which programs
read, has neither the names of layouts nor kept plans nor comments, so no store.toml can be made from it.
"""

from __future__ import annotations

import contextlib
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ClusterError, StoreError, StripewiseError
from ..files.fields import read_toml
from ..files.parts import locked_part, read_part, replace_part, write_durably
from .config import CONFIG_LOCK, EARLIER, REFUSED, STORE_TOML, StoreConfig, config_from, is_unreadable, read_store

# tomlkit is loaded where it is used: few verbs write.
if TYPE_CHECKING:
    from tomlkit.items import Item, Key, Table

    _Item = tuple[Key | None, Item]

#: What tells the entries of an array of tables apart, with what is meant where a key is missing.
IDENTITIES: dict[str, dict[str, Any]] = {
    "target": {"name": None},
    "rule": {"glob": None, "action": "manage", "layout": None},
    "plan": {"application": None, "processes": None, "directory": ""},
}


@contextlib.contextmanager
def changing(root: Path) -> Iterator[StoreConfig]:
    """The store's configuration as it is, while nobody else changes it: a verb changes what it finds, not what it read
    when it began. Raises StoreError where it cannot be changed; what the body raises as OSError is told so, too.
    """
    config = read_store(root)
    try:
        with locked_part(config.root, CONFIG_LOCK):
            yield read_store(root)
    except OSError as error:
        raise StoreError(
            f"{error.filename or config.path}: cannot be written ({error.strerror}); make the store writable"
        ) from error


def write_changed(old: StoreConfig, new: StoreConfig) -> None:
    """Makes the store.toml that was read as `old` say `new`. Raises OSError when it cannot be written."""
    before = read_part(old.root, old.path.name).decode("utf-8")
    write_durably(new.path, rewritten(before, old, new))


def rewritten(before: str, old: StoreConfig, new: StoreConfig) -> str:
    """`before`, which says `old`, with what `new` has otherwise."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    document, wanted = tomlkit.parse(before), tomlkit.parse(new.text())
    was = tomlkit.parse(old.text())
    try:
        for key in wanted:
            if key in IDENTITIES:
                continue
            if key not in document:
                document[key] = wanted[key]
            elif isinstance(wanted[key], Mapping):
                _change(document[key], was[key], wanted[key])
        for key in IDENTITIES:
            _change_entries(document, key, was.get(key, []), wanted.get(key, []))
        text = str(tomlkit.dumps(document))
        if config_from(tomllib.loads(text), new.root) == new:
            return text
    except (TOMLKitError, tomllib.TOMLDecodeError, StripewiseError):
        pass
    return new.text()


def _change(table: Any, was: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Sets in `table` what is otherwise in `wanted` than it was, and takes out what is gone."""
    for key, value in wanted.items():
        if key not in was or was[key] != value:
            table[key] = value
    for key in was:
        if key not in wanted:
            table.pop(key, None)


def _change_entries(document: Any, key: str, was: Sequence[Any], wanted: Sequence[Any]) -> None:
    """The entries of `wanted` in their order, those that stay as the document has them."""
    import tomlkit

    entries: list[Table] = list(document.get(key, []))
    if not wanted:
        document.pop(key, None)
        return
    # Comments at the end of an entry stand above the next one, and go where that goes.
    above: list[_Item] = []
    for entry in entries:
        entry.trivia.indent = "".join(item.as_string() for _, item in above) + entry.trivia.indent
        above = _take_comments(entry)
    there = {_identity(key, entry): entry for entry in entries}
    before = {_identity(key, entry): entry for entry in was}
    made: list[Table] = []
    for entry in wanted:
        kept = there.pop(_identity(key, entry), None)
        if kept is None:
            _take_comments(entry)
            entry.trivia.indent = "\n"
        else:
            _change(kept, before.get(_identity(key, entry), {}), entry)
        made.append(entry if kept is None else kept)
    _last_table(made[-1]).value.body.extend(above)
    if key not in document:
        document.append(key, tomlkit.aot())
    document[key].clear()
    for entry in made:
        document[key].append(entry)


def _identity(key: str, entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(entry.get(name, default) for name, default in IDENTITIES[key].items())


def _last_table(entry: Table) -> Table:
    """The entry, or the last table within it: where its text ends."""
    from tomlkit.items import Table

    body = entry.value.body
    return _last_table(body[-1][1]) if body and isinstance(body[-1][1], Table) else entry


def _take_comments(entry: Table) -> list[_Item]:
    """Takes comments and blank lines off the end of an entry."""
    from tomlkit.items import Comment, Whitespace

    body = _last_table(entry).value.body
    taken: list[_Item] = []
    while body and isinstance(body[-1][1], Comment | Whitespace):
        taken.insert(0, body.pop())
    return taken


def keep_compiled(root: Path) -> None:
    """Keeps store.toml of the store at `root` as it is now; where that cannot be written, the one kept before stays."""
    with contextlib.suppress(OSError):
        now = read_part(root, STORE_TOML)
        with contextlib.suppress(OSError):
            if read_part(root, EARLIER) == now:
                return
        replace_part(root, EARLIER, [now])


def put_back_compiled(root: Path) -> str:
    """Puts the kept store.toml in the place of one that is missing, or says no store, which is kept aside; says what it
    was, nothing where it is well. Raises ClusterError where the kept one is damaged, too, StoreError where it cannot be
    written.
    """
    if not (root / "store.bin").exists() or not (root / EARLIER).exists():
        return ""
    was = "missing"
    try:
        config_from(read_toml(root / STORE_TOML, ClusterError, "a store.toml", root), root)
        return ""
    except ClusterError as error:
        if os.path.lexists(root / STORE_TOML):
            if is_unreadable(error):
                return ""
            was = f"damaged, and is {REFUSED} now"
    try:
        config_from(read_toml(root / EARLIER, ClusterError, "a store.toml", root), root)
    except StripewiseError as error:
        why = str(error).rstrip(".")
        raise ClusterError(f"{root / EARLIER}: is damaged ({why}); put store.toml back from a copy") from error
    try:
        if was != "missing":
            replace_part(root, REFUSED, [read_part(root, STORE_TOML)])
        replace_part(root, STORE_TOML, [read_part(root, EARLIER)])
    except OSError as error:
        raise StoreError(f"{error.filename}: cannot be put back ({error.strerror}); make the store writable") from error
    return was
