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
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import InUseError, StoreError
from ...files.parts import held_place, read_at, replace_part
from .. import trust
from ..config import CONFIG_LOCK, EARLIER, PLANS_DIR, REFUSED, RUN_DIR, TUNE_LOCK
from ..copies.build import COPIES_DIR, REPLICAS, REPLICAS_LOCK
from ..layouts import LAYOUTS_DIR
from ..store import Store
from .decide import away_targets
from .notes import NOTES_DIR

MARKER = "undo.json"
#: Which directories the targets have (docs/formats.md, stripewise-target).
SEEN = "targets.seen"
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
    COPIES_DIR: re.compile(rf"[0-9a-f]{{16}}-[0-9a-f]{{16}}(\.copy)?|{_TEMPORARY}"),
    NOTES_DIR: re.compile(rf"[0-9a-f]{{16}}\.json|{_TEMPORARY}"),
}
_TARGET_PARTS = re.compile(_TEMPORARY)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: What opening or removing a directory says where there is none.
_NO_DIRECTORY = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR)
_IDENTITY_BYTES_MAX = 16 << 10
_OWN_NAMES = (CONFIG_LOCK, TUNE_LOCK, EARLIER, SEEN, REPLICAS, REPLICAS_LOCK)
_ASIDE = rf"{re.escape(REFUSED)}(\.[0-9]+)?"
_OWN = re.compile("|".join([*map(re.escape, _OWN_NAMES), _ASIDE, r"store\.bin\.tmp", _TEMPORARY]))


@dataclass
class Removed:
    """What was left where it is, and the directories of targets, which may be removed where they hold nothing."""

    left: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    root_is_gone: bool = False


@contextlib.contextmanager
def held_store(root: Path) -> Iterator[int]:
    """The directory of a store whose owner is trusted, held open: what is in it is removed relative to it alone.
    Raises StoreError.
    """
    try:
        at = os.open(root, _DIRECTORY)
    except OSError as error:
        raise StoreError(f"{root}: is not a store's directory ({error.strerror}); name one") from error
    try:
        trust.require(root, root)
        if not os.path.samestat(os.fstat(at), os.lstat(root)):
            raise StoreError(f"{root}: was exchanged meanwhile; look at who did that, and run undo again")
        yield at
    finally:
        os.close(at)


def marker_of(at: int) -> dict[str, Any] | None:
    """What an earlier run noted when it began to remove the store held as `at`; None where none did."""
    try:
        said = json.loads(read_at(at, MARKER, owners={0, os.fstat(at).st_uid}))
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
    away = away_targets(store)
    for target in store.config.cluster.targets:
        # What lies on one that is away, or in its place, is not the store's to remove.
        if target.name in away:
            continue
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


def finish(root: Path, at: int, marker: dict[str, Any]) -> Removed:
    """Removes the parts of the store at `root`, held as `at`; running it again goes on where a kill ended it."""
    removed = Removed()
    _unlink(at, "store.bin")
    for name in marker["targets"]:
        _leave_target(root, at, Path(name), str(marker["uuid"]), removed)
    for name, ours in _PARTS.items():
        _empty(at, name, ours)
        _rmdir(at, name)
    _rmdir(at, "removed")
    for name in os.listdir(at):
        if _OWN.fullmatch(name):
            _unlink(at, name)
    others = sorted(set(os.listdir(at)) - {"store.toml", MARKER})
    removed.left += [str(root / name) for name in others]
    _unlink(at, "store.toml")
    _unlink(at, MARKER)
    if not others:
        with contextlib.suppress(OSError):
            os.rmdir(root)
            removed.root_is_gone = True
    return removed


def _leave_target(root: Path, at: int, directory: Path, uuid: str, removed: Removed) -> None:
    try:
        # A target's path may lead through links (docs/security.md): it is resolved once.
        target = os.open(os.path.realpath(directory), _DIRECTORY)
    except OSError:
        return
    try:
        if _is_ours(target, root, uuid):
            _empty(target, ".", _TARGET_PARTS)
            _unlink(target, IDENTITY)
        found = sorted(os.listdir(target))
    finally:
        os.close(target)
    if found:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        removed.left.append(f"{directory / found[0]}{more}")
    elif not (root in directory.parents and _rmdir_below(at, directory.relative_to(root).parts)):
        removed.empty.append(str(directory))


def _is_ours(target: int, root: Path, uuid: str) -> bool:
    """Whether a target's directory says that it belongs to this store: in this place, or in one that it left since."""
    try:
        head, _, store = read_at(target, IDENTITY, _IDENTITY_BYTES_MAX).partition(b"\nstore ")
    except OSError:
        return False
    place = os.fsdecode(store.removesuffix(b"\n"))
    if f"uuid {uuid}".encode() not in head.splitlines() or not place.startswith("/"):
        return False
    # Where a store still lies there, this one is a copy of it, and the target is that one's.
    return os.path.realpath(place) == str(root) or not os.path.lexists(os.path.join(place, "store.bin"))


def _empty(at: int, name: str, ours: re.Pattern[str]) -> None:
    """Removes the files in a directory that have names of the store's; a link in the directory's place is left."""
    try:
        inner = os.open(name, _DIRECTORY, dir_fd=at)
    except OSError as error:
        if error.errno in _NO_DIRECTORY:
            return
        raise
    try:
        for each in os.listdir(inner):
            if ours.fullmatch(each):
                _unlink(inner, each)
    finally:
        os.close(inner)


def _unlink(at: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=at)


def _rmdir(at: int, name: str) -> bool:
    try:
        os.rmdir(name, dir_fd=at)
    except OSError as error:
        if error.errno not in (*_NO_DIRECTORY, errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _rmdir_below(at: int, parts: tuple[str, ...]) -> bool:
    """Removes an empty directory below the store's, which the store made or may have made; through no link."""
    if ".." in parts:
        return False
    with contextlib.ExitStack() as held, contextlib.suppress(OSError):
        for part in parts[:-1]:
            at = os.open(part, _DIRECTORY, dir_fd=at)
            held.callback(os.close, at)
        return _rmdir(at, parts[-1])
    return False
