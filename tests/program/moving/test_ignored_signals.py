"""Signals that whoever started us had ignored, as nohup has SIGHUP ignored, end no verb that moves files."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest
from rig import STRIPEWISE, Maker, dirs, stripewise, wait_until

from stripewise.errors import StoreError
from stripewise.moving.mover_status import read_status
from stripewise.store.placed import placed_at

#: Two seconds at 1 MiB a second.
SIZE = 2 << 20


def on(file: Path) -> set[str]:
    return {name for name, count in placed_at(file)[1].target_bytes.items() if count}


def is_mover(root: Path, pid: int) -> bool:
    with contextlib.suppress(StoreError):
        return bool(read_status(root)["pid"] == pid)
    return False


@pytest.mark.parametrize("ignored", [True, False])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_move_hears_what_was_not_ignored_before_it(make_store: Maker, ignored: bool, number: signal.Signals) -> None:
    store = make_store(dirs(2))
    file, content = store.data / "f", os.urandom(SIZE)
    (store.plain / "f").write_bytes(content)
    store.run("cp", store.plain / "f", file)
    stripewise("store", "set-layout", file, "--targets", "t0")
    shell = f"trap '{'' if ignored else '-'}' INT HUP; exec \"$@\""
    words = [STRIPEWISE, "store", "set-layout", file, "--targets", "t1", "--bandwidth", "1MiB"]
    child = subprocess.Popen(["sh", "-c", shell, "sh", *map(str, words)], stdout=subprocess.PIPE, text=True)
    assert wait_until(lambda: is_mover(store.root, child.pid))
    child.send_signal(number)
    child.communicate(timeout=60)
    assert child.returncode == (0 if ignored else 128 + number)
    assert (on(file) == {"t1"}) == ignored
    assert store.run("cmp", file, store.plain / "f").code == 0
    store.fsck()
