"""Files of a store become plain, one after the other, each compared with what the store has before that goes.

Of each, while nobody else may open it: a plain copy beside its name, durable; the checksum of the managed file against
that of the copy, read back from its disk; the copy takes the name's place in one step; so do its further names; then
what the store has goes to the trash. A note tells the next run how far a killed one came (`notes.py`).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ... import native
from ...errors import DamagedError, InUseError, StoreError
from ..store import FOREIGN_DIGEST, Store
from ..transfer import cat, retry_while_open
from ..upkeep import collect
from .decide import Decision, Outgoing, free_bytes
from .names import link_id
from .notes import Note, forget, held_directory, notes, write

_READ_BYTES = 4 << 20
#: The trash is emptied when it has this part of all bytes: each time looks at every file of the store.
_TRASH_PART = 16


@dataclass
class Done:
    """What became plain in this run."""

    files: int = 0
    bytes: int = 0
    names: int = 0
    orphans: list[str] = field(default_factory=list)


def sum_of_managed(store: Store, identity: str) -> str:
    """SHA-256 of a managed file's bytes, as `store cat` reads them."""
    reader, writer = os.pipe()
    failed: list[BaseException] = []

    def pour() -> None:
        try:
            cat(store, identity, writer, 0, None)
        except BaseException as error:
            failed.append(error)
        finally:
            os.close(writer)

    digest = hashlib.sha256()
    pouring = threading.Thread(target=pour, daemon=True)
    pouring.start()
    try:
        while chunk := os.read(reader, _READ_BYTES):
            digest.update(chunk)
    finally:
        os.close(reader)
        pouring.join()
    if failed:
        raise failed[0]
    return digest.hexdigest()


def sum_of_plain(path: str) -> tuple[str, int]:
    """SHA-256 of a plain file's bytes, read from its disk as far as the system lets go of its pages; and its inode."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        digest = hashlib.sha256()
        while chunk := os.read(handle, _READ_BYTES):
            digest.update(chunk)
        return digest.hexdigest(), os.fstat(handle).st_ino
    finally:
        os.close(handle)


@contextlib.contextmanager
def nothing_new(store: Store) -> Iterator[None]:
    """Programs that begin meanwhile make no new file in the store; as store.toml says again where the body fails."""
    native.call("store_configure", str(store.root), store.config.spec(FOREIGN_DIGEST, only=[]))
    try:
        yield
    except BaseException:
        store.sync(force=True)
        raise


def settle(store: Store) -> None:
    """Ends what a killed run has begun: a file whose plain copy took its name's place is plain, others are managed."""
    for note in list(notes(store)):
        found = _look(note.path)
        if note.ino and found is not None and stat.S_ISREG(found.st_mode) and found.st_ino == note.ino:
            _let_go(store, note)
            continue
        if _look(note.copy) is not None:
            os.unlink(note.copy)
        forget(store, note)
    collect(store, False, 0, [])


def make_plain(store: Store, decision: Decision, wait_s: float, step: Callable[[int, int], None]) -> Done:
    """Every file of the decision. Raises StoreError for the first that cannot; those before it are plain."""
    done, copied, trash = Done(), 0, 0
    step(0, decision.data_bytes)
    for file in decision.files:
        place = os.path.dirname(file.path)
        if trash and (trash > decision.data_bytes // _TRASH_PART or free_bytes(place) < file.data_bytes):
            collect(store, False, 0, [])
            trash = 0
        _one(store, file, wait_s)
        done.files += 1
        done.bytes += file.size
        done.names += len(file.others)
        done.orphans += [file.path] if file.is_orphan else []
        copied += file.data_bytes
        trash += file.data_bytes
        step(copied, decision.data_bytes)
    collect(store, False, 0, [])
    return done


def _one(store: Store, file: Outgoing, wait_s: float) -> None:
    note = Note(file.id, file.path, file.others)
    with contextlib.ExitStack() as held:

        def take() -> dict[str, str]:
            held.enter_context(_for_ourselves(store, file))
            return {}

        retry_while_open(take, wait_s)
        if _look(note.copy) is not None:
            raise StoreError(f"{note.copy}: is in the way; move it elsewhere")
        write(store, note)
        try:
            native.call("store_export_to", str(store.root), file.id, note.copy)
            wanted, (found, ino) = sum_of_managed(store, file.id), sum_of_plain(note.copy)
            if wanted != found:
                raise DamagedError(
                    f"{file.path}: its plain copy was read back as other bytes than the store has; the file is managed "
                    "as before: look after the disks of both, and run undo again"
                )
            note = replace(note, ino=ino)
            write(store, note)
            _take_place(store, note, file.is_orphan)
        except StoreError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(note.copy)
            forget(store, note)
            raise
        _let_go(store, note)


def _take_place(store: Store, note: Note, is_new: bool) -> None:
    """The copy takes the place of the link, or of nothing where the name `is_new`."""
    name, copy = os.path.basename(note.path), os.path.basename(note.copy)
    with held_directory(os.path.dirname(note.path)) as at:
        is_free = _look(name, at) is None if is_new else link_id(name, store.root, at) == note.id
        found = _look(copy, at)
        if not is_free or found is None or found.st_ino != note.ino:
            raise StoreError(f"{note.path}: something else took this name meanwhile; run undo again")
        os.rename(copy, name, src_dir_fd=at, dst_dir_fd=at)


def _let_go(store: Store, note: Note) -> None:
    """The file is plain at its name: its further names, too, and what the store has of it goes to the trash."""
    for other in note.others:
        _give_name(store, note, other)
    with (
        contextlib.suppress(FileNotFoundError),
        held_directory(store.root / "files") as parts,
        held_directory(store.root / "trash") as trash,
    ):
        os.rename(note.id, note.id, src_dir_fd=parts, dst_dir_fd=trash)
    forget(store, note)


def _give_name(store: Store, note: Note, other: str) -> None:
    """Makes a further link to the managed file a further name of the plain one."""
    name, temporary = os.path.basename(other), os.path.basename(note.copy)
    with held_directory(os.path.dirname(note.path)) as here, held_directory(os.path.dirname(other)) as there:
        if link_id(name, store.root, there) != note.id:
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=there)
        try:
            plain = os.path.basename(note.path)
            os.link(plain, temporary, src_dir_fd=here, dst_dir_fd=there, follow_symlinks=False)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
                raise
            # On another file system a symbolic link has to do, as it did.
            os.symlink(note.path, temporary, dir_fd=there)
        os.rename(temporary, name, src_dir_fd=there, dst_dir_fd=there)


@contextlib.contextmanager
def _for_ourselves(store: Store, file: Outgoing) -> Iterator[None]:
    """Nobody has the file open, and who opens it meanwhile waits. InUseError where a program has it (docs/formats.md,
    "ctl": byte 0 is locked by who has the file open).
    """
    try:
        handle = os.open(store.root / "files" / file.id / "ctl", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        # Without it nobody has the file open.
        yield
        return
    try:
        lock = struct.pack("hhxxxxqqixxxx", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        try:
            fcntl.fcntl(handle, fcntl.F_OFD_SETLK, lock)
        except BlockingIOError as error:
            raise InUseError(f"{file.path}: a program has it open; wait until it is closed, or give --wait") from error
        yield
    finally:
        os.close(handle)


def _look(path: str, at: int | None = None) -> os.stat_result | None:
    try:
        return os.stat(path, dir_fd=at, follow_symlinks=False)
    except OSError:
        return None
