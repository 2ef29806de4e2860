"""Files in a store, read and replaced so that nobody who may make names there leads us elsewhere or keeps us waiting.

A power cut leaves the old file or the new one, never an empty one; files outside of a store are replaced in the same
way, and whether they can be is asked before the work. The native module does it so for everything else
(docs/security.md, "How a store is opened").
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Set
from pathlib import Path, PurePosixPath

from ..errors import UsageError

#: Longest store.toml, or layout that one names.
PART_BYTES_MAX = 64 << 20
#: As `owners`: whoever it belongs to.
ANYBODY: Set[int] = frozenset()
#: What the text of a managed file's link begins with.
LINK = "/stripewise:"
_LOOK = os.O_NOFOLLOW | os.O_CLOEXEC
_PLACE = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


@contextlib.contextmanager
def held_place(root: Path, name: str, make: bool = False) -> Iterator[tuple[int, str, int]]:
    """The directory of `<root>/<name>` held open, the last component, and the owner of `root`; no link below `root` is
    followed. With `make`, directories on the way are made where they are missing.

    Raises OSError that says what is wrong and names the file.
    """
    path = root / name
    *way, last = PurePosixPath(name).parts
    if last == ".." or ".." in way or PurePosixPath(name).is_absolute():
        raise OSError(errno.EINVAL, "it does not lie in the store", str(path))
    try:
        with contextlib.ExitStack() as held:
            at = os.open(root, _PLACE)
            held.callback(os.close, at)
            owner = os.fstat(at).st_uid
            for part in way:
                if make:
                    _make_directory(at, part, owner)
                at = os.open(part, _PLACE | os.O_NOFOLLOW, dir_fd=at)
                held.callback(os.close, at)
            yield at, last, owner
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link, which no part of a store is", str(path)) from None
        error.filename = str(path)
        raise


def _make_directory(at: int, name: str, owner: int) -> None:
    """Makes a directory of this owner that all may enter, whatever the umask: who may come there the root says."""
    try:
        os.mkdir(name, 0o755, dir_fd=at)
    except FileExistsError:
        return
    handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _LOOK, dir_fd=at)
    try:
        # Another one that came in its place meanwhile stays as it is.
        if os.fstat(handle).st_uid == os.geteuid() and not os.listdir(handle):
            if os.geteuid() == 0:
                os.fchown(handle, owner, -1)
            os.fchmod(handle, 0o755)
    finally:
        os.close(handle)


def read_part(root: Path, name: str, limit: int = PART_BYTES_MAX, owners: Set[int] | None = None) -> bytes:
    """The bytes of `<root>/<name>`: a regular file of the directory's owner or root's (or one of `owners`), no longer
    than `limit`, not behind a symbolic link. Raises OSError as above.
    """
    with held_place(root, name) as (at, last, owner):
        return read_at(at, last, limit, {0, owner} if owners is None else owners)


def read_at(at: int, name: str, limit: int = PART_BYTES_MAX, owners: Set[int] = ANYBODY) -> bytes:
    """As `read_part`, of a name in the directory `at` that is held open. Raises OSError without a file's name."""
    return read_judged_at(at, name, limit, owners)[0]


def read_judged_at(
    at: int, name: str, limit: int = PART_BYTES_MAX, owners: Set[int] = ANYBODY
) -> tuple[bytes, os.stat_result]:
    """The same, and which file that was before it was read."""
    handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _LOOK, dir_fd=at)
    try:
        found = os.fstat(handle)
        return _content(handle, limit, owners), found
    finally:
        os.close(handle)


def _writers(owner: int) -> Set[int]:
    """Whose files are written in a directory of this owner: in the name of another root writes none of its own."""
    me = os.geteuid()
    return {owner} if me == 0 else {owner, me}


def _checked_file(handle: int, owners: Set[int], links: int | None = None) -> os.stat_result:
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    if links is not None and found.st_nlink != links:
        raise OSError(errno.EMLINK, "it has other names elsewhere")
    if owners and found.st_uid not in owners:
        raise OSError(errno.EPERM, "it belongs to a user who has no business there")
    return found


def _content(handle: int, limit: int, owners: Set[int]) -> bytes:
    found = _checked_file(handle, owners)
    if found.st_size > limit:
        raise OSError(errno.EFBIG, f"it is longer than {limit:,} bytes")
    with open(handle, "rb", closefd=False) as file:
        return file.read(limit + 1)[:limit]


