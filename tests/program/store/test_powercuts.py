"""Power cuts: the store lies on ext4 in an image on a loop-mounted XFS.

A reflink copy of the image in the middle of the work is what a cut would leave. Every byte whose fsync had returned
before the copy began must be there, and no foreign byte.

Needs root, loop devices, mkfs.xfs and mkfs.ext4: `make soak` runs 100 cuts there; a few run in `make test`.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from disks import mount, needs_loop_devices
from rig import NATIVE, SOAK, STRIPEWISE, UNEVEN, Store, create_store, dirs, execute, is_managed, region, stripes

# A loop device that another test takes between two mounts gives the disk another number, which fsck sees.
pytestmark = pytest.mark.alone

CUTS = {"writer": 30, "apply": 20, "adopt": 50} if SOAK else {"writer": 2, "apply": 2, "adopt": 3}
ACKED = NATIVE / "acked"
OTHER = [region(0, 64, stripes(("t2", 16))), region(64, 4096, stripes(("t0", 128), ("t2", 8)))]


class Machine:
    """An XFS with the image of an ext4 in it, which is mounted at `disk`."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.xfs, self.disk = base / "xfs", base / "disk"
        self.image = self.xfs / "disk.img"
        self.mounted: list[Path] = []

    def make(self) -> None:
        outer = self.base / "xfs.img"
        outer.touch()
        os.truncate(outer, 3 << 30)
        execute(["mkfs.xfs", "-q", "-m", "reflink=1", outer])
        self.mount(outer, self.xfs)
        self.image.touch()
        os.truncate(self.image, 256 << 20)
        execute(["mkfs.ext4", "-q", "-F", self.image])
        self.mount(self.image, self.disk)

    def mount(self, image: Path, place: Path) -> None:
        mount(image, place)
        self.mounted.append(place)

    def unmount(self, place: Path) -> None:
        execute(["umount", place])
        self.mounted.remove(place)

    def cut(self, number: int) -> Path:
        """What the disk holds at this moment, without anything that was not flushed to it."""
        copy = self.xfs / f"cut{number}.img"
        execute(["cp", "--reflink=always", self.image, copy])
        return copy

    def remove(self) -> None:
        for place in reversed(self.mounted):
            execute(["umount", "-l", place], code=None)


@pytest.fixture
def machine(scratch: Path) -> Iterator[Machine]:
    needs_loop_devices("a power cut", "mkfs.xfs", "mkfs.ext4", "unshare")
    made = Machine(scratch)
    try:
        made.make()
        yield made
    finally:
        made.remove()


@contextmanager
def after_reboot(machine: Machine, image: Path) -> Iterator[list[str | Path]]:
    """The cut disk in its place; yields what to put before a command so that it sees another boot."""
    machine.mount(image, machine.disk)
    boot = machine.base / "boot_id"
    boot.write_text(f"{uuid.uuid4()}\n")
    words: list[str | Path] = [
        "unshare", "--mount", "sh", "-c", f'mount --bind {boot} /proc/sys/kernel/random/boot_id && exec "$@"', "sh",
    ]  # fmt: skip
    try:
        yield words
    finally:
        machine.unmount(machine.disk)
        image.unlink()


def make(machine: Machine) -> Store:
    return create_store(machine.disk / "s", dirs(3), UNEVEN)


def sound(store: Store, boot: list[str | Path]) -> None:
    execute([*boot, STRIPEWISE, "store", "fsck", store.root, "--repair"], code=None)
    execute([*boot, STRIPEWISE, "store", "fsck", store.root])


