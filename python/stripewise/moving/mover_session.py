"""A mover as Python schedules it: which file gets which layout next; the native session has lock, throttle, status and
orders.

It hears signals, and turns what kept a move from happening into a sentence; nothing that happens to one file is fatal
to the others.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from .. import errors, native
from ..files.spelling import path_meant, spelled
from ..layout import Layout
from ..limits import Limits
from ..signals import heeded
from ..store import Store
from ..store.config import check_untuned
from ..store.layouts import native_text

#: Signals that stop a mover between two chunks, the file whole.
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: What ends it once nothing more can be moved now: the program that it works beside has ended.
FINISHING = signal.SIGUSR1
#: What a run sends to the mover beside it; heard whatever was ignored before.
ASKED = (signal.SIGTERM, FINISHING)


@dataclass(frozen=True)
class Moved:
    """How a move ended: bytes moved, and the kind of error, its class and a sentence if one kept it from its end."""

    moved_bytes: int
    error: str = ""
    message: str = ""
    error_class: str = ""

    @property
    def was_stopped(self) -> bool:
        """Whether somebody called it off."""
        return self.error == "stopped"

    def check(self, stands: str = "") -> None:
        """Raises the StoreError that kept the file where it was, if one did; `stands` ends its sentence."""
        if self.error:
            raise getattr(errors, self.error_class)(f"{self.message}{stands}")


class MoverSession:
    """Holds the store's mover lock while it is entered.

    `head` is what the status says of this mover; `shown` gets bytes done and in all. Entering raises StoreError when
    another mover is at work.
    """

    def __init__(
        self,
        store: Store,
        head: dict[str, Any],
        limits: Limits,
        shown: Callable[[int, int], None] | None = None,
    ) -> None:
        self.store = store
        self.limits = limits
        self.shown = shown
        self.signal: int | None = None
        self.stopped = False
        #: Whether it is to end instead of waiting.
        self.finishing = False
        self._is_waiting = False
        self._head = head
        self._native: Any = None
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> MoverSession:
        if self._head.get("verb") != "tune":
            check_untuned(self.store.root)
        options, head = self.limits.as_json(), json.dumps(self._head)
        # Before anybody can see that it is at work, and send it one.
        if threading.current_thread() is threading.main_thread():
            for number in {*heeded(*STOPPING), *ASKED}:
                self._handlers[number] = signal.signal(number, self._on_signal)
        try:
            self._native = native.call("MoveSession", str(self.store.root), options, head, self._look)
        except BaseException:
            self._give_back_signals()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._give_back_signals()
        self._native.end("stopped" if self.stopped else "failed" if error is not None else "ended")

    def expect(self, total_bytes: int) -> None:
        """So many bytes are to be moved from here on."""
        self._native.expect(total_bytes)

    def tell(self, **said: Any) -> None:
        """The status says this besides."""
        self._native.tell(json.dumps(said))

    def move(self, path: str, identity: str, layout: Layout, start: int, size: int) -> Moved:
        """Gives a file a layout; `start` and `size` say which of its bytes that is about. Where the layout has no
        origin, that of the file's stays.
        """
        text = native_text(layout, self.store.config)
        said = json.loads(self._native.apply(spelled(path), identity, text, start, size))
        if "error" in said:
            where = f"target {said['target']}: " if said.get("target") else ""
            self.stopped = self.stopped or said["error"] == "stopped"
            return Moved(
                int(said["moved_bytes"]),
                said["error"],
                f"{where}{' '.join(str(said['message']).split())}",
                said["class"],
            )
        return Moved(int(said["moved_bytes"]))

    def wait(self, seconds: float) -> bool:
        """Waits, watching the programs; False when somebody said stop."""
        self._is_waiting = True
        goes_on = bool(self._native.wait(seconds))
        self._is_waiting = False
        self.stopped = self.stopped or not goes_on
        return goes_on

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if number == FINISHING:
            self.finishing = True
        else:
            self.signal = number

    def _give_back_signals(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _look(self, done_bytes: int, total_bytes: int) -> bool:
        """Called by the native session ten times a second; False stops it."""
        if self.shown is not None:
            self.shown(done_bytes, total_bytes)
        return self.signal is None and not (self.finishing and self._is_waiting)


def identity_of(store: Store, path: str) -> str | None:
    """The id of the file at `path`; None when there is none in this store now."""
    return store.resolve(path) if Path(path_meant(path)).is_symlink() else None
