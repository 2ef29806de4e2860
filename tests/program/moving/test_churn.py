"""Programs run while a loop moves every region of their files back and forth, and nothing about them is different.

Short runs here, long ones in `make soak`. Each counts only if moves were published while it ran.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from churning import Churner, churning
from rig import LAYOUTS, NATIVE, SOAK, Maker, Store, mpiio_command, parse_mpiio, wait_until
from test_randops import leftovers

RANDOPS = NATIVE / "randops"
OPERATIONS = 40_000 if SOAK else 2_500
SEEDS = range(1, 6) if SOAK else range(1, 2)
#: How programs share the files.
SHARING = {"one": (), "processes": ("--procs", "4"), "threads": ("--threads", "4")}


def random_operations(store: Store, seed: int, options: tuple[str, ...], moves: int) -> None:
    """The random-operation tester, which compares with plain files, until so many moves were published beside it."""
    oracle = store.base / "oracle"
    oracle.mkdir()
    words = ["--dir", str(store.data), "--oracle-dir", str(oracle), "--ops", str(OPERATIONS), *options]
    with churning(store, seed, moves) as churner:
        run = 0
        while run == 0 or churner.published() < moves:
            # Files of an earlier run would not be new to this one.
            prefix = f"run{run}-"
            store.program(RANDOPS, *words, "--seed", str(seed + 100 * run), "--prefix", prefix, timeout_s=3600)
            run += 1
    assert not leftovers(store)


@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("layout", LAYOUTS if SOAK else ["uneven"])
def test_random_operations_on_moving_files_do_what_they_do_on_plain_ones(
    make_store: Maker, layout: str, sharing: str
) -> None:
    for seed in SEEDS:
        random_operations(make_store(layout=layout), seed, SHARING[sharing], 200 if SOAK else 10)


@pytest.mark.parametrize("collective", [False, True], ids=["independent", "collective"])
def test_the_mpi_workload_verifies_while_its_file_moves(make_store: Maker, collective: bool) -> None:
    store = make_store(layout="uneven")
    file = store.data / "f"
    sizes = ("--file-size", "4MiB", "--request-size", "48KiB", "--region-size", "480KiB", "--pieces", "4")
    words = ["--requests", "200" if SOAK else "20", "--if-missing-fill", *(("--collective",) if collective else ())]
    parse_mpiio(store.program(*mpiio_command(4, file, *sizes, "--phases", "fill")))
    with churning(store, 7, 30 if SOAK else 5, file) as churner:
        run = 0
        while run < 3 or churner.published(file) < (30 if SOAK else 5):
            pattern = ("random", "strided", "zipf", "nested")[run % 4]
            phases = ("--phases", "fill,write,read,check", "--pattern", pattern, "--seed", str(run))
            parse_mpiio(store.program(*mpiio_command(4, file, *sizes, *words, *phases)))
            run += 1
    parse_mpiio(store.program(*mpiio_command(2, file, *sizes, "--phases", "check")))


#: Maps a file, says so, writes through the map when told to, and unmaps it.
MAPPING = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    view = mmap.mmap(file.fileno(), 0)
print("mapped", flush=True)
sys.stdin.readline()
view[5000:5005] = b"hello"
view.close()
print("unmapped", flush=True)
sys.stdin.readline()
"""


def test_a_mapped_file_stays_where_it_is_until_no_map_is_left(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    file = store.data / "f"
    store.program("dd", "if=/dev/zero", f"of={file}", "bs=64K", "count=32")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    user = subprocess.Popen([sys.executable, "-c", MAPPING, file], env=store.environment(), **pipes)  # type: ignore[call-overload]
    try:
        assert user.stdout.readline() == "mapped\n"
        churner = Churner(store)
        # Ten times refused, or once moved.
        assert wait_until(lambda: churner.refusals() >= 10 or churner.published() > 0)
        assert churner.published() == 0
        user.stdin.write("\n")
        assert user.stdout.readline() == "unmapped\n"
        churner.wait_for(3, file)
        said = churner.end()
        assert set(said["refused"]) == {"mapped"}
    finally:
        user.kill()
        user.wait()
    assert store.program("cat", file).out == "\0" * 5000 + "hello" + "\0" * ((2 << 20) - 5005)
