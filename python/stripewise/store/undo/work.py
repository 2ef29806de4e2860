"""How far an undo has come, in bytes: each file is copied, and then both its copies are read to be compared."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator

from ..room import BLOCK_BYTES
from .decide import Decision, Outgoing

#: What a file counts beside its bytes: flushes and renames take as long for one of none.
_FILE_BYTES = 1 << 20
#: Between two looks at a copy that grows, seconds: as often as a mover tells of its bytes.
_LOOK_S = 0.1


class Work:
    """Tells `step` the bytes that are done and all of them, as soon as it is made and whenever some are done."""

    def __init__(self, decision: Decision, step: Callable[[int, int], None]) -> None:
        self._step = step
        self._done = 0
        self._total = sum(map(_all_of, decision.files))
        self._tell(0)

    def _tell(self, more: int) -> None:
        self._step(min(self._done + more, self._total), self._total)

    def read(self, count: int) -> None:
        """So many bytes of a copy were read."""
        self._done += count
        self._tell(0)

    @contextlib.contextmanager
    def copying(self, file: Outgoing, copy: str) -> Iterator[None]:
        """While the body makes the copy of a file, its growth is told."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(_LOOK_S):
                with contextlib.suppress(OSError):
                    self._tell(min(os.lstat(copy).st_blocks * BLOCK_BYTES, file.data_bytes))

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
        self._done += file.data_bytes
        self._tell(0)

    @contextlib.contextmanager
    def of(self, file: Outgoing) -> Iterator[None]:
        """The body does all of a file: behind it that much is done, whatever was told on the way."""
        before = self._done
        yield
        self._done = before + _all_of(file)
        self._tell(0)


def _all_of(file: Outgoing) -> int:
    return _FILE_BYTES + file.data_bytes + 2 * file.size
