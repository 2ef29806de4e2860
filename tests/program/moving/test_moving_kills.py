"""Kills and stops of anybody while regions move: of single ranks, of the mover, of several, of all.

A job and a mover work on one file; SIGKILL or SIGSTOP hits victims at random moments. Whoever is not hit goes on; after
it all, with or without a repair, what was acknowledged is there, no byte is foreign, and no slice is left over.
"""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

from churning import Churner, sound
from rig import NATIVE, SOAK, Maker, Store, hit, kill_job, launch, mpiio_command, parse_mpiio, ranks_of, wait_until

RUNS = {"job": 500, "writers": 150} if SOAK else {"job": 5, "writers": 5}
ACKED = NATIVE / "acked"
RANKS = 3
WRITERS = 3
SLOTS = 60
#: How long a victim stands, while nobody else may.
STANDS_S = 2.0
STUCK_S = 20.0


def test_a_job_killed_or_stopped_while_its_file_moves_leaves_no_foreign_byte(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    rng = random.Random(21)
    file = store.data / "f"
    sizes = ["--file-size", "3MiB", "--request-size", "24KiB", "--pieces", "3"]
    parse_mpiio(store.program(*mpiio_command(RANKS, file, *sizes, "--phases", "fill")))
    moved = 0
    for number in range(RUNS["job"]):
        words = [*sizes, "--requests", "1000000", "--if-missing-fill", "--seed", str(number)]
        churner = Churner(store, number)
        job = launch(
            store, mpiio_command(RANKS, file, *words, "--pattern", rng.choice(["random", "strided", "interleaved"]))
        )
        try:
            wait_until(lambda job=job: len(ranks_of(job)) == RANKS, 10)
            churner.wait_for(1, file)
            time.sleep(rng.uniform(0.0, 0.5))
            ranks = ranks_of(job)
            assert len(ranks) == RANKS, f"the job has ended: {job.poll()}"
            victims = rng.choice(
                [
                    [rng.choice(ranks)],
                    [churner.process.pid],
                    [*ranks[:2], churner.process.pid],
                    [*ranks, churner.process.pid],
                ]
            )
            how = signal.SIGKILL
            if rng.random() < 0.4:
                hit(victims, signal.SIGSTOP)
                time.sleep(rng.uniform(0.0, 0.6))
                how = rng.choice([signal.SIGCONT, signal.SIGKILL])
            hit(victims, how)
            lives = how == signal.SIGCONT or churner.process.pid not in victims
            time.sleep(rng.uniform(0.0, 0.2))
            moved += churner.published()
        finally:
            kill_job(job)
            # One mover in two is killed with the job, the other finishes what it does.
            if lives and number % 2 == 0:
                churner.end()
            else:
                churner.kill()
        if number % 3 != 2:
            sound(store)
        check = mpiio_command(2, file, *sizes, "--phases", "check")
        parse_mpiio(store.program(*check))
    sound(store)
    print(f"{RUNS['job']} runs, {moved} moves")


class Writers:
    """Processes that tell what they have written of one file."""

    def __init__(self, store: Store, file: Path, seed: int) -> None:
        self.store, self.file = store, file
        self.outputs = [store.base / f"writer{number}.out" for number in range(WRITERS)]
        self.processes = [
            launch(
                store,
                [ACKED, "write", file, str(seed + writer), str(SLOTS), "written", str(writer), str(WRITERS)],
                self.outputs[writer],
            )
            for writer in range(WRITERS)
        ]

    def lines(self, writer: int) -> int:
        """What it has told."""
        return self.outputs[writer].read_bytes().count(b"\n")

    def go_on(self, writers: list[int], why: str) -> None:
        """Each of them gets something done from now on."""
        before = {writer: self.lines(writer) for writer in writers}
        for writer, lines in before.items():
            done = wait_until(lambda writer=writer, lines=lines: self.lines(writer) > lines + 5, STUCK_S)
            assert done, f"writer {writer} is stuck: {why}"

    def verify(self) -> None:
        """What they told is there, and nothing else."""
        texts = [output.read_text() for output in self.outputs]
        acks = "".join(text[: text.rfind("\n") + 1] for text in texts)
        said = self.store.program(ACKED, "check", self.file, stdin=acks, code=None)
        assert said.code == 0, said.report


def one_run(store: Store, rng: random.Random, number: int) -> int:
    """Victims stand for a while, the others go on; then whoever is left is killed. Returns the moves that were made."""
    file = store.data / "f"
    store.program("rm", "-f", file)
    writers = Writers(store, file, 1000 * number)
    churner: Churner | None = None
    try:
        writers.go_on(list(range(WRITERS)), "before any move")
        churner = Churner(store, number)
        churner.wait_for(1, file)
        time.sleep(rng.uniform(0.0, 0.3))
        stopped = rng.choice([[], [0], [1, 2]])
        mover_too = not stopped or rng.random() < 0.5
        victims = [writers.processes[writer].pid for writer in stopped] + ([churner.process.pid] if mover_too else [])
        how = rng.choice([signal.SIGSTOP, signal.SIGSTOP, signal.SIGKILL])
        hit(victims, how)
        others = [writer for writer in range(WRITERS) if writer not in stopped]
        until = time.monotonic() + STANDS_S
        while how == signal.SIGSTOP and time.monotonic() < until:
            writers.go_on(others, f"{stopped} stand, mover: {mover_too}")
        writers.go_on(others, f"{stopped} got {how}, mover: {mover_too}")
        if how == signal.SIGSTOP:
            hit(victims, rng.choice([signal.SIGCONT, signal.SIGKILL]))
            writers.go_on(others, "whoever stood was let go on, or killed")
        moved = churner.published()
    finally:
        for process in writers.processes:
            kill_job(process)
        if churner is not None:
            churner.kill()
    writers.verify()
    if number % 3 != 2:
        sound(store)
        writers.verify()
    return moved


def test_whoever_is_stopped_or_killed_delays_nobody_else_and_nothing_told_is_lost(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    rng = random.Random(22)
    moved = sum(one_run(store, rng, number) for number in range(RUNS["writers"]))
    sound(store)
    print(f"{RUNS['writers']} runs, {moved} moves")