@contextlib.contextmanager
def locked_part(root: Path, name: str, wait: bool = True) -> Iterator[None]:
    """While it lasts, nobody else has the lock file `<root>/<name>`, which only the owner may open. Waits for it.

    Raises OSError as above; BlockingIOError where somebody has it, and nobody is to `wait`. Errors of the body stay as
    they are.
    """
    with contextlib.ExitStack() as held:
        with held_place(root, name) as (at, last, owner):
            held.enter_context(locked_at(at, last, owner, wait))
        yield


@contextlib.contextmanager
def locked_at(at: int, name: str, owner: int, wait: bool = True) -> Iterator[None]:
    """As `locked_part`, of a name in the directory `at` of this owner that is held open."""
    flags = os.O_RDWR | os.O_NONBLOCK | _LOOK
    try:
        handle = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=at)
        # What was there before, by whatever name it came, is given to nobody.
        if os.geteuid() == 0:
            os.fchown(handle, owner, -1)
    except FileExistsError:
        handle = os.open(name, flags, dir_fd=at)
    try:
        _checked_file(handle, _writers(owner), links=1)
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def is_locked(root: Path, name: str) -> bool:
    """Whether somebody has the lock file `<root>/<name>`; not where that cannot be asked."""
    try:
        with held_place(root, name) as (at, last, _):
            handle = os.open(last, os.O_RDONLY | os.O_NONBLOCK | _LOOK, dir_fd=at)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def overwrite_part(root: Path, name: str, text: str) -> None:
    """Writes `text` into the file `<root>/<name>`, which stays the same one, as a lock has to; what reads it meanwhile
    may find half of it. Raises OSError as above.
    """
    with held_place(root, name) as (at, last, owner):
        handle = os.open(last, os.O_WRONLY | os.O_NONBLOCK | _LOOK, dir_fd=at)
        with open(handle, "wb", buffering=0) as file:
            _checked_file(handle, _writers(owner), links=1)
            file.truncate()
            file.write(text.encode())


def remove_part(root: Path, name: str) -> None:
    """Removes the file `<root>/<name>` if it is there. Raises OSError as above."""
    with held_place(root, name) as (at, last, _), contextlib.suppress(FileNotFoundError):
        os.unlink(last, dir_fd=at)


def replace_part(
    root: Path,
    name: str,
    text: str | Iterable[bytes],
    durably: bool = True,
    make: bool = False,
    like: str | None = None,
) -> None:
    """Writes `text` beside `<root>/<name>` under a name that nobody guesses, and renames it there; with `durably` a
    power cut leaves the old file or the new one. What ends it early leaves nothing. Owner and mode stay, or are those
    of the file `like` beside it.

    Raises OSError as above.
    """
    with held_place(root, name, make) as (at, last, owner):
        temporary = f".{last}.{secrets.token_hex(8)}.tmp"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _LOOK, 0o666, dir_fd=at)
        try:
            with open(handle, "wb", closefd=False) as file:
                for chunk in [text.encode()] if isinstance(text, str) else text:
                    file.write(chunk)
            if make:
                os.fchmod(handle, 0o644)
            _keep_owner(handle, at, like or last, owner)
            if durably:
                os.fsync(handle)
            os.rename(temporary, last, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=at)
            raise
        finally:
            os.close(handle)
        if durably:
            _sync_directory(at)


def make_at(at: int, name: str, content: bytes, like: tuple[int, int, int]) -> None:
    """Makes the file `name` of this owner, group and mode in the directory `at` that is held open, durably and at once.

    Raises FileExistsError where there is one by then, which stays, and OSError without a file's name.
    """
    temporary = f".{name}.{secrets.token_hex(8)}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _LOOK, 0o600, dir_fd=at)
    try:
        with open(handle, "wb", closefd=False) as file:
            file.write(content)
        owner, group, mode = like
        if os.geteuid() == 0:
            os.fchown(handle, owner, group)
        os.fchmod(handle, mode)
        os.fsync(handle)
        _give_name(at, temporary, name)
    finally:
        os.close(handle)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=at)
    _sync_directory(at)


