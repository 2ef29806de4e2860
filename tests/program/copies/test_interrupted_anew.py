"""Copies that were to be made anew, and were not: what is said of those that stood."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from rig import STRIPEWISE, Maker, dirs, stripewise, wait_until
from test_replica_verbs import DATA, build, states, traced


def test_an_interrupted_replacement_says_that_the_earlier_copies_are_gone(make_store: Maker) -> None:
    store = make_store(dirs(4))
    path: Path = store.plain / "array"
    path.write_bytes(DATA)
    trace = traced(store, path)
    build(store, trace)
    assert states(store) == {"array": "in use"}
    path.write_bytes(DATA[::-1])
    words = ["replicate", trace, "--store", store.root, "--manager", "h-pdla", "--file", path, "--bandwidth", "100KiB"]
    child = subprocess.Popen([STRIPEWISE, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: states(store) == {"": "unfinished"})
    child.send_signal(signal.SIGINT)
    said = " ".join(child.communicate(timeout=30)[1].split())
    assert f"the earlier copies of 1 file(s) are gone ({path})" in said and "no copies were made" in said, said
    assert states(store) == {} and path.read_bytes() == DATA[::-1]
    build(store, trace)
    child = subprocess.Popen([STRIPEWISE, *words[:-2], "--bandwidth", "100KiB"], stderr=subprocess.PIPE, text=True)
    said = child.communicate(timeout=60)[1]
    assert child.returncode == 0 and "gone" not in said, said
    stripewise("store", "gc", store.root)
