"""A mover beside a program: started before it, on the same clock, and stopped, files whole, soon after it has ended.

A short program would end each mover before it has moved anything, and pay for the copy in every run. So what is due
when the program ends is finished, for a bounded time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from ..errors import HungUp, StoreError, Terminated
from ..preloaded import without_library
from ..signals import heeded
from .mover_session import FINISHING
from .mover_status import read_status
from .plan_follower import AWAITS

#: How long a mover may take to get hold of the store, and to stop between two chunks.
START_S = 30.0
STOP_S = 60.0
_LOOK_S = 0.02
#: How long a mover goes on after its program's end, at most, and after how much of that the user is told.
FINISH_S = 10.0
_TOLD_S = 0.5
#: What ends that.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: What a verb's lines begin with.
PREFIX = "stripewise: "


class MoverBeside:
    """The mover of one run; nothing where there is none."""

    def __init__(self, say: Callable[[str], None], process: subprocess.Popen[bytes] | None = None) -> None:
        self._say = say
        self._process = process

    def finish(self) -> None:
        """Waits until all that is due has moved, no longer than `FINISH_S`; Ctrl-C ends the wait, not the caller.

        Raises Terminated or HungUp where SIGTERM or SIGHUP ended it.
        """
        process = self._process
        if process is None or process.poll() is not None:
            return
        with _heard() as heard:
            process.send_signal(FINISHING)
            if not _has_ended(process, _TOLD_S, heard):
                self._say(
                    f"stripewise: the program has ended; files move on for up to {FINISH_S:.0f} s, or until Ctrl-C"
                )
                _has_ended(process, FINISH_S - _TOLD_S, heard)
        if signal.SIGTERM in heard:
            raise Terminated
        if signal.SIGHUP in heard:
            raise HungUp


@contextlib.contextmanager
def _heard() -> Iterator[list[int]]:
    """The signals that came while it lasts, none as an exception, which may come in the middle of `Popen.wait` and keep
    its lock: then nothing could wait for the mover any more.
    """
    heard: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {each: signal.signal(each, lambda number, _: heard.append(number)) for each in heeded(*ENDING)}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _has_ended(process: subprocess.Popen[bytes], seconds: float, heard: Sequence[int]) -> bool:
    """Whether the process has ended, or a signal was heard, within so many seconds."""
    end = time.monotonic() + seconds
    while process.poll() is None and not heard:
        if time.monotonic() >= end:
            return False
        time.sleep(_LOOK_S)
    return True


@contextlib.contextmanager
def mover_process(store: Path, plan: Path, options: Sequence[str], say: Callable[[str], None]) -> Iterator[MoverBeside]:
    """While it lasts, a mover follows `plan` on the store; `say` gets what it said in the end.

    Raises StoreError with its sentence when it does not get hold of the store.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("STRIPEWISE_")}
    environment["LD_PRELOAD"] = without_library(environment.get("LD_PRELOAD", ""))
    command = [sys.executable, "-m", "stripewise", "migrate", str(plan), "--store", str(store), "--start-at", "0"]
    command.append("--missing-ok")
    with tempfile.TemporaryFile() as out:
        # A group of its own: a key typed at the terminal is the program's; we stop the mover ourselves.
        process = subprocess.Popen(
            [*command, *options], env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL, process_group=0
        )
        try:
            if not _is_ready(store, process):
                process.kill()
                said = _said(out) or [f"{plan}: the mover did not start; see 'migrate'"]
                raise StoreError(said[-1].removeprefix(PREFIX))
            yield MoverBeside(say, process)
        finally:
            _stop(process)
            for line in _said(out) if process.returncode != 1 or _is_ours(store, process.pid) else []:
                # What it waited for is over, and no option of a run's.
                if not line.startswith(f"{PREFIX}{AWAITS} "):
                    say(f"mover: {line.removeprefix(PREFIX)}")


def _is_ready(store: Path, process: subprocess.Popen[bytes]) -> bool:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if _is_ours(store, process.pid):
            return True
        if process.poll() is not None:
            return process.returncode == 0
        time.sleep(_LOOK_S)
    return False


def _is_ours(store: Path, pid: int) -> bool:
    with contextlib.suppress(StoreError):
        return bool(read_status(store)["pid"] == pid)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        # Its files are whole then, too: the next mover finishes or undoes its last move.
        process.kill()
        process.wait()


def _said(out: IO[bytes]) -> list[str]:
    out.seek(0)
    return [line for line in out.read().decode(errors="replace").splitlines() if line.strip()]