def set_aside_at(at: int, name: str, aside: str, judged: os.stat_result) -> str:
    """Renames the file `name` in the directory `at` that is held open to `aside`, or the first of `aside`.2, `aside`.3,
    ... that is free, and tells which; it stays whose it is. Raises FileExistsError where it is not the `judged` one any
    more, which is back then, and OSError without a file's name.
    """
    names = (aside if number == 1 else f"{aside}.{number}" for number in itertools.count(1))
    free = next(each for each in names if not _is_there(at, each))
    os.rename(name, free, src_dir_fd=at, dst_dir_fd=at)
    found = os.stat(free, dir_fd=at, follow_symlinks=False)
    if not os.path.samestat(found, judged) or _written(found) != _written(judged):
        # Where there is one more by now, both stay.
        _give_name(at, free, name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(free, dir_fd=at)
        raise FileExistsError(errno.EEXIST, "somebody has written it meanwhile")
    _sync_directory(at)
    return free


def _give_name(at: int, old: str, new: str) -> None:
    """Gives the file `old` the name `new` where nothing has it, perhaps beside its own. Raises FileExistsError."""
    try:
        os.link(old, new, src_dir_fd=at, dst_dir_fd=at, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        # Some file systems have no second names.
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        if _is_there(at, new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        os.rename(old, new, src_dir_fd=at, dst_dir_fd=at)


def _written(found: os.stat_result) -> tuple[int, int]:
    return found.st_size, found.st_mtime_ns


def _is_there(at: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _sync_directory(at: int) -> None:
    directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def write_durably(path: Path, text: str) -> None:
    """`replace_part` for a file by its path, wherever it lies. Raises OSError that names `path`."""
    replace_part(path.parent, path.name, text)


def write_chunks_durably(path: Path, chunks: Iterable[bytes]) -> None:
    """`write_durably` for what is made piece by piece. Raises OSError that names `path`."""
    replace_part(path.parent, path.name, chunks)


def _keep_owner(handle: int, at: int, last: str, owner: int) -> None:
    """Gives a new file what the one that it replaces has; nothing is written by everybody whatever the umask."""
    made = os.fstat(handle)
    wanted = (owner, made.st_gid, stat.S_IMODE(made.st_mode) & 0o775)
    with contextlib.suppress(FileNotFoundError):
        old = os.stat(last, dir_fd=at, follow_symlinks=False)
        if stat.S_ISREG(old.st_mode):
            wanted = (old.st_uid, old.st_gid, stat.S_IMODE(old.st_mode) & 0o775)
    if os.geteuid() == 0 and (made.st_uid, made.st_gid) != wanted[:2]:
        os.fchown(handle, *wanted[:2])
    os.fchmod(handle, wanted[2])


def check_output(path: Path, flag: str = "-o") -> None:
    """UsageError when no file can be written under this name, or something of a store is there.

    What is no regular file, a device say, would be replaced by one, and of a link the name and not what it leads to.
    """
    parent = path.absolute().parent
    if path.is_symlink() and os.readlink(path).startswith(LINK):
        raise UsageError(f"{flag}: {path} is a managed file, which would lose its name; give another name")
    if path.is_symlink():
        raise UsageError(f"{flag}: {path} is a link, which would be replaced; give the name that it leads to")
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UsageError(f"{flag}: {path} is no regular file, and would be replaced by one; give another name")
    check_outside(parent, path, flag)
    if path.is_dir() or not parent.is_dir():
        raise UsageError(f"{flag}: {path} cannot be a file there; give the name of a file in an existing directory")
    _check_writable(parent, flag, "a file in another directory")


def check_output_directory(path: Path, flag: str = "-o") -> None:
    """UsageError when no file can be written into this directory, which need not exist."""
    place = path.absolute()
    there = next(each for each in (place, *place.parents) if os.path.lexists(each))
    check_outside(there, path, flag)
    if not there.is_dir():
        raise UsageError(f"{flag}: {path} cannot be a directory, for {there} is none; give another name")
    _check_writable(there, flag, "another directory")


def check_outside(directory: Path, path: Path, flag: str) -> None:
    """UsageError where a directory is a store's or a target's, or lies in one: what is there is the store's alone."""
    real = Path(os.path.realpath(directory))
    for each in (real, *real.parents):
        if any(os.path.lexists(each / name) for name in ("store.bin", "stripewise-target")):
            raise UsageError(f"{flag}: {path} would lie in {each}, which is a store's own; give a place outside of it")


def is_read_only(directory: Path) -> bool:
    """Whether the file system of a directory is mounted read-only; not where that cannot be asked."""
    try:
        return bool(os.statvfs(directory).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _check_writable(directory: Path, flag: str, cure: str) -> None:
    if os.access(directory, os.W_OK | os.X_OK):
        return
    why = "its file system is read-only" if is_read_only(directory) else "permission denied"
    raise UsageError(f"{flag}: {directory} cannot be written to ({why}); give {cure}")
