"""Changing a store.toml that an administrator keeps: only what differs is touched; comments, order and spelling stay.

The file that comes out is read back before it is written. Where it would not say what it should, as it may with tables
in an order that nobody writes, the plain form without comments takes its place.

What the library's form was compiled from last is kept beside it for the day when it is lost: store.bin, which programs
read, has neither the names of layouts nor kept plans nor comments, so no store.toml can be made from it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import native
from ..errors import ClusterError, StoreError, StripewiseError
from ..files.fields import toml_in
from ..files.parts import (
    held_place,
    locked_at,
    locked_part,
    make_at,
    read_judged_at,
    read_part,
    replace_part,
    set_aside_at,
    write_durably,
)
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


def keep_compiled(config: StoreConfig) -> None:
    """Keeps the store.toml that says this and was compiled; where it cannot be written, the one kept before stays."""
    root = config.root
    with contextlib.suppress(OSError):
        now = read_part(root, STORE_TOML)
        with contextlib.suppress(OSError):
            if read_part(root, EARLIER) == now and _rights(root / EARLIER) == _rights(root / STORE_TOML):
                return
        # What an editor has half written by now was not compiled.
        with contextlib.suppress(StripewiseError):
            if config_from(toml_in(now, config.path, ClusterError), root) == config:
                replace_part(root, EARLIER, [now], like=STORE_TOML)


def _rights(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_gid, stat.S_IMODE(found.st_mode) & 0o775


def put_back_compiled(root: Path) -> str:
    """Puts the kept store.toml in the place of one that is missing, or says no store, which is kept aside; says what it
    was, nothing where it is well. Raises ClusterError where the kept one is damaged, too, or another store's, and
    StoreError where it cannot be written. All is done in the directory that `root` leads to at first.
    """
    try:
        with held_place(root, STORE_TOML) as (at, _, owner):
            if _judged(at, root, owner)[0] not in ("missing", "damaged"):
                return ""
            with locked_at(at, CONFIG_LOCK, owner):
                return _put_back(at, root, owner)
    except (FileNotFoundError, NotADirectoryError):
        # No directory, no store: who opens it says so.
        return ""
    except FileExistsError as error:
        raise StoreError(f"{root / STORE_TOML}: somebody has written it meanwhile; run the same again") from error
    except OSError as error:
        cure = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make the store writable"
        raise StoreError(f"{root / STORE_TOML}: cannot be put back ({error.strerror}); {cure}") from error


def _judged(at: int, root: Path, owner: int) -> tuple[str, os.stat_result | None]:
    """What store.toml is: missing, damaged, well, or not for us to read; and which file."""
    names = set(os.listdir(handle := os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)))
    os.close(handle)
    if EARLIER not in names or not names & {"store.bin", "files"}:
        return "no store", None
    if STORE_TOML not in names:
        return "missing", None
    try:
        content, found = read_judged_at(at, STORE_TOML, owners={0, owner})
        config = config_from(toml_in(content, root / STORE_TOML, ClusterError), root)
    except OSError:
        return "unreadable", None
    except ClusterError as error:
        return "unreadable" if is_unreadable(error) else "damaged", found
    return "damaged" if _is_foreign(root, config) else "well", found


def _put_back(at: int, root: Path, owner: int) -> str:
    was, found = _judged(at, root, owner)
    if was not in ("missing", "damaged"):
        return ""
    try:
        kept, of = read_judged_at(at, EARLIER, owners={0, owner})
        config = config_from(toml_in(kept, root / STORE_TOML, ClusterError), root)
    except (OSError, StripewiseError) as error:
        why = ((error.strerror or "") if isinstance(error, OSError) else str(error)).rstrip(".")
        raise ClusterError(f"{root / EARLIER}: is damaged ({why}); put store.toml back from a copy") from error
    if _is_foreign(root, config):
        raise ClusterError(f"{root / EARLIER}: is of another store; put store.toml back from a copy")
    if found is not None:
        was = f"damaged, and is {set_aside_at(at, STORE_TOML, REFUSED, found)} now"
    make_at(at, STORE_TOML, kept, (owner, of.st_gid, stat.S_IMODE(of.st_mode) & 0o775))
    return was


def _is_foreign(root: Path, config: StoreConfig) -> bool:
    """Whether a store.toml is of another store than store.bin, where that is there and well."""
    with contextlib.suppress(StripewiseError):
        own = config.uuid.replace("-", "").lower()
        return bool(native.call("store_info", str(root)).get("uuid", own) != own)
    return False
