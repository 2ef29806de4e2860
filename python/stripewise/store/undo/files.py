"""Files of a store become plain, one after the other, each compared with what the store has before that goes.

Of each, while nobody else may open it: a plain copy beside its name, durable; the checksum of the managed file against
that of the copy, read back from its disk; the copy takes the name's place in one step; so do its further names; then
what the store has goes to the trash. A note tells the next run how far a killed one came (`notes.py`).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ... import native
from ...errors import ClusterError, DamagedError, InUseError, StoreError
from ...files.parts import held_place
from ...units import command_line
from ..store import FOREIGN_DIGEST, Store
from ..transfer import retry_while_open
from ..upkeep import collect, scrub
from .decide import Decision, Outgoing, away_targets, free_bytes, owner_of
from .names import held_directory, link_id
from .notes import Note, forget, notes, write
from .sums import sum_of_managed, sum_of_plain
from .work import Work

#: The trash is emptied when it has this part of all bytes: each time looks at every file of the store.
_TRASH_PART = 16


@dataclass
class Done:
    """What became plain in this run."""

    files: int = 0
    bytes: int = 0
    names: int = 0
    orphans: list[str] = field(default_factory=list)


@contextlib.contextmanager
def nothing_new(store: Store) -> Iterator[None]:
    """Programs that begin meanwhile make no new file in the store; as store.toml says again where the body fails."""
    try:
        native.call("store_configure", str(store.root), store.config.spec(FOREIGN_DIGEST, only=[]))
        yield
    except BaseException:
        # Of a store that goes no words are left; that the removal was ended is what there is to say.
        with contextlib.suppress(ClusterError, StoreError):
            store.sync(force=True)
        raise


def settle(store: Store) -> None:
    """Ends what a killed run has begun, and empties the trash."""
    settle_notes(store)
    # What is away may come back: without it nothing is collected until it is decided that nobody needs it.
    if not away_targets(store):
        collect(store, False, 0, None)


def settle_notes(store: Store) -> int:
    """A noted file whose plain copy took its name's place is plain, others are managed; how many had a note."""
    noted = list(notes(store))
    for note in noted:
        try:
            with held_directory(os.path.dirname(note.path)) as here:
                _settle(store, note, here)
        except (FileNotFoundError, NotADirectoryError):
            # With its directory went the copy.
            forget(store, note)
    return len(noted)


def _settle(store: Store, note: Note, here: int) -> None:
    _, name, copy = _split(note)
    found = _look(name, here)
    if note.ino and found is not None and _is_plain(found) and found.st_ino == note.ino:
        _let_go(store, note, here, found)
    else:
        _remove_own(copy, here)
        forget(store, note)


def plain_by_now(decision: Decision, done: Done) -> str:
    """What stands where a signal ends `make_plain`: the file that was under way may be plain, too."""
    plain = done.files + sum(_is_there_plain(file.path) for file in decision.files[done.files :][:1])
    left = len(decision.files) - plain
    return f"{plain} file(s) are plain by now, {left} are managed; the same command goes on from there"


