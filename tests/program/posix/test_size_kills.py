"""Kills inside of what changes a file's size: at every system call of it (ptrace), and at random moments.

What lies behind a file's size never becomes visible but as zeros: a killed cut leaves the old size with all bytes, or
the new size for ever; a killed write leaves nothing that a later growth shows. `tests/native/sizekills` says how it
looks. 380 kills here, 22,500 in `make soak`.
"""

from __future__ import annotations

import re
import sys

import pytest
from churning import churning
from rig import LAYOUTS, NATIVE, SOAK, UNEVEN, Maker, Store, Target, dirs

SIZEKILLS = NATIVE / "sizekills"
#: The largest size that the file gets: some windows of each layout.
MOST = 600_000
SIX = [Target(f"t{number}", "hdd", "emulated" if number % 2 else "dir", 0, 0.0, 1e-10) for number in range(6)]
#: From one to six targets, plain and emulated, even and uneven.
CASES = {name: LAYOUTS[name] for name in ("one", "striped", "uneven", "emulated")} | {
    "two": (dirs(2), None),
    "six": (SIX, [*UNEVEN]),
}
KILLS = {"steps": 900, "random": 900, "peers": 300} if SOAK else {"steps": 25, "random": 10, "peers": 9}
MOVING_KILLS = {"random": 2000, "steps": 1000, "peers": 300} if SOAK else {"random": 15, "steps": 15, "peers": 9}


def kill(store: Store, most: int, seed: int, kills: int, how: str) -> str:
    """Kills; what was said of it."""
    said = store.program(SIZEKILLS, store.data / "f", store.data / "g", *map(str, (most, seed, kills)), how, code=None)
    assert said.code == 0, said.report
    return said.out


@pytest.mark.parametrize("case", CASES)
def test_after_a_kill_nothing_shows_but_what_was_written_and_zeros(make_store: Maker, case: str) -> None:
    targets, regions = CASES[case]
    store = make_store(targets, regions=regions)
    for how, kills in KILLS.items():
        said = kill(store, MOST, 1 + list(CASES).index(case), kills, how)
        assert sum(map(int, re.findall(r"^(\d+) kills", said, re.MULTILINE))) == kills
    # A kill may leave half a name, never a file that is not sound.
    store.fsck("--repair", code=None)
    store.fsck()


@pytest.mark.parametrize("case", ["striped", "uneven", "emulated"])
def test_the_same_while_the_file_moves(make_store: Maker, case: str) -> None:
    store = make_store(layout=case)
    (store.base / "source").write_bytes(b"x" * MOST)
    store.program("cp", store.base / "source", store.data / "f")
    with churning(store) as churner:
        for seed, how in enumerate(MOVING_KILLS):
            kill(store, MOST, 1 + seed, MOVING_KILLS[how], how)
            churner.wait_for(1 + seed)
    store.fsck("--repair", code=None)
    store.fsck()


def test_a_cut_killed_between_two_objects_is_ended_by_whoever_writes_next(make_store: Maker) -> None:
    store = make_store(layout="striped")
    # 3,000,000 bytes lie on all four targets, each of whose objects is cut by a call of its own.
    assert "4 kills" in kill(store, 3_000_000, 7, 0, "cuts")


#: Sets a file to a size that its file system, or its user's limit, may refuse; says how it is then.
SET_SIZE = """
import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, size, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
os.write(fd, b"a" * 5000)
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
changes = [lambda: os.ftruncate(fd, size), lambda: os.truncate(path, size)]
for change in [*changes, lambda: os.posix_fallocate(fd, size - 1, 1)]:
    try:
        change()
        print("done", os.fstat(fd).st_size)
        os.ftruncate(fd, 5000)
    except OSError as error:
        print(error.errno, os.stat(path).st_size, os.lseek(fd, 0, os.SEEK_END))
appending = os.open(path, os.O_WRONLY | os.O_APPEND)
print(os.write(appending, b"b" * 10), os.fstat(fd).st_size, os.pread(fd, 12, 4998))
"""


#: Sizes and limits; without a limit those that a file system refuses, as ext4 does above 16 TiB.
REFUSED = [(200_000, 100_000), (1 << 44, 100_000), ((1 << 44) + (1 << 40), 0), (1 << 60, 0)]


@pytest.mark.parametrize(("size", "limit"), REFUSED)
def test_a_size_that_is_refused_leaves_the_file_as_it_was(store: Store, size: int, limit: int) -> None:
    said = [
        store.program(sys.executable, "-c", SET_SIZE, directory / "g", str(size), str(limit)).out
        for directory in (store.data, store.plain)
    ]
    # Where the limit is the file system's, fallocate finds another one in the objects'.
    ours, plain = said if limit else [text.splitlines()[:2] for text in said]
    assert ours == plain
    assert said[0].splitlines()[-1] == "10 5010 b'aabbbbbbbbbb'"
