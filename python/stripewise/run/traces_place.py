"""Where the traces of a tune's runs go: a directory that is kept, or one for this while."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .collect import NOTE

#: What a collected trace's directory has behind the name of its run's.
COLLECTED = "-collected"
PREFIX = "stripewise-tune-"
#: In a directory of that name, what tells that a tune made it, to be removed.
MARKER = ".tune"


@contextlib.contextmanager
def place_of_traces(keep: Path | None) -> Iterator[Path]:
    """The directory `keep`, empty again where a tune ends before any of its runs; else one that is removed afterwards,
    with those of killed tunes.
    """
    if keep is not None:
        try:
            yield keep
        except BaseException:
            with contextlib.suppress(OSError):
                if not any(each.name.endswith(COLLECTED) for each in keep.iterdir()):
                    # What else is there somebody else has made meanwhile.
                    for each in keep.iterdir():
                        if (each / NOTE).is_file() and not each.is_symlink():
                            shutil.rmtree(each)
            raise
        return
    remove_left()
    place = Path(tempfile.mkdtemp(prefix=PREFIX))
    with contextlib.ExitStack() as held:
        # Some file systems have no locks: others cannot remove it there either.
        with contextlib.suppress(OSError):
            held.enter_context(_held(place))
        # Others look for it, and find it only now that the directory is held.
        (place / MARKER).touch()
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)


def remove_left() -> None:
    """Removes what killed tunes of this user left of their traces."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), _held(left) as at:
            marker, place = os.stat(MARKER, dir_fd=at, follow_symlinks=False), os.fstat(at)
            # One that only begins with this name is somebody's own; others can put a marker where they may write.
            is_own = marker.st_uid == os.geteuid() and not place.st_mode & 0o022
            if stat.S_ISREG(marker.st_mode) and is_own and os.path.samestat(place, os.lstat(left)):
                shutil.rmtree(left)


@contextlib.contextmanager
def _held(place: Path) -> Iterator[int]:
    """While it lasts no other tune takes the directory, which is open, for a killed one's. OSError where one has it, or
    a user.
    """
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(handle).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(place))
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle
    finally:
        os.close(handle)
