"""Copies of managed files: programs read, write, cut, map and rename them while copies are made anew all the time, and
nothing about them is different from plain files."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from churning import churning, sound
from rebuilding import rebuilding
from rig import NATIVE, SOAK, STRIPEWISE, Maker, Target, dirs, execute, stripewise, wait_until
from test_randops import leftovers

import mixed
from stripewise import native

RANDOPS, MIXED = NATIVE / "randops", mixed.__file__
OPERATIONS = 40_000 if SOAK else 4_000
COPIED = 1 << 13
SHARING = {"one": (), "processes": ("--procs", "4"), "threads": ("--threads", "4")}


def served(trace: Path) -> int:
    """Reads that copies have served."""
    stripewise("collect", trace)
    rows = pq.read_table(trace / "trace.parquet", columns=["op", "flags"]).to_pylist()
    return sum(row["op"] == "read" and row["flags"] & COPIED != 0 for row in rows)


@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("moving", [False, True], ids=["resting", "moving"])
def test_random_operations_do_what_they_do_on_plain_files(make_store: Maker, sharing: str, moving: bool) -> None:
    for seed in range(1, 6 if SOAK else 2):
        store = make_store(layout="uneven")
        oracle = store.base / "oracle"
        oracle.mkdir()
        words = ["--dir", store.data, "--oracle-dir", oracle, "--ops", str(OPERATIONS), *SHARING[sharing]]
        moves = churning(store, seed, 1) if moving else nullcontext()
        with rebuilding(store, seed) as builder, moves:
            run = 0
            while run == 0 or builder.made() < (200 if SOAK else 20):
                assert builder.process.poll() is None, builder.log.with_suffix(".err").read_text()[-3000:]
                # Files of an earlier run would not be new to this one.
                more = ("--seed", str(seed + 100 * run), "--prefix", f"run{run}-")
                store.program(RANDOPS, *words, *more, timeout_s=3600)
                run += 1
        dropped = stripewise("store", "replica", "ls", store.root, "--json").out
        names = [each["name"] for each in json.loads(dropped)]
        stripewise("store", "replica", "rm", store.root, *names)
        # A container goes with its last user, unless that one is killed or runs another program.
        stripewise("store", "gc", store.root)
        assert not leftovers(store)


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize("moving", [False, True], ids=["resting", "moving"])
def test_processes_that_share_blocks_read_what_they_wrote(
    make_store: Maker, tmp_path: Path, processes: int, moving: bool
) -> None:
    store, trace = make_store(layout="uneven"), tmp_path / "trace"
    file, twin = store.data / "file", store.plain / "twin"
    twin.write_bytes(random.Random(1).randbytes(mixed.SIZE))
    stripewise("run", "--store", store.root, "--", "cp", twin, file)
    for seed in range(1, 6 if SOAK else 2):
        one = f"{sys.executable} {MIXED} {file} {twin} $rank {processes} {60 if SOAK else 4} {seed}"
        each = f"for rank in $(seq 0 {processes - 1}); do {one} & all=$all\\ $!; done"
        script = f"{each}; for one in $all; do wait $one || exit 1; done"
        moves = churning(store, seed, 1) if moving else nullcontext()
        shutil.rmtree(trace, ignore_errors=True)
        with rebuilding(store, seed) as builder, moves:
            execute(
                [STRIPEWISE, "run", "--store", store.root, "--trace", trace, "--", "sh", "-c", script], timeout_s=900
            )
            assert builder.made() > (0 if moving else 5)
        # Of several processes the blocks are stale soon: they share them.
        assert moving or processes > 1 or served(trace) > 0
    sound(store)


#: Reads a block from a copy in one process, writes it in another that finds the record as given, and reads it again.
UNMARKABLE = """
import os, subprocess, sys
path, record, damage = sys.argv[1:]
def in_child(what):
    code = f"import os; f = os.open({path!r}, os.O_RDWR); print({what})"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
fd = os.open(path, os.O_RDONLY)
assert os.pread(fd, 3, 0) == b"old"
names = [record, record + ".marks"]
if damage == "rights":
    os.chmod(record, 0o640)
elif damage == "names":
    [os.link(name, name + "-kept") for name in names]
elif damage == "moved":
    os.rename(os.path.dirname(record), os.path.dirname(record) + "-away")
elif damage == "cut":
    kept = open(record, "rb").read()
    os.truncate(record, 0)
