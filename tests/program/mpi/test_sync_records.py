"""What a trace holds of the calls that wait for the device, on managed files and on plain ones, by MPI-IO and below."""

from __future__ import annotations

import sys

import pyarrow.parquet as pq
from rig import MPIEXEC, Maker, dirs, stripewise

JOB = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR, 0o644)
os.write(fd, bytes(1 << 20))
os.fsync(fd)
os.fdatasync(fd)
assert libc.sync_file_range(fd, ctypes.c_long(4096), ctypes.c_long(8192), 7) == 0
assert libc.syncfs(fd) == 0
"""
BY_MPI = """
import sys
from mpi4py import MPI
file = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Write_at(MPI.COMM_WORLD.rank << 20, bytes(1 << 20))
file.Sync()
file.Close()
"""


def test_every_call_that_syncs_is_recorded(make_store: Maker) -> None:
    store = make_store(dirs(2))
    for number, place in enumerate((store.data, store.base)):
        file, trace = place / "f", store.base / f"trace{number}"
        stripewise("run", "--store", store.root, "--trace", trace, "--", "python3", "-c", JOB, file)
        stripewise("collect", trace)
        rows = pq.read_table(trace / "trace.parquet", columns=["op", "file", "managed", "offset", "requested"])
        found = [tuple(row.values()) for row in rows.to_pylist() if row["op"] == "sync"]
        managed = place == store.data
        assert found == [
            ("sync", str(file), managed, at, asked) for at, asked in ((0, 0), (0, 1), (4096, 8192), (0, 0))
        ]


def test_a_sync_of_mpi_io_is_one_of_the_layer_below_too(make_store: Maker) -> None:
    store = make_store(dirs(2))
    file, trace = store.data / "f", store.base / "trace"
    job = (MPIEXEC, "-n", "2", sys.executable, "-c", BY_MPI, file)
    stripewise("run", "--store", store.root, "--trace", trace, "--", *job)
    stripewise("collect", trace)
    rows = pq.read_table(trace / "trace.parquet", columns=["op", "file", "rank"]).to_pylist()
    ranks = {
        op: {row["rank"] for row in rows if (row["op"], row["file"]) == (op, str(file))} for op in ("mpi_sync", "sync")
    }
    assert ranks == {"mpi_sync": {0, 1}, "sync": {0, 1}}
