"""Starts the `stripewise` command quickly: a process that has loaded its modules forks itself for each call.

Nearly all of a short command's time goes into starting Python, into typer, pydantic, numpy and pyarrow, and into its
own modules. Here all are loaded once for a worker of the tests, none of which looks at the process as it is loaded;
arguments, environment, directory and descriptors are new each time, and it ends as a process does. Tests of how the
command starts start it themselves. `zygote.py SOCKET` serves; `Zygote` is the tests' side.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence

#: What has to be as when the process was started, for it was read then.
_AT_START = ("LANG", "LANGUAGE", "OPENBLAS_NUM_THREADS", "TZ")
_PREFIXES = ("LC_", "LD_", "PYTHON", "MALLOC_", "OMP_")
_LENGTH = struct.Struct("!I")


def _fixed(env: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in env.items() if key in _AT_START or key.startswith(_PREFIXES)}


class Zygote:
    """The process of one worker, started at its first use."""

    def __init__(self) -> None:
        self._place: str | None = None
        self._started_with = _fixed(os.environ)

    def serves(self, env: Mapping[str, str]) -> bool:
        """Whether a command with this environment may be forked: another locale or a preloaded library needs a new
        Python.
        """
        return _fixed(env) == _fixed(os.environ) == self._started_with and "LD_PRELOAD" not in env

    def begin(self, command: Sequence[str], env: Mapping[str, str], cwd: str, fds: Sequence[int]) -> Started:
        """Starts the command with these descriptors as its 0, 1 and 2."""
        call = socket.socket(socket.AF_UNIX)
        call.connect(self._socket())
        said = json.dumps([list(command), dict(env), cwd]).encode()
        socket.send_fds(call, [_LENGTH.pack(len(said))], list(fds))
        call.sendall(said)
        return Started(call, int(_line(call)))

    def _socket(self) -> str:
        if self._place is None:
            directory = tempfile.mkdtemp(prefix="stripewise-zygote-")
            self._place = f"{directory}/socket"
            process = subprocess.Popen(
                [sys.executable, __file__, self._place],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            atexit.register(_end, process, self._place)
            while not os.path.exists(self._place):
                assert process.poll() is None, "the zygote ended"
                time.sleep(0.005)
        return self._place


def _end(process: subprocess.Popen[bytes], place: str) -> None:
    process.kill()
    process.wait()
    with contextlib.suppress(OSError):
        os.unlink(place)
        os.rmdir(os.path.dirname(place))


class Started:
    """A command that was started; it leads a session of its own."""

    def __init__(self, call: socket.socket, pid: int) -> None:
        self._call, self.pid = call, pid

    def wait(self) -> int:
        """Its exit code, negative for a signal, as subprocess has it."""
        with self._call:
            return os.waitstatus_to_exitcode(int(_line(self._call)))


def _line(call: socket.socket) -> bytes:
    said = b""
    while not said.endswith(b"\n"):
        # No further than the line goes: of a command that ended at once the next one may be there already.
        more = call.recv(1)
        assert more, "the zygote ended"
        said += more
    return said


def _serve(place: str) -> None:
    """Accepts calls for ever; returns in the process that is to be a command."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{place}.new")
    listening.listen(64)
    os.rename(f"{place}.new", place)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    parent = os.getppid()
    listening.settimeout(10)
    while os.getppid() == parent:
        try:
            call, _ = listening.accept()
        except TimeoutError:
            continue
        if os.fork():
            call.close()
            continue
        # Who watches over this one call.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listening.close()
        call.settimeout(None)
        if _watch(call):
            return


def _watch(call: socket.socket) -> bool:
    head, fds, _, _ = socket.recv_fds(call, _LENGTH.size, 3)
    (length,) = _LENGTH.unpack(head)
    said = b""
    while len(said) < length:
        said += call.recv(length - len(said))
    command, env, cwd = json.loads(said)
    if pid := os.fork():
        for fd in fds:
            os.close(fd)
        call.sendall(b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(OSError):
            call.sendall(b"%d\n" % status)
        os._exit(0)
    call.close()
    os.setsid()
    for to, fd in enumerate(fds):
        os.dup2(fd, to)
        os.close(fd)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = list(command)
    sys.orig_argv = [sys.executable, *command]
    sys.path[0] = os.path.dirname(command[0])
    return True


def _load() -> None:
    """Other people's modules that verbs use, and all of the command's own."""
    import ctypes
    import importlib
    import pkgutil
    import sqlite3
    import tomllib

    import numpy.random
    import pyarrow.compute
    import pyarrow.parquet
    import tomlkit
    import typer.testing
    from typer import _adapters

    assert ctypes and sqlite3 and tomllib and numpy.random and pyarrow.compute and pyarrow.parquet and tomlkit
    assert typer.testing and _adapters

    import stripewise

    for module in pkgutil.walk_packages(stripewise.__path__, "stripewise."):
        importlib.import_module(module.name)
    # What is there now is nobody's garbage: a child that looked at it would copy it.
    gc.freeze()


def _end_quickly(code: object) -> None:
    """Ends as Python does once a program has, but for taking apart what was loaded, which takes four times as long as a
    short command. Returns where it cannot end so: Python ends it then.
    """
    if not isinstance(code, int | None):
        return
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError):
        return
    os._exit((code or 0) & 0xFF)


if __name__ == "__main__":
    _load()
    _serve(sys.argv[1])
    from stripewise.cli.main import main

    try:
        main()
    except SystemExit as ended:
        _end_quickly(ended.code)
        raise
