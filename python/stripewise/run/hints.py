"""What the preloaded library had to say in one run: its log, shown at the end and kept where the user finds it.

While the run lasts the log lies in a directory of its own below TMPDIR, which is near and whose name nobody guesses:
most runs say nothing, and leave nothing. A log with lines goes to the user's state directory, of which the newest
are kept. So no log lies in a store, which others may share, and which may be full or read-only when it is needed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .runner import LINE_BYTES_MAX

LOG = "STRIPEWISE_LOG"
#: Different lines that are shown when the program has ended.
HINTS_MAX = 10
#: Bytes of the log that are read; stores that were refused are named up to so many, however much else there is.
HINT_BYTES_MAX = 64 << 20
REFUSED_MAX = 1000
#: What the library says of a store that it did not use: an archiver, say, has then kept links and no contents.
REFUSED = "this store was not used"
#: Logs that are kept, and bytes of each.
LOGS_MAX = 20
LOG_BYTES_MAX = 4 << 20
#: Bytes that a log has for itself from the start: it must hold what is said of the disk that it fills itself.
RESERVED_BYTES = 64 << 10
#: FALLOC_FL_KEEP_SIZE: blocks beyond the file's end.
_KEEP_SIZE = 1


def logs_directory() -> Path:
    """Where logs are kept: `stripewise/logs` in XDG_STATE_HOME, or in ~/.local/state."""
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home) if home.startswith("/") else Path.home() / ".local" / "state"
    return base / "stripewise" / "logs"


@dataclass
class _Said:
    """Lines of this run: how many, the different ones, and those of refused stores."""

    count: int = 0
    cut: bool = False
    found: dict[str, None] = field(default_factory=dict)
    refused: dict[str, None] = field(default_factory=dict)


class Hints:
    """The library's log of one run: the user's own, or one that is kept if it has lines."""

    def __init__(self, env: dict[str, str]) -> None:
        self.path: Path | None = None
        if not env.get(LOG):
            # Without a place for a log the program runs all the same.
            with contextlib.suppress(OSError):
                self.path = _own_log()
                env[LOG] = str(self.path)
        self.log = Path(env[LOG]) if env.get(LOG) else None
        self.begin = self.log.stat().st_size if self.log and self.log.is_file() else 0

    def lines(self) -> list[str]:
        """The different lines, oldest first, how many more there are, and where all are; an empty log is gone then.

        Stores that were refused are always named, also when the log is the user's own.
        """
        said = self._said()
        place = self.log if self.path is None else self._kept(said.count)
        if not said.count or place is None:
            return []
        count = f"more than {said.count:,}" if said.cut else f"{said.count:,}"
        where = f"{count} {'line' if count == '1' else 'lines'} of this run in the library's log: {place}"
        if self.path is None:
            return [*said.refused, where]
        more = [f"and {len(said.found) - HINTS_MAX} more"] if len(said.found) > HINTS_MAX else []
        return [*said.refused, *list(said.found)[:HINTS_MAX], *more, where]

    def _said(self) -> _Said:
        said = _Said()
        with contextlib.suppress(OSError):
            for line in self._logged(said):
                said.count += 1
                group = said.refused if REFUSED in line else said.found
                if len(group) < REFUSED_MAX:
                    group[line] = None
        return said

    def _logged(self, said: _Said) -> Iterator[str]:
        """What was logged since the run began, line by line."""
        if self.log is None:
            return
        handle = os.open(self.log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return
            file.seek(self.begin)
            left = HINT_BYTES_MAX
            while left > 0 and (text := file.readline(min(left, LINE_BYTES_MAX))):
                left -= len(text)
                line = text.decode(errors="replace").rstrip("\n")
                yield line.partition("]: ")[2] or line
            said.cut = left <= 0

    def _kept(self, lines: int) -> Path | None:
        """Where the run's own log stays: with the user's others, or, where that cannot be, in its temporary place."""
        assert self.path is not None
        place = self.path.parent
        if not lines:
            shutil.rmtree(place, ignore_errors=True)
            return None
        try:
            kept = _keep(self.path)
        except OSError:
            for path, mode in ((place, 0o700), (self.path, 0o600)):
                with contextlib.suppress(OSError):
                    path.chmod(mode)
            return self.path
        shutil.rmtree(place, ignore_errors=True)
        return kept


def _own_log() -> Path:
    """An empty log below TMPDIR, with room of its own where the file system can give it."""
    # In a directory of its own: a daemon that stays behind cannot make the file anew.
    path = Path(tempfile.mkdtemp(prefix="stripewise-log-")) / "log"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise
    try:
        # Without room of its own the log is as good as any other file.
        with contextlib.suppress(ImportError, AttributeError, OSError):
            import ctypes

            ctypes.CDLL(None).fallocate64(handle, _KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(RESERVED_BYTES))
        if os.geteuid() == 0:
            # Programs of the run may be other users' after they gave up root.
            os.fchmod(handle, 0o622)
            path.parent.chmod(0o711)
    finally:
        os.close(handle)
    return path


def _keep(log: Path) -> Path:
    """Copies a log to the user's others and removes the oldest of these; OSError where that cannot be."""
    directory = logs_directory()
    _make_own(directory)
    kept = directory / f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}.log"
    handle = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(handle, "wb") as into, log.open("rb") as file:
            into.write(file.read(LOG_BYTES_MAX))
    except OSError:
        kept.unlink(missing_ok=True)
        raise
    for old in sorted(directory.glob("*.log"))[:-LOGS_MAX]:
        with contextlib.suppress(OSError):
            old.unlink()
    return kept


def _make_own(directory: Path) -> None:
    """Makes a directory that only this user can change; PermissionError where another's would have to be believed.

    As after sudo with another user's HOME: what lies there he could exchange, and what is made there stays root's.
    """
    own = {0, os.geteuid()}
    for above in reversed(directory.parents):
        if os.path.lexists(above) and above.lstat().st_uid not in own:
            raise PermissionError(errno.EPERM, "another user's", str(above))
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(errno.EPERM, "not this user's alone", str(directory))
