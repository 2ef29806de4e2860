"""Whose stores a process follows when a link names them: the user's own list, and the verdict on a store.

The rule is the preloaded library's (docs/security.md): one's own, root's, the one that was named, and listed ones.
"""

from __future__ import annotations

import errno
import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import native
from ..errors import StoreError
from ..files.parts import read_part, write_durably
from ..units import quoted

VARIABLE = "STRIPEWISE_TRUST"
STORE_VARIABLE = "STRIPEWISE_STORE"
SITE_LIST = Path("/etc/stripewise/trust")
LIST_BYTES_MAX = 64 << 10
#: An entry that ends so names all stores below.
BELOW = "/*"
_HEAD = "# Stores of other users that stripewise may use for you; 'stripewise store trust' writes this.\n"


@dataclass(frozen=True)
class Verdict:
    """Who owns a store, and why it is used, if it is."""

    owner: str
    by_owner: bool
    by_list: bool

    @property
    def is_trusted(self) -> bool:
        """Whether links into it are followed."""
        return self.by_owner or self.by_list


def list_path() -> Path:
    """The user's list: `stripewise/trust` in XDG_CONFIG_HOME, or in ~/.config."""
    home = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(home) if home.startswith("/") else Path.home() / ".config"
    return base / "stripewise" / "trust"


def entries() -> list[str]:
    """The user's list, in order; empty where there is none. Raises StoreError."""
    path = list_path()
    try:
        text = os.fsdecode(read_part(path.parent, path.name, LIST_BYTES_MAX, {0, os.geteuid()}))
    except FileNotFoundError:
        return []
    except OSError as error:
        # Another user's, as after sudo with his HOME, speaks for him alone.
        if error.errno == errno.EPERM:
            return []
        raise StoreError(f"{path}: cannot be read ({error.strerror}); mend or remove it") from error
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line.startswith("/")]


def add(name: str) -> str:
    """Lists the store in the directory `name`, or all stores below it where it ends in /*; returns the entry."""
    entry = _entry(name)
    directory = Path(entry.removesuffix(BELOW) or "/")
    if not directory.is_dir():
        raise StoreError(f"{directory}: does not exist; name a store's directory")
    if not entry.endswith(BELOW) and not (directory / "store.bin").exists():
        raise StoreError(
            f"{directory}: is not a store (it has no store.bin); name one, or DIR/* for all stores below DIR"
        )
    listed = entries()
    if entry not in listed:
        _write([*listed, entry])
    return entry


def remove(name: str) -> str:
    """Takes an entry from the list; StoreError when it is not there."""
    listed = entries()
    found = name if name in listed else _entry(name)
    if found not in listed:
        raise StoreError(f"{name}: is not in {list_path()}; see 'stripewise store trust --list'")
    _write([entry for entry in listed if entry != found])
    return found


def environment_value(base: Mapping[str, str]) -> str:
    """What a program's STRIPEWISE_TRUST is: what is there already and the user's list, each once."""
    there = [entry.strip() for entry in base.get(VARIABLE, "").split(":")]
    return ":".join(
        dict.fromkeys(entry for entry in [*there, *entries()] if entry.startswith("/") and ":" not in entry)
    )


def verdict(store: Path) -> Verdict:
    """Whether links into `store` are followed, for the effective user. Raises StoreError."""
    own = os.environ.get(STORE_VARIABLE, "")
    listed = "\n".join([*environment_value(os.environ).split(":"), *([own] if own.startswith("/") else [])])
    found = native.call("store_judge", os.fspath(store), os.fsencode(listed))
    return Verdict(user_name(int(found["owner"])), bool(found["by_owner"]), bool(found["by_list"]))


def require(store: Path, link: Path | str) -> None:
    """StoreError when `store`, which `link` names, is not followed."""
    found = verdict(store)
    if not found.is_trusted:
        raise StoreError(
            f"{link}: names the store {store} of {found.owner}, who is neither you nor root; if you trust its owner, "
            f"type: stripewise store trust {quoted(store)}"
        )


def user_name(uid: int) -> str:
    """`name (uid N)`, or the number alone."""
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def _entry(name: str) -> str:
    if not name.startswith("/"):
        raise StoreError(f"{name}: is not absolute; give the store's directory in full, beginning with /")
    below = name.endswith(BELOW)
    resolved = os.path.realpath(name.removesuffix(BELOW) or "/")
    if ":" in resolved or "\n" in resolved or resolved != resolved.strip():
        raise StoreError(
            f"{name}: holds a colon, a line break or a blank at its end, which lists cannot name; rename it"
        )
    return resolved.removesuffix("/") + BELOW if below else resolved


def _write(listed: list[str]) -> None:
    path = list_path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_durably(path, _HEAD + "".join(f"{entry}\n" for entry in listed))
    except (OSError, UnicodeError) as error:
        raise StoreError(f"{path}: cannot be written ({error}); make its directory yours and writable") from error
