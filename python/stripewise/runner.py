"""Runs a program with the preloaded library: environment, signals, exit status.

The library gets everything through the environment, which mpiexec hands to local ranks. This process itself never
loads it (`unload` starts it anew without), and the child's end becomes our own: status n, or 128 + signal.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from .errors import StoreError
from .globs import manage_globs

LIBRARY = "libstripewise.so"
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
#: Of a program's output, so many of the last bytes of a line are kept to look for its result.
LINE_BYTES_MAX = 1 << 20
OURS = ("STRIPEWISE_STORE", "STRIPEWISE_TRACE", "STRIPEWISE_MANAGE")


@dataclass(frozen=True)
class Ended:
    """How a program ended: a shell's exit status, and the wall-clock seconds it took."""

    status: int
    seconds: float


def library_path() -> Path:
    """The preloaded library inside the package; StoreError when it was not built."""
    path = Path(__file__).resolve().parent / "lib" / LIBRARY
    if not path.is_file():
        raise StoreError(f"{path}: the preloaded library is missing; build it with 'make build'")
    if any(char in str(path) for char in ": \t\n"):
        raise StoreError(f"{path}: LD_PRELOAD cannot name a path with a colon or a space; install it elsewhere")
    return path


def without_library(value: str) -> str:
    """LD_PRELOAD's value without our library."""
    return ":".join(part for part in value.replace(" ", ":").split(":") if part and not part.endswith("/" + LIBRARY))


def unload() -> None:
    """Starts this program anew without the library when it was preloaded into it (a `run` inside a `run`)."""
    value = os.environ.get("LD_PRELOAD", "")
    rest = without_library(value)
    if LIBRARY in value and rest != value:
        environment = dict(os.environ, LD_PRELOAD=rest)
        if not rest:
            del environment["LD_PRELOAD"]
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def environment(
    base: Mapping[str, str], store: Path | None, trace: Path | None, manage: Sequence[str]
) -> dict[str, str]:
    """The child's environment. What is not asked for is removed, so that an outer `run` does not leak in."""
    made = {key: value for key, value in base.items() if key not in OURS}
    rest = without_library(base.get("LD_PRELOAD", ""))
    made["LD_PRELOAD"] = str(library_path()) + (":" + rest if rest else "")
    if store is not None:
        made["STRIPEWISE_STORE"] = str(store)
    if trace is not None:
        made["STRIPEWISE_TRACE"] = str(trace)
    if manage:
        globs = manage_globs(manage)
        for glob in globs:
            if ":" in glob:
                raise StoreError(f"--manage: '{glob}' holds a colon, which separates globs; use ? in its place")
        made["STRIPEWISE_MANAGE"] = ":".join(globs)
    return made


def run(command: Sequence[str], env: Mapping[str, str], line: Callable[[bytes], None] | None = None) -> Ended:
    """Runs `command` to its end, forwarding signals.

    With `line`, its standard output goes there line by line; else it inherits ours. Raises StoreError when it cannot
    be started.
    """
    started = time.monotonic()
    try:
        child = subprocess.Popen(command, env=dict(env), stdout=subprocess.PIPE if line else None)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise StoreError(f"{command[0]}: cannot be started ({reason}); check the command after --") from error
    with _Forwarding(child):
        if line and child.stdout:
            for text in iter(lambda: child.stdout.readline(LINE_BYTES_MAX) if child.stdout else b"", b""):
                line(text)
            child.stdout.close()
        code = child.wait()
    return Ended(128 - code if code < 0 else code, time.monotonic() - started)


class _Forwarding:
    """While it lasts, signals sent to us go to the child."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.child = child
        self.before: dict[int, object] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in FORWARDED:
                self.before[number] = signal.signal(number, self._forward)

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _forward(self, number: int, _: FrameType | None) -> None:
        # A key typed at the terminal reaches the whole foreground group, the child included.
        if number in (signal.SIGINT, signal.SIGQUIT) and _in_foreground():
            return
        if self.child.poll() is None:
            self.child.send_signal(number)


def _in_foreground() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
