"""Runs the child that reads a log, and takes its messages: whatever becomes of it, there is at most one error."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import WorkloadError
from .library import package_directory

#: What the child may take: address space, and processor time for any log and for each MiB of it.
MEMORY_BYTES = 4 << 30
CPU_S = 60
CPU_S_PER_MIB = 10
#: The child has said nothing for so long: it hangs.
SILENCE_S = 600
_JSON_BYTES_MAX = 64 << 20
_CURE = "its writer was killed or the file was cut; give a whole log"
_NONSENSE = "libdarshan-util's process made no sense of it"
_PIPE_BYTES = 1 << 20


class _EndedError(Exception):
    """The child's messages ended in the middle of one, or make no sense."""


def messages(path: Path) -> Iterator[tuple[dict[str, Any], bytearray]]:
    """What the child says of the log, message by message, the last one of kind `end`.

    Raises WorkloadError naming the log when it cannot be read, and where the package darshan is missing.
    """
    if package_directory() is None:
        raise WorkloadError(
            f"{path}: a Darshan log needs the package darshan; install it with: pip install 'stripewise[darshan]'"
        )
    with tempfile.TemporaryFile() as said:
        child = start(path, said)
        try:
            yield from _messages(child.output)
        except _EndedError as error:
            child.kill()
            raise WorkloadError(f"{path}: {_why(child.wait(), said) or error}; {_CURE}") from error
        finally:
            child.kill()
            child.wait()


class Child:
    """A process that reads a log; `output` is the descriptor of its messages."""

    def __init__(self, command: list[str], environment: dict[str, str], said: BinaryIO) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, env=environment, bufsize=0
        )
        assert self._process.stdout is not None
        self.output = self._process.stdout.fileno()
        with contextlib.suppress(OSError):  # no more than a user may have
            fcntl.fcntl(self.output, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int:
        """Its exit status, negative for a signal."""
        return self._process.wait()


def limits(path: Path) -> tuple[int, int]:
    """(bytes of memory, seconds of processor time) for a log."""
    return MEMORY_BYTES, CPU_S + CPU_S_PER_MIB * (path.stat().st_size >> 20)


def start(path: Path, said: BinaryIO) -> Child:
    """The child for a log; what it says to stderr goes into `said`."""
    command = [sys.executable, "-m", f"{__package__}.child", str(path.absolute()), *map(str, limits(path))]
    roots = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    return Child(command, {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, roots))}, said)


def _messages(stream: int) -> Iterator[tuple[dict[str, Any], bytearray]]:
    while True:
        (length,) = struct.unpack("<I", _read(stream, 4))
        if length > _JSON_BYTES_MAX:
            raise _EndedError(_NONSENSE)
        try:
            message = json.loads(_read(stream, length))
            kind, count = str(message["kind"]), int(message["bytes"])
        except (ValueError, KeyError, TypeError) as error:
            raise _EndedError(_NONSENSE) from error
        if not 0 <= count <= MEMORY_BYTES:
            raise _EndedError(_NONSENSE)
        yield message, _read(stream, count)
        if kind in ("end", "refused"):
            return


def _read(stream: int, count: int) -> bytearray:
    data = bytearray(count)
    rest = memoryview(data)
    while rest:
        ready, _, _ = select.select([stream], [], [], SILENCE_S)
        if not ready:
            raise _EndedError(f"libdarshan-util has said nothing for {SILENCE_S} s")
        got = os.readv(stream, [rest])
        if not got:
            raise _EndedError("it ends in the middle")
        rest = rest[got:]
    return data


def _why(status: int, said: BinaryIO) -> str:
    """Why the child ended: a signal, or the last line that it or the library said."""
    if status < 0:
        name = f"signal {-status}"
        with contextlib.suppress(ValueError):
            name = signal.Signals(-status).name
        if -status == signal.SIGXCPU:
            return "libdarshan-util takes longer over it than is allowed"
        if -status != signal.SIGKILL:
            return f"libdarshan-util crashed on it ({name})"
        return ""
    said.seek(0)
    lines = said.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
    if lines and "MemoryError" in lines[-1]:
        return f"it needs more than {MEMORY_BYTES >> 30} GiB of memory"
    return lines[-1] if lines else ""
