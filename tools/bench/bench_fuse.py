"""A FUSE passthrough to measure beside: bindfs over a plain directory, where the package and /dev/fuse are there.

It does nothing but pass calls on, so its costs are those that any file system by way of FUSE begins with.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

#: More than one request at a time, as the library's programs have; its caches are the defaults (a second).
PASSTHROUGH = ("bindfs", "--multithreaded", "-f")
MOUNT_S = 10


@cache
def missing(reason: str) -> None:
    """Say once why there are no figures of FUSE."""
    print(f"bench: FUSE is not measured: {reason}", file=sys.stderr)


@contextmanager
def passthrough(source: Path, place: Path) -> Iterator[Path | None]:
    """`source` as it is seen through FUSE at `place`; None, and a line that says why, where that cannot be."""
    source.mkdir(exist_ok=True)
    place.mkdir()
    if not shutil.which(PASSTHROUGH[0]) or not shutil.which("fusermount3"):
        missing("bindfs is not here; install it (Debian: apt-get install bindfs)")
        yield None
        return
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        missing("/dev/fuse is not here, or not ours to open")
        yield None
        return
    command = [*PASSTHROUGH, str(source), str(place)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as daemon:
        if not _mounted(daemon, place):
            daemon.kill()
            said = daemon.communicate()[1].strip().splitlines()
            missing(f"bindfs did not mount: {said[-1] if said else 'it said nothing'}")
            yield None
            return
        try:
            yield place
        finally:
            # It unmounts itself, busy or not.
            daemon.terminate()


def _mounted(daemon: subprocess.Popen[str], place: Path) -> bool:
    deadline = time.monotonic() + MOUNT_S
    while daemon.poll() is None and time.monotonic() < deadline:
        if os.path.ismount(place):
            return True
        time.sleep(0.01)
    return False
