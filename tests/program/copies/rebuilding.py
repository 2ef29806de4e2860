"""Runs programs of tests while copies of their files are made anew all the time: `rebuild.py` beside them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rig import Store

REBUILD = Path(__file__).with_name("rebuild.py")
#: How long the builder may need to end.
END_S = 120


class Rebuilder:
    """The builder, and how often it has made copies."""

    def __init__(self, store: Store, seed: int) -> None:
        self.log = store.base / "rebuild.log"
        self.errors = self.log.with_suffix(".err")
        command = [sys.executable, REBUILD, store.root, store.data, str(seed)]
        with self.log.open("wb") as out, self.errors.open("wb") as err:
            self.process = subprocess.Popen([os.fspath(word) for word in command], stdout=out, stderr=err)

    def made(self) -> int:
        return self.log.read_text().count("made\n")

    def end(self) -> str:
        """Let it finish the copies at hand; returns what it counted."""
        self.process.terminate()
        assert self.process.wait(END_S) == 0, self.errors.read_text()[-3000:]
        return self.log.read_text().splitlines()[-1]

    def kill(self) -> None:
        """At once, where it has not ended."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@contextmanager
def rebuilding(store: Store, seed: int = 1) -> Iterator[Rebuilder]:
    """Copies of all files are made anew while the body runs."""
    builder = Rebuilder(store, seed)
    try:
        yield builder
        print(f"rebuild: {builder.end()}")
    finally:
        builder.kill()
