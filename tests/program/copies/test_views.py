"""Reads by MPI-IO behind views: copies serve them before the MPI library sieves; only the trace can tell."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import kinds
import pyarrow.parquet as pq
import pytest
from kinds import Mpi
from rig import MPIEXEC, SOAK, STRIPEWISE, Maker, Store, execute, stripewise
from test_copies import BLOCK, COLUMNS, EMULATED, ROWS, SIZE, column, make_copies

from stripewise.units import format_size

MPIS = {mpi.name: mpi for mpi in kinds.installed()}
PROCESSES, STEPS = 3, 400 if SOAK else 40
COPIED = 1 << 13


@pytest.fixture(params=["plain", "managed"])
def array(request: pytest.FixtureRequest, make_store: Maker) -> tuple[Store, Path, Path]:
    """A store, a plain or a managed file with copies of most of its columns, and a file of the same bytes without."""
    store = make_store(EMULATED)
    twin = store.plain / "twin"
    twin.write_bytes(random.Random(1).randbytes(SIZE))
    path = (store.plain if request.param == "plain" else store.data) / "array"
    stripewise("run", "--store", store.root, "--", "cp", twin, path)
    make_copies(store, path, [column(number, store) for number in range(COLUMNS - 2)])
    return store, path, twin


def compiled(mpi: Mpi, scratch: Path, name: str = "views") -> Path:
    made, source = scratch / name, Path(__file__).with_name(f"{name}.c")
    command = [str(mpi.compiler), "-O1", "-Wall", "-Werror", "-o", str(made), str(source)]
    subprocess.run(command, check=True, env=mpi.environment())
    return made


def reads(trace: Path, path: Path) -> list[tuple[str, bool]]:
    """Reads of a file: operation, and whether a copy has served it."""
    stripewise("collect", trace)
    rows = pq.read_table(trace / "trace.parquet", columns=["op", "flags", "file"]).to_pylist()
    wanted = [row for row in rows if row["file"] == str(path) and row["op"] in ("mpi_read", "read")]
    return [(row["op"], row["flags"] & COPIED != 0) for row in wanted]


@pytest.mark.parametrize("name", MPIS)
def test_every_view_shows_the_bytes_of_the_file(name: str, array: tuple[Store, Path, Path], tmp_path: Path) -> None:
    store, path, twin = array
    mpi, trace = MPIS[name], tmp_path / "trace"
    program = compiled(mpi, tmp_path)
    # Open MPI (4.1.4, 5.0.11) ends by SIGFPE in nonblocking reads behind some views, or reads wrongly after them,
    # watched or not.
    calls = 4 if "openmpi" in name else 6
    numbers = [str(number) for number in (BLOCK, COLUMNS, ROWS, 1, STEPS, calls)]
    words = [*mpi.launcher, "-n", str(PROCESSES), program, path, twin, *numbers]
    traced = [STRIPEWISE, "run", "--store", store.root, "--trace", trace, "--", *words]
    assert "the same" in execute(traced, mpi.environment()).out
    assert "the same" in execute([STRIPEWISE, "run", "--store", store.root, "--", *words], mpi.environment()).out
    asked = [served for op, served in reads(trace, path) if op == "mpi_read"]
    # By chance; blocks that are read behind no view, or that have no copy, are the file's own.
    assert 0.04 < sum(asked) / len(asked) < 0.6, (sum(asked), len(asked))
    assert not any(served for _, served in reads(trace, twin))


@pytest.mark.parametrize("name", MPIS)
def test_what_an_mpi_refuses_it_refuses(name: str, array: tuple[Store, Path, Path], tmp_path: Path) -> None:
    store, path, twin = array
    mpi = MPIS[name]
    words, env = [*mpi.launcher, "-n", "1", compiled(mpi, tmp_path, "wrong")], mpi.environment()
    plain = execute([*words, twin], env).out
    assert "no type: class type" in plain and "uncommitted: class type, memory 07" in plain and "count 1" in plain
    assert execute([STRIPEWISE, "run", "--store", store.root, "--", *words, path], env).out == plain


#: A column, number by number: by pieces of a copy it would be read much slower than over the gaps.
FINE = """
import sys
from mpi4py import MPI
plain = open(sys.argv[2], "rb").read()
view = MPI.INT.Create_vector(20000, 1, 2).Commit()
file = MPI.File.Open(MPI.COMM_SELF, sys.argv[1], MPI.MODE_RDONLY)
file.Set_view(0, MPI.INT, view)
into = bytearray(80000)
file.Read_at(0, into)
assert into == b"".join(plain[at : at + 4] for at in range(0, 160000, 8))
"""


def test_a_view_that_is_finer_than_the_copies_is_not_read_number_by_number(
    array: tuple[Store, Path, Path], tmp_path: Path
) -> None:
    store, path, twin = array
    make_copies(store, path, [{"base": 0, "block": SIZE, "dims": [], "regions": column(0, store)["regions"]}])
    words = [sys.executable, "-c", FINE, path, twin]
    stripewise("run", "--store", store.root, "--trace", tmp_path / "trace", "--", *words)
    found = reads(tmp_path / "trace", path)
    assert ("mpi_read", False) in found and len(found) < 100


COLUMN = """
import sys
from mpi4py import MPI
comm, block, columns, rows = MPI.COMM_WORLD, *map(int, sys.argv[3:6])
plain, rank = open(sys.argv[2], "rb").read(), comm.rank
view = MPI.BYTE.Create_vector(rows, block, columns * block).Commit()
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDONLY)
file.Set_view(rank * block, MPI.BYTE, view)
into = bytearray(rows * block)
file.Read_all(into)
assert into == b"".join(plain[(row * columns + rank) * block :][:block] for row in range(rows))
file.Close()
"""


def test_a_column_behind_a_view_is_served_before_it_is_sieved(array: tuple[Store, Path, Path], tmp_path: Path) -> None:
    store, path, twin = array
    words = [MPIEXEC, "-n", "3", sys.executable, "-c", COLUMN, path, twin, str(BLOCK), str(COLUMNS), str(ROWS)]
    stripewise("run", "--store", store.root, "--trace", tmp_path / "trace", "--", *words)
    # As if the descriptor had been asked for each block; the MPI library itself has read nothing.
    assert sorted(reads(tmp_path / "trace", path)) == [("mpi_read", True)] * 3 + [("read", True)] * 3 * ROWS
    said = stripewise("show", tmp_path / "trace").out
    assert f"copies of it served {3 * ROWS} read(s), {format_size(3 * ROWS * BLOCK)}" in said
    # What the file was not asked for is no finding.
    assert "findings: none" in said
    page = tmp_path / "page.html"
    stripewise("show", tmp_path / "trace", "--html", page)
    assert f"copies of it served {3 * ROWS} read(s)" in page.read_text()


#: One process of the job writes the file through another open; all read behind their views before and after that.
WRITTEN = """
import os, sys
from mpi4py import MPI
comm, block, columns, rows = MPI.COMM_WORLD, *map(int, sys.argv[3:6])
rank, into, old = comm.rank, bytearray(rows * block), open(sys.argv[2], "rb").read()
view = MPI.BYTE.Create_vector(rows, block, columns * block).Commit()
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDONLY)
file.Set_view(rank * block, MPI.BYTE, view)
file.Read_at_all(0, into)
assert into == b"".join(old[(row * columns + rank) * block :][:block] for row in range(rows))
comm.Barrier()
if rank == 0:
    fd = os.open(sys.argv[1], os.O_WRONLY)
    os.pwrite(fd, bytes(len(old)), 0)
