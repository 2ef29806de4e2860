"""Paths that are being made, beside their places: a synth that was killed leaves one, which the next one removes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from ...errors import WorkloadError


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


def _made(out: Path) -> tuple[Path, int]:
    while True:
        part = out.with_name(f".{out.name}.{secrets.token_hex(8)}.tmp")
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        # Some file systems have no locks: nobody removes anything there.
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return part, handle
        # Another synth took it for one that nobody writes, before it was locked.
        os.close(handle)


def _sweep(out: Path) -> None:
    """Removes what killed ones left beside `out`: files of ours with such a name that nobody has locked."""
    name = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{16}}\.tmp")
    for place in [entry.name for entry in os.scandir(out.parent) if name.fullmatch(entry.name)]:
        part = out.with_name(place)
        with contextlib.suppress(OSError):
            handle = os.open(part, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                found = os.fstat(handle)
                if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    part.unlink()
            finally:
                os.close(handle)
