"""Directories that a new store takes over: only such as nobody else can have prepared.

Where everybody may make names, another user may have made the one that a store or a target is to have. In his directory
he would keep its rights, so it is refused before anything is written there (docs/security.md).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..errors import StoreError
from .layouts import LAYOUTS_DIR
from .trust import user_name

#: In a target's directory, whose it is (crates/target, identity.rs).
IDENTITY = "stripewise-target"
#: What a store that was not finished consists of: all that 'store create' makes before store.bin, which it makes last.
UNFINISHED = {"store.toml", LAYOUTS_DIR, "files", "run", "trash"}
#: What decides whose a store or a target is.
_PARTS = (*sorted(UNFINISHED), "store.bin", IDENTITY)


def real_parent(path: Path) -> Path:
    """`path` from the working directory, links followed but for its last component, which `check_owned` looks at."""
    if path.name in ("", ".."):
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(path.parent)) / path.name


def others_write(found: os.stat_result) -> bool:
    """Whether others than its owner may write it. The group of a user's own number is his alone, as Debian and Red Hat
    make users: their umask may be 002.
    """
    return bool(found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and found.st_gid != found.st_uid))


def check_owner(path: Path, where: str, cure: str) -> os.stat_result | None:
    """StoreError where something under this name belongs to neither the user nor root. None where nothing is there."""
    try:
        found = path.lstat()
    except OSError:
        # Nothing there, or nothing that can be reached, which is told where it is used.
        return None
    me = os.geteuid()
    if found.st_uid not in (0, me):
        neither = "not root" if me == 0 else "neither you nor root"
        raise StoreError(f"{where}{path} belongs to {user_name(found.st_uid)}, {neither}; remove it, or {cure}")
    return found


def check_owned(path: Path, where: str, cure: str) -> None:
    """StoreError where a store or target is to be in what is a symbolic link, or somebody else's, or his to write."""
    found = check_owner(path, where, cure)
    if found is None:
        return
    owner = user_name(found.st_uid)
    if stat.S_ISLNK(found.st_mode):
        raise StoreError(
            f"{where}{path} is a symbolic link of {owner} to {os.readlink(path)}; give that directory, remove the "
            f"link, or {cure}"
        )
    if not stat.S_ISDIR(found.st_mode):
        return
    if others_write(found):
        raise StoreError(
            f"{where}{path} of {owner} may be written by others (mode {stat.S_IMODE(found.st_mode):04o}); remove it, "
            f"or {cure}"
        )
    for part in _PARTS:
        check_owner(path / part, where, cure)