assert in_child("os.pwrite(f, b'new', 0)") == "3"
assert os.pread(fd, 3, 0) == b"new", "the reader that has the copies"
if damage == "rights":
    os.chmod(record, 0o600)
elif damage == "names":
    [os.unlink(name + "-kept") for name in names]
elif damage == "moved":
    os.rename(os.path.dirname(record) + "-away", os.path.dirname(record))
elif damage == "cut":
    open(record, "r+b").write(kept)
assert in_child("os.pread(f, 3, 0)") == "b'new'", "one that comes when all is as it was"
"""


@pytest.mark.parametrize("damage", ["none", "rights", "names", "moved", "cut"])
def test_a_writer_that_cannot_mark_ends_the_copies(make_store: Maker, damage: str) -> None:
    store = make_store(dirs(2))
    file = store.data / "file"
    store.program("sh", "-c", f"yes old | head -c 100000 > {file}")
    region = {"start": 0, "len": 1 << 20, "stripes": [[0, 65536], [1, 65536]]}
    wanted = [{"base": 0, "block": 16384, "dims": [[16384, 6]], "regions": [region]}]
    made = native.call("store_copies_make", str(store.root), str(file), json.dumps({"replicas": wanted}))
    record = store.root / "copies" / made["name"]
    store.program(sys.executable, "-c", UNMARKABLE, file, record, damage)
    listed = stripewise("store", "replica", "ls", store.root, "--json").out
    assert [each["state"] for each in json.loads(listed)] == ["in use" if damage == "none" else "changed"]


#: Memory that the kernel writes from, and that no other way reads.
UNREADABLE = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pointer, size, number, offset = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_long
libc.mmap.restype, libc.mmap.argtypes = pointer, [pointer, size, number, number, number, offset]
libc.pwrite.restype, libc.pwrite.argtypes = ctypes.c_ssize_t, [number, pointer, size, offset]
at = libc.mmap(None, 4096, 2, 0x22, -1, 0)
ctypes.memmove(at, b"new", 3)
fd = os.open(sys.argv[1], os.O_RDWR)
assert libc.pwrite(fd, at, 4096, 0) == 4096, os.strerror(ctypes.get_errno())
assert os.pread(fd, 3, 0) == b"new"
"""


def test_memory_that_may_only_be_written_can_be_written_from(make_store: Maker) -> None:
    store = make_store(dirs(2))
    file = store.data / "file"
    store.program("sh", "-c", f"yes old | head -c 100000 > {file}")
    region = {"start": 0, "len": 1 << 20, "stripes": [[0, 65536]]}
    wanted = [{"base": 0, "block": 16384, "dims": [], "regions": [region]}]
    native.call("store_copies_make", str(store.root), str(file), json.dumps({"replicas": wanted}))
    store.program(sys.executable, "-c", UNREADABLE, file)


def test_who_makes_copies_can_be_stopped_while_a_program_stays_in_an_io(make_store: Maker) -> None:
    slow = Target("t0", kind="emulated", startup_s=30.0)
    store = make_store([slow, Target("t1")])
    quick, other = store.data / "quick", store.data / "slow"
    for file, target in ((quick, "t1"), (other, "t0")):
        stripewise("store", "template", "add", store.root, file, "--targets", target)
    store.program("sh", "-c", f"head -c 100000 /dev/urandom > {quick}")
    writing = subprocess.Popen(
        [sys.executable, "-c", "import os, sys; os.write(os.open(sys.argv[1], os.O_CREAT | os.O_RDWR), b'x')", other],
        env=store.environment(),
    )
    code = "import sys; from stripewise import native; native.call('store_copies_make', *sys.argv[1:])"
    wanted = [{"base": 0, "block": 9, "dims": [], "regions": [{"start": 0, "len": 1 << 20, "stripes": [[1, 65536]]}]}]
    making = subprocess.Popen(
        [sys.executable, "-c", code, store.root, quick, json.dumps({"replicas": wanted})], stderr=subprocess.PIPE
    )
    try:
        copies = store.root / "copies"
        assert wait_until(lambda: copies.exists() and any(each.suffix == ".marks" for each in copies.iterdir()))
        making.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in making.communicate(timeout=20)[1] and writing.poll() is None
    finally:
        for process in (making, writing):
            process.kill()
            process.wait()
    assert not list(copies.iterdir())
