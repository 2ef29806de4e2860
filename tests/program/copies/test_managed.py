"""Copies of managed files: programs read, write, cut, map and rename them while copies are made anew all the time, and
nothing about them is different from plain files."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from churning import churning, sound
from rig import NATIVE, SOAK, STRIPEWISE, Maker, Store, execute, stripewise
from test_randops import leftovers

import mixed

RANDOPS, REBUILD, MIXED = NATIVE / "randops", Path(__file__).with_name("rebuild.py"), mixed.__file__
OPERATIONS = 40_000 if SOAK else 4_000
COPIED = 1 << 13
SHARING = {"one": (), "processes": ("--procs", "4"), "threads": ("--threads", "4")}


class Rebuilder:
    """The builder, and how often it has made copies."""

    def __init__(self, store: Store, seed: int) -> None:
        self.log = store.base / "rebuild.log"
        command = [sys.executable, REBUILD, store.root, store.data, str(seed)]
        with self.log.open("wb") as out, self.log.with_suffix(".err").open("wb") as err:
            self.process = subprocess.Popen([os.fspath(word) for word in command], stdout=out, stderr=err)

    def made(self) -> int:
        return self.log.read_text().count("made\n")


@contextmanager
def rebuilding(store: Store, seed: int = 1) -> Iterator[Rebuilder]:
    """Copies of all files are made anew while the body runs."""
    builder = Rebuilder(store, seed)
    try:
        yield builder
        builder.process.terminate()
        assert builder.process.wait(120) == 0, builder.log.with_suffix(".err").read_text()[-3000:]
        print(f"rebuild: {builder.log.read_text().splitlines()[-1]}")
    finally:
        if builder.process.poll() is None:
            builder.process.kill()
            builder.process.wait()


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
