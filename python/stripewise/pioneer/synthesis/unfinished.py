"""Paths that are being made, beside their places: a synth that was killed leaves one, which the next one removes."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from ...errors import WorkloadError

#: Files that are made until one stays, at most.
_TRIES_MAX = 100


@contextlib.contextmanager
def beside(out: Path) -> Iterator[Path]:
    """A file beside `out` under a name that nobody guesses, locked as long as it is written; nothing is left there.

    Raises WorkloadError where none can be made.
    """
    try:
        _sweep(out)
        part, handle = _made(out)
    except OSError as error:
        raise WorkloadError(f"{out}: cannot be written ({error.strerror}); give another name") from error
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)
        os.close(handle)


def _of_node(out: Path) -> str:
    """How names of this node's begin: the locks of some file systems are seen on their own node alone, so each removes
    what its own processes left."""
    return f".{out.name}.{hashlib.sha256(os.uname().nodename.encode()).hexdigest()[:8]}"


def _made(out: Path) -> tuple[Path, int]:
    for _ in range(_TRIES_MAX):
        part = out.with_name(f"{_of_node(out)}{secrets.token_hex(8)}.tmp")
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        # Some file systems have no locks: nobody removes anything there.
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(part, follow_symlinks=False), os.fstat(handle)):
                return part, handle
        # Another synth took it for one that nobody writes, before it was locked.
        os.close(handle)
        part.unlink(missing_ok=True)
    raise WorkloadError(f"{out}: cannot be written (files beside it vanish as they are made); give another name")


def _sweep(out: Path) -> None:
    """Removes what killed ones left beside `out`: files of ours with such a name that nobody has locked."""
    name = re.compile(rf"{re.escape(_of_node(out))}[0-9a-f]{{16}}\.tmp")
    there: list[str] = []
    # Where a directory cannot be listed, what was left stays.
    with contextlib.suppress(PermissionError):
        there = [entry.name for entry in os.scandir(out.parent) if name.fullmatch(entry.name)]
    for place in there:
        part = out.with_name(place)
        with contextlib.suppress(OSError):
            # For writing: NFS locks nothing else.
            handle = os.open(part, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                found = os.fstat(handle)
                if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink <= 1:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    part.unlink()
            finally:
                os.close(handle)
