"""Runs programs of tests while every region of their files moves back and forth: `churn.py` beside them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rig import Store, stripewise, wait_until

CHURN = Path(__file__).with_name("churn.py")
#: How long the mover may need to end: longer than every deadline in it.
END_S = 60.0


def identity(file: Path) -> str:
    """The id of a managed file."""
    return os.readlink(file).rpartition("/")[2]


class Churner:
    """The process, and what it has said so far."""

    def __init__(self, store: Store, seed: int = 1, files: tuple[Path, ...] = ()) -> None:
        self.log = store.base / f"churn-{seed}.log"
        self.errors = self.log.with_suffix(".err")
        command = [sys.executable, CHURN, store.root, str(seed), *map(identity, files)]
        with self.log.open("wb") as out, self.errors.open("wb") as err:
            self.process = subprocess.Popen(
                [os.fspath(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )

    def lines(self) -> list[str]:
        """What it printed."""
        return self.log.read_text().splitlines()

    def published(self, file: Path | None = None) -> int:
        """How often it has given one file (or any) a home that differs from the one before."""
        name = None if file is None else identity(file)
        words = [line.split() for line in self.lines() if not line.startswith("{")]
        return sum(len(said) == 3 and name in (None, said[0]) and int(said[1]) > 0 for said in words)

    def refusals(self) -> int:
        """How often it was refused."""
        return sum(line.startswith("refused ") for line in self.lines())

    def wait_for(self, moves: int, file: Path | None = None, timeout_s: float = 120.0) -> None:
        """Until so many moves (of the file) have been published."""
        done = wait_until(lambda: self.published(file) >= moves or self.process.poll() is not None, timeout_s)
        assert done and self.process.poll() is None, f"{self.published(file)} moves: {self.errors.read_text()}"

    def kill(self) -> None:
        """At once, wherever it is."""
        self.process.kill()
        self.process.wait()

    def end(self) -> dict[str, Any]:
        """Let it finish its move; returns what it counted."""
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("the mover does not end") from None
        assert self.process.returncode == 0, f"{self.lines()[-1:]}\n{self.errors.read_text()[-3000:]}"
        return dict(json.loads(self.lines()[-1]))


def sound(store: Store) -> None:
    """fsck mends what kills left, then finds nothing: no half a move, no byte or object that is nobody's."""
    store.repair()
    # A file whose name went while it moved may be in the trash when its mover is killed.
    stripewise("store", "gc", store.root)
    found = json.loads(store.fsck("--json").out)
    assert not found["findings"], found["findings"]
    named = {str(file["id"]) for file in store.files()}
    objects = {path.name.partition(".")[0] for path in (store.base / "targets").glob("*/*.data*")}
    assert objects <= named, f"objects of no file: {objects - named}"


@contextmanager
def churning(store: Store, seed: int = 1, moves: int = 1, file: Path | None = None) -> Iterator[Churner]:
    """Regions move while the body runs, which counts only if so many moves (of the file) were published by then."""
    churner = Churner(store, seed)
    try:
        yield churner
        # The file may have lost its name meanwhile: then all moves count.
        seen = churner.published(file if file is not None and file.is_symlink() else None)
        said = churner.end()
        print(f"churn: {said}")
        assert seen >= moves, f"only {seen} moves were published during the run; {said}"
    finally:
        if churner.process.poll() is None:
            churner.kill()
