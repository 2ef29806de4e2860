"""Files in a store, read and replaced so that nobody who may make names there leads us elsewhere or keeps us waiting.

The native module does the same for everything else (docs/security.md, "How a store is opened").
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator, Set
from pathlib import Path, PurePosixPath

#: Longest store.toml, or layout that one names.
PART_BYTES_MAX = 64 << 20
#: As `owners`: whoever it belongs to.
ANYBODY: Set[int] = frozenset()
_LOOK = os.O_NOFOLLOW | os.O_CLOEXEC


def read_part(root: Path, name: str, limit: int = PART_BYTES_MAX, owners: Set[int] | None = None) -> bytes:
    """The bytes of `<root>/<name>`: a regular file of the directory's owner or root's (or one of `owners`), no longer
    than `limit`, not behind a symbolic link.

    Raises OSError that says what is wrong and names the file.
    """
    path = root / name
    *way, last = PurePosixPath(name).parts
    if last == ".." or ".." in way or PurePosixPath(name).is_absolute():
        raise OSError(errno.EINVAL, "it does not lie in the store", str(path))
    try:
        with contextlib.ExitStack() as held:
            at = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            held.callback(os.close, at)
            owners = {0, os.fstat(at).st_uid} if owners is None else owners
            for part in way:
                at = os.open(part, os.O_PATH | os.O_DIRECTORY | _LOOK, dir_fd=at)
                held.callback(os.close, at)
            handle = os.open(last, os.O_RDONLY | os.O_NONBLOCK | _LOOK, dir_fd=at)
            held.callback(os.close, handle)
            return _content(handle, path, limit, owners)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link, which no part of a store is", str(path)) from None
        error.filename = str(path)
        raise


def _content(handle: int, path: Path, limit: int, owners: Set[int]) -> bytes:
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    if owners and found.st_uid not in owners:
        raise OSError(errno.EPERM, "it belongs to a user who has no business there", str(path))
    if found.st_size > limit:
        raise OSError(errno.EFBIG, f"it is longer than {limit:,} bytes", str(path))
    with open(handle, "rb", closefd=False) as file:
        return file.read(limit + 1)[:limit]


@contextlib.contextmanager
def temporary_beside(path: Path) -> Iterator[tuple[Path, int]]:
    """A new file beside `path` under a name that nobody guesses, as (path, descriptor); gone afterwards if it is still
    there."""
    name = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _LOOK, 0o666)
    try:
        yield name, handle
    finally:
        os.close(handle)
        with contextlib.suppress(OSError):
            name.unlink()
