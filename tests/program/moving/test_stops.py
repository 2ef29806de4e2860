"""A mover stopped after any of its system calls delays nobody; killed there or let go on, it loses nothing.

`tests/native/stepper` stops it at steps drawn from every phase of a move, the freeze and the last step too. Three
programs use the file: two write with acknowledgements, one appends, allocates, cuts, reads, opens and syncs. All of
them must go on while the mover stands. Few steps here, thousands in `make soak`.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from churning import identity, sound
from rig import NATIVE, SOAK, Maker, Store, wait_until

ACKED, STEPPER, TOUCHER = NATIVE / "acked", NATIVE / "stepper", NATIVE / "toucher"
MOVER = Path(__file__).with_name("move_once.py")
#: Of each way to end a stop.
STOPS = 1500 if SOAK else 5
#: Stops after which the users are killed, all is recovered, and what they told is verified.
STOPS_PER_CHECK = 50 if SOAK else 5
#: Phases of a move, and about how many steps each has when programs write; fewer are found out.
PHASES = {"before": 70, "copying": 800, "frozen": 400, "publishing": 8, "after": 230}
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
                lambda number=number, process=process: (
                    self.lines()[number] >= before[number] + GOES_ON or process.poll() is not None
                ),
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

    def __init__(self, store: Store, file: Path, phase: str, step: int, layout: int | str) -> None:
        ctl = store.root / "files" / identity(file) / "ctl"
        command = [STEPPER, phase, str(step), ctl, sys.executable, MOVER, store.root, identity(file), str(layout)]
        self.process = subprocess.Popen(
            [os.fspath(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline().split()

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
    sound(store)
    made.verify()


@pytest.mark.parametrize("answer", ["go", "kill"])
def test_a_mover_stopped_at_any_step_delays_nobody_and_loses_nothing(make_store: Maker, answer: str) -> None:
    store = make_store(layout="uneven")
    rng = random.Random(answer)
    file = store.data / "f"
    most = dict(PHASES)
    stood: Counter[str] = Counter()
    for first in range(0, STOPS, STOPS_PER_CHECK):
        store.program("rm", "-f", file)
        with users(store, file, first) as made:
            for phase in list(PHASES) * (STOPS_PER_CHECK // len(PHASES)):
                mover = Mover(store, file, phase, rng.randint(1, most[phase]), rng.randrange(1 << 30))
                if mover.stands:
                    stood[phase] += 1
                    where = f"the mover {phase} at {' '.join(mover.said)}"
                    made.go_on(where)
                    mover.end(answer)
                    made.go_on(f"after {where}")
                else:
                    # At least the first step of a phase is always there, except where a killed mover has left its own.
                    most[phase] = max(1, int(mover.said[1]))
                    mover.end("go")
    print(f"stops: {stood}, steps: {most}")
    assert all(stood[phase] for phase in PHASES if phase != "before" or answer == "go"), stood
