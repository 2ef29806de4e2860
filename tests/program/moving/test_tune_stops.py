"""Ctrl-C ends a `tune` whatever its program makes of it, and marks the trace of a `run`."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest
from rig import STRIPEWISE, Maker, Store, dirs, stripewise

#: Makes a file, waits, and ends with a status of its own where it is asked to stop, as codes that checkpoint do.
CATCHER = """
import os, signal, sys, time
def end(*_):
    os._exit(int(sys.argv[2]))
signal.signal(signal.SIGTERM, end)
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
os.pwrite(fd, bytes(1 << 16), 0)
try:
    open(sys.argv[3], "a").write("x")
    time.sleep(60)
except KeyboardInterrupt:
    os._exit(int(sys.argv[2]))
"""


def begun(store: Store, words: list[str], file: Path, status: int, **how: object) -> subprocess.Popen[str]:
    """A stripewise verb whose program waits."""
    runs = store.base / "runs"
    command = [STRIPEWISE, *words, "--store", str(store.root), "--"]
    command += ["python3", "-c", CATCHER, str(file), str(status), str(runs)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)  # type: ignore[call-overload]
    until = time.monotonic() + 60
    while not (runs.exists() and runs.stat().st_size) and time.monotonic() < until:
        time.sleep(0.05)
    assert isinstance(child, subprocess.Popen)
    return child


@pytest.mark.parametrize("status", [0, 11])
@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_a_tune_ends_where_its_program_catches_the_signal(
    make_store: Maker, status: int, number: int, word: str
) -> None:
    store = make_store(dirs(2))
    child = begun(store, ["tune"], store.data / "f", status)
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 128 + number and err.splitlines()[-1] == f"stripewise: {word}", out + err
    assert (
        "run 2" not in err and f"run 1 made, and left, {store.data / 'f'}" in err and "stripewise run first" not in err
    )
    assert json.loads(stripewise("store", "plan", "ls", store.root, "--json").out) == []


def test_ctrl_c_at_the_terminal_ends_a_tune_though_its_program_ends_well(make_store: Maker) -> None:
    store = make_store(dirs(2))
    leader, follower = pty.openpty()
    child = begun(
        store, ["tune"], store.data / "f", 0, stdin=follower, start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
    )  # fmt: skip
    os.write(leader, b"\x03")
    out, err = child.communicate(timeout=60)
    os.close(leader)
    os.close(follower)
    assert child.returncode == 130 and "stripewise: interrupted" in err and "run 2" not in err, out + err


def test_the_trace_of_an_interrupted_run_that_ended_well_says_so(make_store: Maker) -> None:
    store = make_store(dirs(2))
    trace, collected = store.base / "trace", store.base / "collected"
    child = begun(store, ["run", "--trace", str(trace)], store.data / "f", 0)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 0 and "the run was interrupted by SIGINT (exit status 0)" in err, err
    stripewise("collect", trace, "-o", collected)
    assert json.loads((collected / "meta.json").read_text())["interrupted_by"] == signal.SIGINT
    shown = stripewise("show", collected)
    assert "the run was interrupted by SIGINT: it ended with exit status 0" in shown.out + shown.err, shown.report
