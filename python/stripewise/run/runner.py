"""Runs a program with the preloaded library: environment, signals, exit status.

The library gets everything through the environment, which mpiexec hands to local ranks. This process itself never
loads it (`preloaded.unload`), and the child's end becomes our own: status n, or 128 + signal.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from ..errors import StoreError
from ..preloaded import LIBRARY, OFF, without_library
from ..signals import heeded
from ..store import trust
from ..store.globs import manage_globs
from ..units import quoted
from .elf import read_program

FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
#: Those that ask for an end: whoever sent them wants no further run, even where the program ends well.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Of a program's output, so many of the last bytes of a line are kept to look for its result.
LINE_BYTES_MAX = 1 << 20
#: For the thread sanitizer, whose list of options is split at blanks and colons (`library_path` refuses them).
THREAD_SUPPRESSIONS = Path(__file__).resolve().parent / "tsan.supp"
#: A kernel filter against rings that a program sets up by itself. An outer run's stays: its filter does, too.
SECCOMP = "STRIPEWISE_SECCOMP"
OURS = (
    "STRIPEWISE_STORE", "STRIPEWISE_TRACE", "STRIPEWISE_MANAGE", "STRIPEWISE_PLAN", "STRIPEWISE_ENGINE",
    "STRIPEWISE_ENGINE_BOARD", OFF,
)  # fmt: skip


#: A shell's exit status for a command that is not found, and for one that cannot be started.
MISSING, UNSTARTABLE = 127, 126


class NotStartedError(StoreError):
    """A program cannot be started; `status` is what a shell would end with."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class EndedBadlyError(StoreError):
    """The program ended with a `status` that is not 0."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Ended:
    """How a program ended: a shell's exit status, the wall-clock seconds it took, and the signal that ended it.

    `heard` is the last of SIGINT, SIGTERM and SIGHUP that we got meanwhile, whatever the program made of it.
    """

    status: int
    seconds: float
    signal: int | None = None
    heard: int | None = None


def library_path() -> Path:
    """The preloaded library inside the package; StoreError when it was not built."""
    path = Path(__file__).resolve().parents[1] / "lib" / LIBRARY
    if not path.is_file():
        raise StoreError(f"{path}: the preloaded library is missing; build it with 'make build'")
    # ld.so splits at colons and spaces, and what it would load then is another file; other blanks split the shell lines
    # in which users and batch systems hand the variable on. It also replaces $ORIGIN and its kin.
    if any(char in ":$" or char.isspace() or not char.isprintable() for char in str(path)):
        raise StoreError(
            f"{path}: LD_PRELOAD cannot name a path with a colon, a dollar sign or a blank of any kind; "
            f"install it elsewhere"
        )
    return path


def environment(
    base: Mapping[str, str],
    store: Path | None,
    trace: Path | None,
    manage: Sequence[str],
    command: Sequence[str] = (),
    *,
    refuse_rings: bool = False,
    layers: str | None = None,
    plan: int = 0,
    engine: bool = False,
) -> dict[str, str]:
    """The child's environment. What is not asked for is removed, so that an outer `run` does not leak in.

    `layers` are those that are traced; None: as the user's own STRIPEWISE_TRACE_LAYERS says, or both. `plan` is the
    number of the kept plan that the run follows; 0: none. With `engine` MPI-IO is tuned.

    A `command` that is linked with the address sanitizer gets that library first: it insists. What the command
    starts in its turn (`mpiexec -n 4 ./instrumented`) is told not to insist. The thread sanitizer is told to believe
    the library, whose atomics it does not see.
    """
    made = {key: value for key, value in base.items() if key not in OURS}
    others = without_library(base.get("LD_PRELOAD", "")).split(":")
    sanitizer = [name for name in linked_sanitizers(command) if name not in others]
    made["LD_PRELOAD"] = ":".join(filter(None, [*sanitizer, str(library_path()), *others]))
    options = base.get("ASAN_OPTIONS", "")
    if "verify_asan_link_order" not in options:
        made["ASAN_OPTIONS"] = ":".join(filter(None, [options, "verify_asan_link_order=0"]))
    options = base.get("TSAN_OPTIONS", "")
    if "suppressions" not in options:
        made["TSAN_OPTIONS"] = ":".join(filter(None, [options, f'suppressions="{THREAD_SUPPRESSIONS}"']))
    # UCX patches mmap in memory, past any library; it needs that only for transports between machines.
    made.setdefault("UCX_MEM_MMAP_HOOK_MODE", "none")
    trusted = trust.environment_value(base)
    if trusted:
        made[trust.VARIABLE] = trusted
    if store is not None:
        made["STRIPEWISE_STORE"] = str(store)
    if plan:
        made["STRIPEWISE_PLAN"] = f"{plan:x}"
    if engine:
        made["STRIPEWISE_ENGINE"] = "1"
    if refuse_rings:
        made[SECCOMP] = "1"
    if trace is not None:
        made["STRIPEWISE_TRACE"] = str(trace)
    if layers is not None:
        made["STRIPEWISE_TRACE_LAYERS"] = layers
    if manage:
        globs = manage_globs(manage)
        for glob in globs:
            if ":" in glob:
                raise StoreError(f"--manage: '{glob}' holds a colon, which separates globs; use ? in its place")
        made["STRIPEWISE_MANAGE"] = ":".join(globs)
    return made


def linked_sanitizers(command: Sequence[str]) -> list[str]:
    """Names of the address sanitizer's libraries that the command's program is linked with."""
    program = shutil.which(command[0]) if command else None
    try:
        needed = read_program(Path(program)).needed if program else ()
    except (OSError, ValueError):
        return []
    return [name for name in needed if name.startswith("libasan.so")]


def run(command: Sequence[str], env: Mapping[str, str], line: Callable[[bytes], None] | None = None) -> Ended:
    """Runs `command` to its end, forwarding signals.

    With `line`, its standard output goes there line by line; else it inherits ours. Raises NotStartedError when it
    cannot be started.
    """
    started = time.monotonic()
    try:
        child = subprocess.Popen(command, env=dict(env), stdout=subprocess.PIPE if line else None)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        status = MISSING if isinstance(error, FileNotFoundError) else UNSTARTABLE
        raise NotStartedError(
            status, f"{command[0] or quoted('')}: cannot be started ({reason}); check the command after --"
        ) from error
    with _Forwarding(child) as forwarding:
        if line and child.stdout:
            for text in iter(lambda: child.stdout.readline(LINE_BYTES_MAX) if child.stdout else b"", b""):
                line(text)
            child.stdout.close()
        code = child.wait()
    seconds = time.monotonic() - started
    status, ended_by = (128 - code, -code) if code < 0 else (code, None)
    return Ended(status, seconds, ended_by, forwarding.heard)


class _Forwarding:
    """While it lasts, signals sent to us go to the child."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.child = child
        self.before: dict[int, object] = {}
        self.heard: int | None = None

    def __enter__(self) -> _Forwarding:
        if threading.current_thread() is threading.main_thread():
            for number in heeded(*FORWARDED):
                self.before[number] = signal.signal(number, self._forward)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            # None: not Python's, but of a library that is preloaded into us; it is lost.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # type: ignore[arg-type]

    def _forward(self, number: int, _: FrameType | None) -> None:
        if number in ENDING:
            self.heard = number
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