comm.Barrier()
file.Read_at_all(0, into)
assert into == bytes(rows * block), "old bytes"
file.Close()
"""


def test_who_writes_the_file_meanwhile_is_read(array: tuple[Store, Path, Path], tmp_path: Path) -> None:
    store, path, twin = array
    words = [MPIEXEC, "-n", "3", sys.executable, "-c", WRITTEN, path, twin, str(BLOCK), str(COLUMNS), str(ROWS)]
    stripewise("run", "--store", store.root, "--trace", tmp_path / "trace", "--", *words)
    served = [each for op, each in reads(tmp_path / "trace", path) if op == "mpi_read"]
    # A managed file's copies are written with it.
    assert sorted(served) == ([True] * 6 if path.parent == store.data else [False] * 3 + [True] * 3)


#: Threads of one process read by its individual pointer: together every block once.
THREADS = """
import sys, threading
from mpi4py import MPI
assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
comm, block, columns, rows = MPI.COMM_SELF, *map(int, sys.argv[3:6])
plain = open(sys.argv[2], "rb").read()
view = MPI.BYTE.Create_vector(rows, block, columns * block).Commit()
file, found = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDONLY), []
file.Set_view(block, MPI.BYTE, view)
def work():
    for _ in range(rows // 4):
        into = bytearray(block)
        file.Read(into)
        found.append(bytes(into))
for _ in range(40):
    file.Seek(0)
    found.clear()
    threads = [threading.Thread(target=work) for _ in range(4)]
    [each.start() for each in threads]
    [each.join() for each in threads]
    assert sorted(found) == sorted(plain[(row * columns + 1) * block :][:block] for row in range(rows))
file.Close()
"""


def test_threads_that_share_a_pointer_read_each_block_once(array: tuple[Store, Path, Path], tmp_path: Path) -> None:
    store, path, twin = array
    words = [sys.executable, "-c", THREADS, path, twin, str(BLOCK), str(COLUMNS), str(ROWS)]
    stripewise("run", "--store", store.root, "--trace", tmp_path / "trace", "--", *words)
    served = [each for op, each in reads(tmp_path / "trace", path) if op == "mpi_read"]
    assert len(served) == 40 * ROWS and sum(served) > 20 * ROWS
