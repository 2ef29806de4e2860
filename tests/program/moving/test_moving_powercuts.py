"""Power cuts while regions move and programs write: as in test_powercuts, with a mover that never rests.

What was synced before the cut is there, no byte is foreign, and after a repair nothing is left to be found.
Needs what test_powercuts needs: `make soak` runs 50 cuts there; a few run in `make test`.
"""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time

import pytest
from churning import Churner
from rig import NATIVE, SOAK, STRIPEWISE, execute
from test_powercuts import Machine, after_reboot, machine, make

__all__ = ["machine"]

# A loop device that another test takes between two mounts gives the disk another number, which fsck sees.
pytestmark = pytest.mark.alone

CUTS = 50 if SOAK else 2
ACKED = NATIVE / "acked"
WRITERS = 2


class Promises:
    """Writers that sync, and what they have promised so far."""

    def __init__(self, commands: list[list[object]], env: dict[str, str]) -> None:
        self.lines: list[bytes] = []
        self.processes = [
            subprocess.Popen([str(word) for word in command], env=env, stdout=subprocess.PIPE) for command in commands
        ]
        self.listeners = [threading.Thread(target=self.listen, args=(process,)) for process in self.processes]
        for listener in self.listeners:
            listener.start()

    def listen(self, process: subprocess.Popen[bytes]) -> None:
        """Takes in the lines of one."""
        assert process.stdout is not None
        while (line := process.stdout.readline()).endswith(b"\n"):
            self.lines.append(line)

    def end(self) -> None:
        """Kill them."""
        for process in self.processes:
            process.kill()
            process.wait()
        for listener in self.listeners:
            listener.join()


def test_a_power_cut_while_regions_move_loses_nothing_that_was_synced(machine: Machine) -> None:
    store = make(machine)
    rng = random.Random(31)
    file = store.data / "f"
    env = store.environment()
    words: list[object] = ["5", "200", "fsync"]
    promises = Promises([[ACKED, "write", file, *words, str(n), str(WRITERS)] for n in range(WRITERS)], env)
    cuts = []
    try:
        while len(promises.lines) < 10:
            time.sleep(0.01)
        churner = Churner(store, 31)
        try:
            for number in range(CUTS):
                churner.wait_for(number + 1)
                time.sleep(rng.uniform(0.0, 0.4))
                promised = len(promises.lines)
                cuts.append((machine.cut(number), promised))
            moved = churner.published()
            churner.end()
        finally:
            churner.kill()
    finally:
        promises.end()
    machine.unmount(machine.disk)
    interrupted = 0
    for number, (image, promised) in enumerate(cuts):
        acks = b"".join(promises.lines[:promised]).decode()
        with after_reboot(machine, image) as boot:
            if number % 2:
                # Without a repair first: the next to open it finds its bytes.
                execute([*boot, ACKED, "check", file], env, stdin=acks)
            said = execute([*boot, STRIPEWISE, "store", "fsck", store.root, "--repair"], code=None)
            interrupted += "a move was interrupted" in said.out
            found = json.loads(execute([*boot, STRIPEWISE, "store", "fsck", store.root, "--json"]).out)
            assert not found["findings"], f"cut {number}: {found['findings']}"
            execute([*boot, ACKED, "check", file], env, stdin=acks)
    print(f"{len(cuts)} cuts, {interrupted} in a move, {moved} moves, {len(promises.lines)} promises")
