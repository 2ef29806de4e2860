"""A mover stopped after any of its system calls delays nobody; killed there or let go on, it loses nothing.

`tests/native/stepper` stops it, at steps that are drawn over the whole of a move, also in a freeze and in the last step.
Three programs use the file: two write with acknowledgements, one appends, allocates, cuts, reads, opens and syncs. All
of them must go on while the mover stands. Few steps here, thousands in `make soak`.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from churning import identity
from conftest import Maker
from rig import NATIVE, SOAK, Store, wait_until

ACKED, STEPPER, TOUCHER = NATIVE / "acked", NATIVE / "stepper", NATIVE / "toucher"
MOVER = Path(__file__).with_name("move_once.py")
STEPS = 3000 if SOAK else 60
#: Rounds after which everything is ended, recovered and verified.
ROUNDS_PER_CHECK = 20
#: A slot of `acked` is 20,000 bytes.
SLOTS, SLOT_BYTES = 60, 20_000
#: What a program must get done while the mover stands, in its own lines.
GOES_ON = 6
#: No deadline of the protocol is longer than 2.5 s; who does nothing for so long is stuck.
STUCK_S = 20.0


class Users:
    """The programs on one file, and what each has told."""

    def __init__(self, store: Store, file: Path, seed: int) -> None:
        self.store, self.file = store, file
        self.outputs = [store.base / f"user{number}.out" for number in range(3)]
        commands: list[list[str | Path]] = [
            [ACKED, "write", file, str(seed + writer), str(SLOTS), "written", str(writer), "2"] for writer in range(2)
        ]
        commands.append([TOUCHER, file, str(SLOTS * SLOT_BYTES)])
        self.processes = []
        for command, output in zip(commands, self.outputs, strict=True):
            with output.open("wb") as sink:
                self.processes.append(
                    subprocess.Popen(
                        [os.fspath(word) for word in command],
                        env=store.environment(),
                        stdin=subprocess.DEVNULL,
                        stdout=sink,
                        stderr=subprocess.PIPE,
                    )
                )

    def told(self) -> list[int]:
        """Bytes of output of each: they grow as it goes on."""
        return [output.stat().st_size for output in self.outputs]

    def lines(self) -> list[int]:
        """Whole lines of each."""
        return [output.read_bytes().count(b"\n") for output in self.outputs]

    def go_on(self, where: str) -> None:
        """Each gets something done from now on."""
        before = self.lines()
        for number, process in enumerate(self.processes):
            done = wait_until(
                lambda number=number, process=process: self.lines()[number] >= before[number] + GOES_ON
                or process.poll() is not None,
                STUCK_S,
            )
            assert process.poll() is None, f"user {number} ended, {where}: {process.stderr.read()!r}"  # type: ignore[union-attr]
            assert done, f"user {number} is stuck, {where}"

    def kill(self) -> None:
        """All at once, wherever they are."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.communicate()

    def verify(self) -> None:
        """What the writers told is there, and nothing else."""
        # A kill may cut the last line short; what is not a whole line was not promised.
        texts = [output.read_text() for output in self.outputs[:2]]
        acks = "".join(text[: text.rfind("\n") + 1] for text in texts)
        said = self.store.program(ACKED, "check", self.file, stdin=acks, code=None)
        assert said.code == 0, said.report


class Mover:
    """One move of a file, stopped at a step."""

    def __init__(self, store: Store, file: Path, step: int, seed: int, phase: str = "any") -> None:
        ctl = store.root / "files" / identity(file) / "ctl"
        command = [STEPPER, phase, str(step), ctl, sys.executable, MOVER, store.root, identity(file), str(seed)]
        self.process = subprocess.Popen(
            [os.fspath(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        # Between them are lines of the mover itself.
        self.said = next((words for line in self.process.stdout if (words := line.split())[0] in ("stopped", "steps")), [])

    @property
    def stands(self) -> bool:
        """Whether it has come so far."""
        return self.said[:1] == ["stopped"]

    def end(self, answer: str) -> None:
        """Let it go on, or kill it."""
        _, err = self.process.communicate(answer + "\n", timeout=120)
        if answer == "go":
            assert self.process.returncode == 0, err
        else:
            assert self.process.returncode == 137, err


@contextmanager
def users(store: Store, file: Path, seed: int) -> Iterator[Users]:
    """They run while the body does; at the end they are killed, and what they told is verified, after recovery too."""
    made = Users(store, file, seed)
    try:
        made.go_on("before any move")
        yield made
    finally:
        made.kill()
    made.verify()
    store.fsck("--repair", code=None)
    store.fsck()
    made.verify()
    no_slice_leaks(store)


def no_slice_leaks(store: Store) -> None:
    """No object is left that no layout names."""
    named = {str(file["id"]) for file in store.files()}
    objects = [path for path in (store.base / "targets").glob("*/*.data")]
    assert {path.name.partition(".")[0] for path in objects} <= named


def steps_of_a_move(store: Store, file: Path) -> int:
    """How many there are when nobody else uses the file."""
    mover = Mover(store, file, 1 << 30, 1)
    mover.end("go")
    assert mover.said[0] == "steps", mover.said
    return int(mover.said[1])


@pytest.mark.parametrize("answer", ["go", "kill"])
def test_a_mover_stopped_at_any_step_delays_nobody_and_loses_nothing(make_store: Maker, answer: str) -> None:
    store = make_store(layout="uneven")
    rng = random.Random(17)
    file = store.data / "f"
    stood = 0
    for group in range(-(-STEPS // ROUNDS_PER_CHECK)):
        store.program("rm", "-f", file)
        with users(store, file, group) as made:
            most = steps_of_a_move(store, file)
            for _ in range(ROUNDS_PER_CHECK):
                step = rng.randint(1, most)
                mover = Mover(store, file, step, rng.randrange(1 << 30))
                try:
                    if mover.stands:
                        stood += 1
                        made.go_on(f"the mover stands at {' '.join(mover.said)} of about {most}")
                        mover.end(answer)
                        made.go_on(f"after the mover stood at {' '.join(mover.said)} of about {most}")
                finally:
                    mover.process.kill()
                    mover.process.communicate()
    assert stood > STEPS // 2
