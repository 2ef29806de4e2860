"""Copies, advice, locks and flags: on managed files they do what they do on plain ones."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest
from rig import LAYOUTS, NATIVE, Maker, Store, Target, is_managed, stripewise

COPYING = NATIVE / "copying"
SIZE = 3_000_001


def transcript(store: Store, program: Path, first: Path, second: Path) -> list[str]:
    """What the table of checks says about two files."""
    return store.program(program, first, second).out.splitlines()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_call_says_and_does_what_it_does_between_plain_files(make_store: Maker, layout: str) -> None:
    store = make_store(layout=layout)
    plain = transcript(store, COPYING, store.plain / "a", store.plain / "b")
    assert len(plain) > 100
    for first, second in ((store.data, store.plain), (store.plain, store.data), (store.data, store.data)):
        assert transcript(store, COPYING, first / "a", second / "b") == plain, f"{first} to {second}"
    assert is_managed(store.data / "a") and is_managed(store.data / "b")


@pytest.fixture
def store(make_store: Maker) -> Store:
    """A store, and random bytes in a plain file."""
    made = make_store(layout="uneven")
    (made.plain / "source").write_bytes(os.urandom(SIZE))
    return made


def same(store: Store, name: str) -> None:
    """The managed file has the source's bytes."""
    source = hashlib.sha256((store.plain / "source").read_bytes()).hexdigest()
    said = store.program("dd", f"if={store.data / name}", f"of={store.plain / 'back'}", "bs=1M")
    assert hashlib.sha256((store.plain / "back").read_bytes()).hexdigest() == source, said.report


@pytest.mark.parametrize("options", [[], ["--sparse=always"], ["--sparse=never"], ["-p"]], ids=" ".join)
def test_cp_in_within_and_out(store: Store, options: list[str]) -> None:
    store.program("cp", *options, store.plain / "source", store.data / "f")
    store.program("cp", *options, store.data / "f", store.data / "g")
    store.program("cp", *options, store.data / "g", store.plain / "out")
    assert (store.plain / "out").read_bytes() == (store.plain / "source").read_bytes()
    assert is_managed(store.data / "f") and is_managed(store.data / "g") and not (store.plain / "out").is_symlink()
    same(store, "g")


def test_cat_and_pipes(store: Store) -> None:
    store.program("sh", "-c", f"cat {store.plain / 'source'} > {store.data / 'f'}")
    store.program("sh", "-c", f"cat {store.data / 'f'} | cat > {store.data / 'g'}")
    store.program("sh", "-c", f"cat {store.data / 'g'} {store.data / 'g'} | cmp - {store.data / 'h'}", code=None)
    store.program("sh", "-c", f"cat < {store.data / 'g'} | cmp - {store.plain / 'source'}")
    same(store, "g")


@pytest.mark.parametrize(
    "flags", ["iflag=direct", "oflag=direct", "conv=fsync", "oflag=dsync", "oflag=append conv=notrunc", "conv=sparse"]
)
def test_dd(store: Store, flags: str) -> None:
    (store.plain / "source").write_bytes(os.urandom(64 * 4096))
    store.program("dd", f"if={store.plain / 'source'}", f"of={store.data / 'f'}", "bs=16k", *flags.split())
    same(store, "f")


PYTHON = """
import os, shutil, socket, sys, threading
source, data = sys.argv[1:]
size = os.path.getsize(source)
bytes_ = open(os.open(source, os.O_RDONLY), "rb", buffering=0).readall()
name = lambda i: os.path.join(data, i)

shutil.copyfile(source, name("copied"))
shutil.copyfile(name("copied"), name("twice"))

reader, writer = os.open(name("twice"), os.O_RDONLY), os.open(name("ranged"), os.O_RDWR | os.O_CREAT)
while os.copy_file_range(reader, writer, 700_001):
    pass
assert os.lseek(writer, 0, os.SEEK_CUR) == size

near, far = socket.socketpair()
got = []
def drain():
    while part := far.recv(1 << 16):
        got.append(part)
thread = threading.Thread(target=drain)
thread.start()
at = 0
while at < size:
    at += os.sendfile(near.fileno(), reader, at, size)
near.close()
thread.join()
assert b"".join(got) == bytes_, "sendfile to a socket"

spliced = os.open(name("spliced"), os.O_RDWR | os.O_CREAT)
out, into = os.pipe()
at = 0
while moved := os.splice(reader, into, 1 << 20, offset_src=at):
    done = 0
    while done < moved:
        done += os.splice(out, spliced, moved - done, offset_dst=at + done)
    at += moved
assert at == size
assert os.pread(spliced, size + 1, 0) == bytes_, "splice"
os.posix_fadvise(spliced, 0, 0, os.POSIX_FADV_DONTNEED)
os.lockf(spliced, os.F_TLOCK, 10)
assert os.pread(spliced, size + 1, 0) == bytes_, "after the advice"
"""


def test_python_copies(store: Store) -> None:
    store.program(sys.executable, "-c", PYTHON, store.plain / "source", store.data)
    for name in ("copied", "twice", "ranged", "spliced"):
        assert is_managed(store.data / name)
        same(store, name)


def test_what_a_full_target_does_not_take_stays_in_the_pipe(make_store: Maker) -> None:
    store = make_store([Target("small", capacity_bytes=1 << 20)])
    script = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
out, into = os.pipe()
block = bytes(range(256)) * 128
stored = 0
while True:
    os.write(into, block)
    try:
        moved = os.splice(out, fd, len(block))
    except OSError as error:
        assert error.errno == 28, error
        moved = 0
    stored += moved
    if moved < len(block):
        break
rest = os.read(out, 1 << 20)
assert rest == block[moved:], (moved, len(rest))
assert os.fstat(fd).st_size == stored == os.lseek(fd, 0, os.SEEK_CUR)
assert 0 < stored <= 1 << 20, stored
"""
    store.program(sys.executable, "-c", script, store.data / "f")


def test_copies_are_recorded_as_reads_and_writes(store: Store) -> None:
    trace = store.base / "trace"
    script = "cp --sparse=never $0/source $0/copy; cp --sparse=never $0/copy $1/f"
    words = ["sh", "-c", script, store.plain, store.data]
    stripewise("run", "--store", store.root, "--trace", trace, "--", *words)
    stripewise("collect", trace)
    said = json.loads(stripewise("show", trace, "--file", f"{store.base}/**", "--json").out)
    moved = {Path(file["path"]).name: (file["read_bytes"], file["written_bytes"]) for file in said["files"]}
    assert moved == {"source": (SIZE, 0), "copy": (SIZE, SIZE), "f": (0, SIZE)}
