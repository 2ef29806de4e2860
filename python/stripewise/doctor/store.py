"""Checks of a store: it can be read, no other machine writes it, its targets' file systems can do what is needed."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import StripewiseError
from ..files.parts import ANYBODY, is_read_only, read_part
from ..moving.trial import cure_of, cut_short
from ..setup.remarks import on_one_device
from ..store import Store, trust
from ..store.config import RUN_DIR, StoreConfig, read_store
from ..store.nameless import cure, nameless
from ..store.room import (
    READ_ONLY,
    READ_ONLY_CURE,
    SMALL_MEANS,
    UNWRITABLE,
    UNWRITABLE_CURE,
    room_bytes,
    small_targets,
)
from ..store.store import without_files
from ..units import format_size, quoted
from .finding import Examined, Finding, bad, note, ok

FREE_MIN_BYTES = 64 << 20
F_OFD_SETLK = 37
PAGE_BYTES = 4096
SLOT_BYTES_MAX = 65_536
#: Of a target that is away.
_UNTIL_THEN = "what lies there gives EIO until then; if it is lost: docs/guarantees.md, 'A lost target'"


def store_is_readable(examined: Examined) -> Iterator[Finding]:
    """store.toml and what is compiled from it can be read, and the run directory written."""
    if examined.store is None:
        return
    try:
        config = read_store(examined.store)
    except StripewiseError as error:
        what, _, cure = str(error).rpartition("; ")
        yield bad(what or str(error), cure or "run stripewise store fsck")
        return
    for part, mode, cure in (
        ("store.bin", os.R_OK, "run any stripewise store verb as its owner, which compiles it anew"),
        ("files", os.W_OK | os.X_OK, "give this user permission, or files can be read at most"),
        (RUN_DIR, os.W_OK | os.X_OK, "give this user permission: every program leaves its slot there"),
    ):
        if part == "files" and (wrong := without_files(config.root)):
            what, _, cure = wrong.partition("; ")
            yield bad(what, cure)
        elif not os.access(config.root / part, mode):
            yield bad(f"{config.root / part} is missing or not permitted", cure)
    yield ok(f"{config.root}: {len(config.cluster.holding)} target(s), {len(config.rules)} rule(s)")


def no_other_machine_has_it(examined: Examined) -> Iterator[Finding]:
    """One machine writes a store at a time: no run directory of another one has slots."""
    for config in _config(examined):
        own = _text(Path("/etc/machine-id"))
        for slot in sorted(config.root.glob(f"{RUN_DIR}/*.slot")):
            if own and _machine(slot) not in ("", own):
                yield bad(
                    f"another machine has a slot in {slot.parent}: {slot.name}",
                    f"end its programs; if it is gone: stripewise store fsck {quoted(config.root)} --repair",
                )


def no_tune_was_killed(examined: Examined) -> Iterator[Finding]:
    """No file lies where a tune that was killed tried it."""
    for config in _config(examined):
        if killed := cut_short(config.root):
            yield note(killed, cure_of(config.root))


def links_are_followed(examined: Examined) -> Iterator[Finding]:
    """Links into the store lead programs there that were not started with it: its owner is trusted or listed."""
    for config in _config(examined):
        try:
            verdict = trust.verdict(config.root)
        except StripewiseError as error:
            what, _, cure = str(error).rpartition("; ")
            yield bad(what or str(error), cure)
            continue
        if verdict.is_trusted:
            why = "you or root" if verdict.by_owner else f"{verdict.owner}, and listed"
            yield ok(f"links into {config.root} are followed: it is of {why}")
        else:
            yield note(
                f"links into {config.root} are refused (EACCES) in programs that were not started with it: it belongs "
                f"to {verdict.owner}, neither you nor root",
                f"if you trust its owner: stripewise store trust {quoted(config.root)}",
            )


def targets_are_usable(examined: Examined) -> Iterator[Finding]:
    """Each target's directory is there and the store's, may be written and has room."""
    for config in _config(examined):
        away = _away(config)
        wrong = [
            finding
            for target in config.cluster.targets
            if target.state != "removed"
            for finding in _target(target.name, target.path, away.get(target.name))
        ]
        yield from wrong
        if not wrong:
            yield ok("all targets are mounted and writable")
            yield from _room(config)


def targets_have_devices_of_their_own(examined: Examined) -> Iterator[Finding]:
    """No two targets are on one device, which no layout makes faster."""
    for config in _config(examined):
        for line in on_one_device([each for each in config.cluster.active if each.path.is_dir()]):
            what, _, cure = line.partition("; ")
            yield note(what, cure)


def file_systems_can_lock(examined: Examined) -> Iterator[Finding]:
    """Locks, shared maps and reservations work where the library uses them."""
    for config in _config(examined):
        places = {
            "the store": config.root / RUN_DIR,
            **{f"target {t.name}": t.path for t in config.cluster.targets if t.state != "removed"},
        }
        seen: set[int] = set()
        for name, path in places.items():
            with contextlib.suppress(OSError):
                device = path.stat().st_dev
                if device not in seen and os.access(path, os.W_OK | os.X_OK):
                    seen.add(device)
                    yield from _abilities(name, path)


def _config(examined: Examined) -> Iterator[StoreConfig]:
    if examined.store is not None:
        with contextlib.suppress(StripewiseError):
            yield read_store(examined.store)


def _away(config: StoreConfig) -> dict[str, str]:
    """Targets whose directory is not the store's, and why; none where the store cannot be opened."""
    with contextlib.suppress(StripewiseError):
        return {str(row["name"]): str(row["away"]) for row in Store(config.root).devices() if row.get("away")}
    return {}


