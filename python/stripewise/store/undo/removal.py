"""Removing a store that holds no file any more: the parts that it made, in its own directory and in its targets'.

`<store>/undo.json` stands from before the first part goes until after the last, so that a kill leaves something that
the next run recognises and finishes. What the store did not make stays, and so do the directories that were there.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import InUseError, StoreError
from ...files.parts import held_place, read_part, remove_part, replace_part
from ..config import CONFIG_LOCK, PLANS_DIR, RUN_DIR, TUNE_LOCK
from ..layouts import LAYOUTS_DIR
from ..store import Store
from .notes import NOTES_DIR

MARKER = "undo.json"
#: What marks a target's directory as the store's (docs/formats.md).
IDENTITY = "stripewise-target"
_TEMPORARY = r"\..+\.[0-9a-f]{16}\.tmp"
_OBJECT = re.compile(r"[0-9a-f]{16}\.(data|data1|repl)")
#: What a store makes in its directories.
_PARTS = {
    RUN_DIR: re.compile(rf"session\.lock|mover\.lock|devices|mover\.json|mover\.command|.+\.slot|{_TEMPORARY}"),
    LAYOUTS_DIR: re.compile(rf"[0-9a-f]{{16}}\.json|default\.json|{_TEMPORARY}"),
    PLANS_DIR: re.compile(rf"[0-9a-f]{{16}}\.(json|bin)|{_TEMPORARY}"),
    "files": re.compile(r"(?!)"),
    "trash": re.compile(r"(?!)"),
    NOTES_DIR: re.compile(rf"[0-9a-f]{{16}}\.json|{_TEMPORARY}"),
}
_TARGET_PARTS = re.compile(_TEMPORARY)
_OWN = re.compile(rf"{re.escape(CONFIG_LOCK)}|{re.escape(TUNE_LOCK)}|store\.bin\.tmp|{_TEMPORARY}")


@dataclass
class Removed:
    """What was left where it is, and the directories of targets, which may be removed where they hold nothing."""

    left: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    root_is_gone: bool = False


def marker_of(root: Path) -> dict[str, Any] | None:
    """What an earlier run noted when it began to remove the store; None where none did."""
    try:
        said = json.loads(read_part(root, MARKER))
        if said["version"] == 1 and re.fullmatch("[0-9a-f]{32}", said["uuid"]):
            return {"uuid": said["uuid"], "targets": [str(path) for path in said["targets"]]}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


@contextlib.contextmanager
def alone(store: Store) -> Iterator[None]:
    """The store for ourselves: no program uses it, and no mover. InUseError otherwise."""
    with contextlib.ExitStack() as held:
        for name, lock in (
            ("session.lock", lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)),
            ("mover.lock", lambda fd: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)),
        ):
            try:
                with held_place(store.root, f"{RUN_DIR}/{name}") as (at, last, _):
                    handle = os.open(last, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=at)
                held.callback(os.close, handle)
                lock(handle)
            except BlockingIOError as error:
                raise InUseError(
                    f"{store.root}: a program or a mover uses the store; the files that it had are plain: run undo "
                    "again once it has ended"
                ) from error
            except PermissionError as error:
                raise InUseError(f"{store.root}: only its owner and root may have the store for themselves") from error
        yield


def begin(store: Store) -> dict[str, Any]:
    """Notes that the store goes, once nothing lies in it. Raises StoreError where something does."""
    for name in ("files", "trash"):
        if found := os.listdir(store.root / name):
            raise StoreError(f"{store.root / name}: still holds {found[0]}; run undo again")
    for target in store.config.cluster.targets:
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(target.path):
                if _OBJECT.fullmatch(name):
                    raise StoreError(
                        f"{target.path / name}: is an object of no file of the store; 'stripewise store fsck "
                        f"{store.root}' says more"
                    )
    targets = [str(target.path) for target in store.config.cluster.targets]
    marker = {"version": 1, "uuid": store.config.uuid.replace("-", "").lower(), "targets": targets}
    replace_part(store.root, MARKER, json.dumps(marker))
    return marker


def finish(root: Path, marker: dict[str, Any]) -> Removed:
    """Removes the store's parts; running it again goes on where a kill ended it."""
    removed = Removed()
    with contextlib.suppress(FileNotFoundError):
        remove_part(root, "store.bin")
    for name in marker["targets"]:
        _leave_target(root, Path(name), str(marker["uuid"]), removed)
    for name, ours in _PARTS.items():
        _empty(root / name, ours)
        _rmdir(root, name)
    _rmdir(root, "removed")
    for name in os.listdir(root):
        if _OWN.fullmatch(name):
            remove_part(root, name)
    others = sorted(set(os.listdir(root)) - {"store.toml", MARKER})
    removed.left += [str(root / name) for name in others]
    remove_part(root, "store.toml")
    remove_part(root, MARKER)
    if not others:
        with contextlib.suppress(OSError):
            os.rmdir(root)
            removed.root_is_gone = True
    return removed


def _leave_target(root: Path, directory: Path, uuid: str, removed: Removed) -> None:
    if not directory.is_dir():
        return
    if _is_ours(directory, uuid):
        _empty(directory, _TARGET_PARTS)
        remove_part(directory, IDENTITY)
    if root in directory.parents:
        # The store made it, or may have: where something lies in it, it stays.
        with contextlib.suppress(OSError):
            os.rmdir(directory)
            return
    if found := sorted(os.listdir(directory)):
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        removed.left.append(f"{directory / found[0]}{more}")
    else:
        removed.empty.append(str(directory))


def _is_ours(directory: Path, uuid: str) -> bool:
    with contextlib.suppress(OSError):
        return (
            f"uuid {uuid}" in read_part(directory, IDENTITY, owners=frozenset()).decode(errors="replace").splitlines()
        )
    return False


def _empty(directory: Path, ours: re.Pattern[str]) -> None:
    """Removes the files in a directory that have names of the store's."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(directory):
            if ours.fullmatch(name):
                with contextlib.suppress(IsADirectoryError):
                    remove_part(directory, name)


def _rmdir(root: Path, name: str) -> None:
    try:
        with held_place(root, name) as (at, last, _):
            os.rmdir(last, dir_fd=at)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