def make_plain(store: Store, decision: Decision, done: Done, wait_s: float, step: Callable[[int, int], None]) -> None:
    """Every file of the decision, counted in `done`. Raises StoreError for the first that cannot; those before it are
    plain.
    """
    work, trash = Work(decision, step), 0
    for file in decision.files:
        place = os.path.dirname(file.path)
        if trash and (trash > decision.data_bytes // _TRASH_PART or free_bytes(place) < file.data_bytes):
            collect(store, False, 0, None, leave_away=True)
            trash = 0
        with work.of(file):
            _one(store, file, wait_s, work)
        done.files += 1
        done.bytes += file.size
        done.names += len(file.others)
        done.orphans += [file.path] if file.is_orphan else []
        trash += file.data_bytes
    collect(store, False, 0, None, leave_away=True)


def _one(store: Store, file: Outgoing, wait_s: float, work: Work) -> None:
    note = Note(file.id, file.path, file.others)
    place, _, copy = _split(note)
    with contextlib.ExitStack() as held:

        def take() -> dict[str, str]:
            held.enter_context(_for_ourselves(store, file))
            return {}

        retry_while_open(take, wait_s)
        # A new name could be taken by whoever may make names there.
        here = held.enter_context(held_directory(place, is_sticky_fine=not file.is_orphan))
        if owner_of(store, file.id) != os.geteuid():
            raise StoreError(f"{file.path}: belongs to another user now; run undo again")
        if _look(copy, here) is not None:
            raise StoreError(f"{note.copy}: is in the way; move it elsewhere")
        _scrubbed(store, file)
        write(store, note)
        try:
            with work.copying(file, note.copy):
                native.call("store_export_to", str(store.root), file.id, note.copy)
            wanted, (found, plain) = sum_of_managed(store, file.id, work.read), sum_of_plain(note.copy, work.read)
            if wanted != found:
                raise DamagedError(
                    f"{file.path}: its plain copy was read back as other bytes than the store has; the file is managed "
                    "as before: look after the disks of both, and run undo again"
                )
            note = replace(note, ino=plain.st_ino)
            write(store, note)
            _take_place(store, note, here, plain, file.is_orphan)
        except BaseException:
            # A signal may come behind the rename, too.
            _settle(store, note, here)
            raise
        _let_go(store, note, here, plain)


def _scrubbed(store: Store, file: Outgoing) -> None:
    """Compares a file with the checksums that a scrub has kept of it. DamagedError where they differ."""
    if not os.path.lexists(store.root / "files" / file.id / "sums"):
        return
    for rot in scrub(store, [file.id], 0)["rot"]:
        export = command_line(["stripewise", "store", "export", file.path])
        raise DamagedError(f"{rot['message']}; restore it from a copy, or take it out as it is: {export}")


def _split(note: Note) -> tuple[str, str, str]:
    """The directory, the name in it, and that of the copy."""
    return os.path.dirname(note.path), os.path.basename(note.path), os.path.basename(note.copy)


def _take_place(store: Store, note: Note, here: int, plain: os.stat_result, is_new: bool) -> None:
    """The copy takes the place of the link, or of nothing where the name `is_new`."""
    _, name, copy = _split(note)
    is_free = _look(name, here) is None if is_new else link_id(name, store.root, here) == note.id
    if not is_free or not _is_that(copy, here, plain):
        raise StoreError(f"{note.path}: something else took this name meanwhile; run undo again")
    os.rename(copy, name, src_dir_fd=here, dst_dir_fd=here)
    os.fsync(here)


def _let_go(store: Store, note: Note, here: int, plain: os.stat_result) -> None:
    """The file is plain at its name: its further names, too, and what the store has of it goes to the trash."""
    for other in note.others:
        _give_name(store, note, here, plain, other)
    with (
        contextlib.suppress(FileNotFoundError),
        held_place(store.root, f"files/{note.id}") as (parts, _, _),
        held_place(store.root, f"trash/{note.id}") as (trash, _, _),
    ):
        os.rename(note.id, note.id, src_dir_fd=parts, dst_dir_fd=trash)
        for place in (parts, trash):
            _sync(place)
    forget(store, note)


def _give_name(store: Store, note: Note, here: int, plain: os.stat_result, other: str) -> None:
    """Makes a further link to the managed file a further name of the plain one."""
    _, own, temporary = _split(note)
    name = os.path.basename(other)
    with held_directory(os.path.dirname(other)) as there:
        if link_id(name, store.root, there) != note.id:
            return
        _remove_own(temporary, there)
        if not _is_that(own, here, plain):
            raise StoreError(f"{note.path}: something else took this name meanwhile; run undo again")
        try:
            os.link(own, temporary, src_dir_fd=here, dst_dir_fd=there, follow_symlinks=False)
            if not _is_that(temporary, there, plain):
                _remove_own(temporary, there)
                raise StoreError(f"{note.path}: something else took this name meanwhile; run undo again")
        except FileExistsError as error:
            raise StoreError(f"{os.path.dirname(other)}/{temporary}: is in the way; move it elsewhere") from error
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
        with held_place(store.root, f"files/{file.id}/ctl") as (at, last, _):
            handle = os.open(last, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=at)
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


def _look(name: str, at: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    except OSError:
        return None


def _is_there_plain(path: str) -> bool:
    return not os.path.islink(path) and os.path.isfile(path)


def _is_plain(found: os.stat_result) -> bool:
    """A regular file of ours."""
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _is_that(name: str, at: int, plain: os.stat_result) -> bool:
    """Whether the name is the plain file that was compared."""
    found = _look(name, at)
    return found is not None and _is_plain(found) and os.path.samestat(found, plain)


def _remove_own(name: str, at: int) -> None:
    """Removes what a run of ours left under the name of a copy; what others put there stays."""
    found = _look(name, at)
    if found is not None and found.st_uid == os.geteuid():
        os.unlink(name, dir_fd=at)


def _sync(place: int) -> None:
    """`held_place` gives a descriptor that only names a directory."""
    handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