def _room(config: StoreConfig) -> Iterator[Finding]:
    """What can still be written, what holds room in vain, and targets with little room beside that of the others."""
    with contextlib.suppress(StripewiseError):
        store = Store(config.root)
        gone = nameless(store)
        if gone.ids:
            yield note(gone.what, cure(store))
        room = room_bytes(store)
        free = sum(room.get(target.name, 0) for target in config.cluster.active)
        if free < FREE_MIN_BYTES:
            yield bad(f"all targets together have {format_size(free)} free", "make room, or writes end with ENOSPC")
            return
        yield ok(f"{format_size(free)} can be written")
        small = small_targets(store)
        if small:
            named = ", ".join(f"{name} ({format_size(free)})" for name, free in small.items())
            yield note(
                f"targets with much less room than the others: {named}; {SMALL_MEANS}",
                "nothing; 'stripewise store df' shows what is left",
            )


def _target(name: str, path: Path, away: str | None) -> Iterator[Finding]:
    if away is None and not path.is_dir():
        yield bad(f"target {name}: {path} is not a directory", f"mount it; {_UNTIL_THEN}")
        return
    if away is not None:
        what, _, how = away.partition("; ")
        yield bad(f"target {name}: {what or away}", f"{how}; {_UNTIL_THEN}")
        return
    space = os.statvfs(path)
    if is_read_only(path):
        yield bad(f"target {name}: {path} {READ_ONLY}", READ_ONLY_CURE)
    elif not os.access(path, os.W_OK | os.X_OK):
        yield bad(f"target {name}: {path} {UNWRITABLE}", UNWRITABLE_CURE)
    if space.f_favail == 0 and space.f_files:
        yield bad(f"target {name}: {path} has no inode free", "remove files there, or nothing can be created")


def _abilities(name: str, path: Path) -> Iterator[Finding]:
    lost: list[str] = []
    with _scratch(path, lost) as handle:
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        for what, attempt in (
            ("byte-range locks of open files", lambda: fcntl.fcntl(handle, F_OFD_SETLK, lock)),
            ("flock", lambda: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)),
            ("shared writable maps", lambda: mmap.mmap(handle, PAGE_BYTES).close()),
        ):
            try:
                attempt()
            except OSError:
                lost.append(what)
        if lost:
            yield bad(f"{name}: {path}'s file system lacks {', '.join(lost)}", "put it on ext4, XFS, btrfs or tmpfs")
        lesser = _lesser(handle, path)
        if lesser:
            yield note(
                f"{name}: {path}'s file system lacks {', '.join(lesser)}", "nothing; adopting or reserving is slower"
            )
        if not lost and not lesser:
            yield ok(f"{name}: locks, maps, leases and reservations work on {path}")


def _lesser(handle: int, path: Path) -> list[str]:
    lost = []
    try:
        os.posix_fallocate(handle, 0, PAGE_BYTES)
    except OSError:
        lost.append("reservations (fallocate)")
    try:
        os.close(os.open(path, os.O_TMPFILE | os.O_RDWR, 0o600))
    except OSError:
        lost.append("files without a name (O_TMPFILE)")
    try:
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        lost.append("leases")
    return lost


@contextlib.contextmanager
def _scratch(path: Path, lost: list[str]) -> Iterator[int]:
    """A file there of one page, whose name is gone at once."""
    handle, name = tempfile.mkstemp(prefix=".doctor-", dir=path)
    try:
        os.unlink(name)
        try:
            os.ftruncate(handle, PAGE_BYTES)
        except OSError:
            lost.append("room for one page")
        yield handle
    finally:
        os.close(handle)


def _machine(slot: Path) -> str:
    """The machine that a slot names, empty where it names none."""
    try:
        header = read_part(slot.parent, slot.name, SLOT_BYTES_MAX, ANYBODY)
    except OSError:
        return ""
    return header[24:56].rstrip(b"\0").decode(errors="replace") if header.startswith(b"SWSLOT") else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