def test_what_was_synced_survives_a_power_cut(machine: Machine) -> None:
    store = make(machine)
    rng = random.Random(5)
    env = store.environment()
    writer = subprocess.Popen([ACKED, "write", store.data / "f", "5", "300", "fsync"], env=env, stdout=subprocess.PIPE)
    acks: list[bytes] = []

    def listen() -> None:
        assert writer.stdout is not None
        while (line := writer.stdout.readline()).endswith(b"\n"):
            acks.append(line)

    listener = threading.Thread(target=listen)
    listener.start()
    cuts = []
    try:
        for number in range(CUTS["writer"]):
            time.sleep(rng.uniform(0.05, 0.5))
            promised = len(acks)
            cuts.append((machine.cut(number), promised))
    finally:
        writer.kill()
        writer.wait()
        listener.join()
    machine.unmount(machine.disk)
    assert cuts[-1][1] > 0, "nothing was promised before the last cut"
    for image, promised in cuts:
        with after_reboot(machine, image) as boot:
            sound(store, boot)
            if promised:
                execute([*boot, ACKED, "check", store.data / "f"], env, stdin=b"".join(acks[:promised]).decode())


def cuts_during(machine: Machine, rng: random.Random, count: int, work: Callable[[], None]) -> list[Path]:
    """Images of the disk at `count` random moments while `work` is done over and over; the disk is unmounted then."""
    stop = threading.Event()
    failed: list[BaseException] = []

    def again_and_again() -> None:
        try:
            while not stop.is_set():
                work()
        except BaseException as error:  # A thread's failure must be the test's.
            failed.append(error)

    worker = threading.Thread(target=again_and_again)
    worker.start()
    try:
        cuts = []
        for number in range(count):
            time.sleep(rng.uniform(0.2, 1.5))
            cuts.append(machine.cut(number))
    finally:
        stop.set()
        worker.join()
    if failed:
        raise failed[0]
    machine.unmount(machine.disk)
    return cuts


def test_a_power_cut_in_a_move_changes_no_byte(machine: Machine) -> None:
    store = make(machine)
    rng = random.Random(6)
    env = store.environment()
    size = 12_000_003
    content = rng.randbytes(size)
    source = machine.base / "source"
    source.write_bytes(content)
    store.program("dd", f"if={source}", f"of={store.data / 'f'}", "bs=1M", "conv=fsync")
    plans = [
        store.plan(store.base / f"plan{k}.json", store.data / "f", regions, size)
        for k, regions in enumerate((OTHER, UNEVEN))
    ]
    execute(["sync"])

    def move() -> None:
        for plan in plans:
            execute([STRIPEWISE, "apply", plan, "--store", store.root])

    cuts = cuts_during(machine, rng, CUTS["apply"], move)
    for number, image in enumerate(cuts):
        with after_reboot(machine, image) as boot:
            if number % 2:
                sound(store, boot)
            execute([*boot, "dd", f"if={store.data / 'f'}", f"of={machine.base / 'sink'}", "bs=64K"], env)
            assert (machine.base / "sink").read_bytes() == content, f"cut {number} changed bytes"
            sound(store, boot)


def test_a_power_cut_in_an_adoption_or_export_leaves_the_file_plain_or_managed(machine: Machine) -> None:
    store = make(machine)
    rng = random.Random(7)
    file = store.plain / "f"
    content = rng.randbytes(6_000_003)
    file.write_bytes(content)
    execute(["sync"])

    def back_and_forth() -> None:
        words = ["export", file] if is_managed(file) else ["adopt", "--store", store.root, file]
        execute([STRIPEWISE, "store", *words])

    cuts = cuts_during(machine, rng, CUTS["adopt"], back_and_forth)
    for number, image in enumerate(cuts):
        with after_reboot(machine, image) as boot:
            for mended in (False, True):
                if is_managed(file):
                    sink = machine.base / "sink"
                    execute([*boot, "sh", "-c", f"'{STRIPEWISE}' store cat '{file}' > '{sink}'"])
                    assert sink.read_bytes() == content, f"cut {number} changed bytes"
                else:
                    assert file.read_bytes() == content, f"cut {number} changed bytes"
                if not mended:
                    sound(store, boot)
                    execute([*boot, STRIPEWISE, "store", "gc", store.root])
            assert [path.name for path in store.plain.iterdir()] == ["f"], f"cut {number} left something"
            assert len(list((store.root / "files").iterdir())) == is_managed(file)
