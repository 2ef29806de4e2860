"""What copies cost and give: reads of 4 KiB, columns behind MPI-IO views, and writes that they follow."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path

from bench_common import ROOT, STRIPEWISE, Effort, make_store, run

CALLS = ROOT / "target/native/calls"
MPIEXEC = ROOT / ".venv/bin/mpiexec"
#: Bytes of the files of which 4 KiB are read at a time.
SMALL_BYTES = 256 << 10
#: Columns that are read: blocks, one in every row.
BLOCK_BYTES, ROW_BYTES, COLUMNS = 16 << 10, 1 << 20, 4
#: A file must have been left alone for so long before it is copied.
AT_REST_S = 2.1

#: Two processes read two columns each; how long that took.
JOB = """
import sys
from mpi4py import MPI
comm, path, how, (block, row, rows, columns) = MPI.COMM_WORLD, sys.argv[1], sys.argv[2], map(int, sys.argv[3:])
view, into = MPI.BYTE.Create_vector(rows, block, row).Commit(), bytearray(rows * block)
info = MPI.Info.Create({"romio_ds_read": "disable"} if how == "unsieved" else {})
file = MPI.File.Open(comm, path, MPI.MODE_RDONLY, info)
comm.Barrier()
start = MPI.Wtime()
for column in range(comm.rank, columns, comm.size):
    file.Set_view(column * block, MPI.BYTE, view, info=info)
    (file.Read_all if how == "collective" else file.Read)(into)
comm.Barrier()
if comm.rank == 0:
    print(MPI.Wtime() - start)
"""


#: Writes in turns to a file with one copy of all of it, and to two without: nanoseconds of the median call each.
WRITES = """
import json, os, statistics, sys, time
size, request, rounds = map(int, sys.argv[1:4])
fds = [os.open(path, os.O_RDWR) for path in sys.argv[4:]]
took, data = [[] for _ in fds], os.urandom(request)
for number in range(rounds):
    at = number * request % size
    for fd, all_of_it in zip(fds, took):
        start = time.perf_counter_ns()
        os.pwrite(fd, data, at)
        all_of_it.append(time.perf_counter_ns() - start)
