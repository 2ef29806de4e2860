"""The mover as Python steers it: one throttle and one lock for many moves, signals and commands heard between chunks.

It tells the status how it gets on, and turns what kept a move from happening into a sentence; nothing that happens to
one file is fatal to the others.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from .. import errors, native
from ..layout import Region, to_indexes
from ..store import Store
from .mover_status import MoverStatus

#: Signals that stop a mover between two chunks, the file whole.
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Limits:
    """What a mover may take: bytes per second (0: all), and how much slower programs may become (0: no matter)."""

    bandwidth_bytes_per_s: int = 0
    max_slowdown: float = 0.0


@dataclass(frozen=True)
class Moved:
    """How a move ended: bytes moved, or the kind of error, its class and a sentence."""

    moved_bytes: int
    error: str = ""
    message: str = ""
    error_class: str = ""

    @property
    def was_stopped(self) -> bool:
        """Whether somebody called it off."""
        return self.error == "stopped"

    def check(self) -> None:
        """Raises the StoreError that kept the file where it was, if one did."""
        if self.error:
            raise getattr(errors, self.error_class)(self.message)


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
        self._head = head
        self.status: MoverStatus
        self.limits = limits
        self.shown = shown
        self.copied_bytes = 0
        self.done_bytes = 0
        self.total_bytes = 0
        self.signal: int | None = None
        self.stopped = False
        self._paused = False
        self._copied_before = 0
        self._rate = Rate()
        self._native: Any = None
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> MoverSession:
        options = json.dumps(
            {"bandwidth_bytes_per_s": self.limits.bandwidth_bytes_per_s, "max_slowdown": self.limits.max_slowdown}
        )
        # Its lock first: another mover's status is not ours to replace.
        self._native = native.call("Mover", str(self.store.root), options, self._watch)
        self.status = MoverStatus(self.store.root, self._head)
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                self._handlers[number] = signal.signal(number, self._on_signal)
        self.status.tell(force=True, state="waiting")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._native.close()
        state = "stopped" if self.stopped else "failed" if error is not None else "ended"
        self.status.tell(force=True, state=state, moving=None, seconds_left=0.0)

    def expect(self, total_bytes: int) -> None:
        """So many bytes are to be moved from here on."""
        self.done_bytes = 0
        self.total_bytes = total_bytes

    def move(self, path: str, identity: str, regions: Sequence[Region], start: int, size: int) -> Moved:
        """Gives a file a layout; `start` and `size` say which of its bytes that is about."""
        self.status.tell(state="moving", moving={"file": path, "id": identity, "start": start, "bytes": size})
        text = json.dumps(to_indexes(regions, self.store.config.cluster))
        self._copied_before = self.copied_bytes
        said = json.loads(self._native.apply(identity, text))
        if "error" in said:
            where = f"target {said['target']}: " if said.get("target") else ""
            self.stopped = self.stopped or said["error"] == "stopped"
            return Moved(0, said["error"], f"{where}{' '.join(str(said['message']).split())}", said["class"])
        self.done_bytes += size
        self._rate.add(int(said["moved_bytes"]), float(said["seconds"]))
        return Moved(int(said["moved_bytes"]))

    def wait(self, seconds: float) -> bool:
        """Waits, watching the programs; False when somebody said stop."""
        self.status.tell(state="waiting", moving=None)
        goes_on = bool(self._native.idle(seconds))
        self.stopped = self.stopped or not goes_on
        return goes_on

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self.signal = number

    def _watch(self, text: str) -> str:
        """Called by the native mover ten times a second."""
        seen = json.loads(text)
        self.copied_bytes = int(seen["copied_bytes"])
        command = self.status.command()
        if command is not None:
            self._paused = command == "pause"
        if self.signal is not None or command == "stop":
            self.stopped = True
        under_way = min(self.copied_bytes - self._copied_before, max(self.total_bytes - self.done_bytes, 0))
        done = self.done_bytes + (under_way if self.status.state.get("moving") else 0)
        was_paused = self.status.state.get("state") == "paused"
        state = "paused" if self._paused else ("moving" if self.status.state.get("moving") else "waiting")
        self.status.tell(
            force=was_paused != self._paused,
            state=state,
            copied_bytes=self.copied_bytes,
            done_bytes=done,
            total_bytes=self.total_bytes,
            seconds_left=self._rate.seconds(self.total_bytes - done),
            duty=round(float(seen["duty"]), 3),
            baseline_s=seen["baseline_ns"] / 1e9,
            latency_s=seen["latency_ns"] / 1e9,
            frozen_max_s=seen["frozen_ns_max"] / 1e9,
            aborted_freezes=int(seen["aborted"]),
            updated_unix=time.time(),
        )
        if self.shown is not None:
            self.shown(done, self.total_bytes)
        return "stop" if self.stopped else "pause" if self._paused else "go"


class Rate:
    """Bytes per second of what was moved so far, the last gigabyte or so counting most."""

    def __init__(self) -> None:
        self.bytes = 0.0
        self.seconds_spent = 0.0

    def add(self, count: int, seconds: float) -> None:
        """One more move."""
        if self.bytes > 1e9:
            self.bytes, self.seconds_spent = self.bytes / 2, self.seconds_spent / 2
        self.bytes += count
        self.seconds_spent += seconds

    def seconds(self, count: int) -> float | None:
        """How long `count` bytes will take; None while nothing is known."""
        return count * self.seconds_spent / self.bytes if self.bytes > 0 else None


def identity_of(store: Store, path: str) -> str | None:
    """The id of the file at `path`; None when there is none in this store now."""
    return store.resolve(path) if Path(path).is_symlink() else None