print(json.dumps([statistics.median(each) for each in took]))
"""
WRITE_BYTES = {"64k": 64 << 10, "1m": 1 << 20}


def copies(scratch: Path, effort: Effort) -> list[dict[str, object]]:
    """The entries `replica.nohit_added_ns`, `replica.hit_added_ns`, `replica.mpi_*` and `replica.write_*`."""
    store, data = make_store(scratch / "copies", [(f"t{n}", "hdd", "dir", 0.0, 0.0, 0.0) for n in range(4)])
    rows = max(1, effort.file_mib // 2)
    without, small, array = (scratch / name for name in ("without-copies", "with-copies", "columns"))
    for path, size in ((without, SMALL_BYTES), (small, SMALL_BYTES), (array, rows * ROW_BYTES)):
        path.write_bytes(os.urandom(size))
    time.sleep(AT_REST_S)
    _copy(store, small, [(0, SMALL_BYTES, 1)])
    _copy(store, array, [(column * BLOCK_BYTES, BLOCK_BYTES, rows) for column in range(COLUMNS)])
    found = json.loads(run(STRIPEWISE, "run", "--store", store, "--", CALLS, "pread", without, small).splitlines()[-1])
    direct = found["direct_ns"]
    baseline = f"the C library's pread64 of the same size on a file without copies: {direct} ns"
    nohit, hit = found["unmanaged_added_ns"], found["managed_added_ns"]
    return [
        _entry("replica.nohit_added_ns", nohit, "ns", f"{baseline}; goal 10 ns", nohit / 10),
        _entry(
            "replica.hit_added_ns", hit, "ns, the look at the file's times included", baseline, (direct + hit) / direct
        ),
        *_behind_views(store, array, rows, effort),
        *_writes(store, data, rows, effort),
    ]


def _entry(name: str, value: float, unit: str, baseline: str, ratio: float) -> dict[str, object]:
    return {"name": name, "value": round(value, 4), "unit": unit, "baseline": baseline, "ratio": round(ratio, 3)}


def _copy(store: Path, path: Path, sets: list[tuple[int, int, int]], on_write: str = "update") -> None:
    """Copies of sets of blocks: first byte, bytes of a block, how many, a row apart."""
    replicas = [
        {
            "base": base,
            "block": block,
            "dims": [[ROW_BYTES, count]],
            "regions": [{"start": 0, "len": 4 << 20, "stripes": [[target, 1 << 20] for target in range(4)]}],
            "on_write": on_write,
        }
        for base, block, count in sets
    ]
    made = "import sys; from stripewise import native; native.call('store_copies_make', *sys.argv[1:])"
    run(sys.executable, "-c", made, store, path, json.dumps({"replicas": replicas}))


def _behind_views(store: Path, array: Path, rows: int, effort: Effort) -> list[dict[str, object]]:
    """By turns from the file and from copies, all in the page cache."""
    took: dict[tuple[str, bool], list[float]] = {}
    numbers = (BLOCK_BYTES, ROW_BYTES, rows, COLUMNS)
    for _ in range(effort.turns):
        for how in ("independent", "collective", "unsieved"):
            job = [MPIEXEC, "-n", 2, sys.executable, "-c", JOB, array, how, *numbers]
            for served in (False, True) if how != "unsieved" else (False,):
                before = [STRIPEWISE, "run", "--store", store, "--"] if served else []
                took.setdefault((how, served), []).append(float(run(*before, *job)))
    seconds = {which: statistics.median(each) for which, each in took.items()}

    def entry(how: str) -> dict[str, object]:
        plain, unsieved = seconds[how, False], seconds["unsieved", False]
        baseline = f"the same calls on the file: {plain:.4f} s; independent without data sieving {unsieved:.4f} s"
        mib = COLUMNS * rows * BLOCK_BYTES >> 20
        unit = f"s for {mib} MiB in blocks of 16 KiB, one every MiB, behind views of two processes, in the page cache"
        return _entry(f"replica.mpi_{how}_s", seconds[how, True], unit, baseline, seconds[how, True] / plain)

    return [entry("independent"), entry("collective")]


def _writes(store: Path, data: Path, rows: int, effort: Effort) -> list[dict[str, object]]:
    """A write that is also one of a copy, over two writes of files without copies; and one that invalidates a copy over
    one write.
    """
    size = rows * ROW_BYTES
    files = [data / name for name in ("copied", "one", "other")]
    for path in files:
        run(STRIPEWISE, "run", "--store", store, "--", "dd", "if=/dev/urandom", f"of={path}", "bs=1M", f"count={rows}")
    _copy(store, files[0], [(0, size, 1)])

    def turns(request: int) -> list[list[float]]:
        """Median nanoseconds of a write to each of the files, turn by turn."""
        command = [sys.executable, "-c", WRITES, size, request, 20 * rows, *files]
        return [json.loads(run(STRIPEWISE, "run", "--store", store, "--", *command)) for _ in range(effort.turns)]

    entries = []
    for name, request in WRITE_BYTES.items():
        took = turns(request)
        ratio, told = statistics.median(each[0] / (each[1] + each[2]) for each in took), took[-1]
        unit = f"times two writes of {request >> 10} KiB to managed files without copies, in the page cache"
        baseline = f"last turn {told[1]:,.0f} + {told[2]:,.0f} ns, with one copy {told[0]:,.0f} ns; goal 1.15"
        entries.append(_entry(f"replica.write_update_{name}_ratio", ratio, unit, baseline, ratio / 1.15))
    _copy(store, files[0], [(0, size, 1)], "invalidate")
    took = turns(WRITE_BYTES["64k"])
    ratio, told = statistics.median(2 * each[0] / (each[1] + each[2]) for each in took), took[-1]
    unit = "times a write of 64 KiB to a managed file without copies, in the page cache"
    baseline = f"last turn {told[1]:,.0f} and {told[2]:,.0f} ns, with one copy that writes invalidate {told[0]:,.0f} ns"
    entries.append(_entry("replica.write_invalidate_64k_ratio", ratio, unit, baseline, ratio))
    return entries
