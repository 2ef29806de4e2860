"""Which replica served which read: in the trace, on the page in words, in JSON, and in pictures."""

from __future__ import annotations

import json
import os
import random
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rig import MPIEXEC, Maker, Store, stripewise
from test_copies import BLOCK, COLUMNS, EMULATED, ROWS, SIZE, make_copies

from stripewise import native

COPIED = 1 << 13
ROW = BLOCK * COLUMNS
#: Replicas by number: rows one after another, columns one after another, and one of which no read is short enough.
BY_ROW, BY_COLUMN, UNUSED = range(3)
BLOCKS = [
    {"base": 0, "block": ROW, "dims": [[ROW, ROWS]]},
    {"base": 0, "block": BLOCK, "dims": [[BLOCK, COLUMNS], [ROW, ROWS]]},
    {"base": 512, "block": 512, "dims": [[ROW, ROWS]]},
]


def replicas(store: Store, order: list[int]) -> list[dict[str, object]]:
    cycle = [[number, BLOCK] for number in range(len(store.targets))]
    regions = [{"start": 0, "len": BLOCK * len(cycle), "stripes": cycle}]
    return [{**BLOCKS[number], "regions": regions} for number in order]


@pytest.fixture(params=["plain", "managed"])
def array(request: pytest.FixtureRequest, make_store: Maker) -> tuple[Store, Path, Path]:
    """A store, a plain or a managed file with copies in both orders, and a file of the same bytes without."""
    store = make_store(EMULATED)
    twin = store.plain / "twin"
    twin.write_bytes(random.Random(1).randbytes(SIZE))
    path = (store.plain if request.param == "plain" else store.data) / "array"
    stripewise("run", "--store", store.root, "--", "cp", twin, path)
    make_copies(store, path, replicas(store, [BY_ROW, BY_COLUMN, UNUSED]))
    return store, path, twin


#: Reads a column and all rows in every way, and once over the end of a row, which no block holds.
READS = """
import os, sys
block, columns, rows = map(int, sys.argv[3:6])
plain, fd = open(sys.argv[2], "rb").read(), os.open(sys.argv[1], os.O_RDONLY)
row = block * columns
for number in range(rows):
    at = number * row + 5 * block
    assert os.pread(fd, block, at) == plain[at : at + block]
    os.lseek(fd, number * row, os.SEEK_SET)
    assert os.read(fd, 2 * block) == plain[number * row :][: 2 * block]
    parts = [bytearray(block), bytearray(2 * block)]
    assert os.preadv(fd, parts, number * row + block) == 3 * block
assert len(os.pread(fd, 2 * block, row - block)) == 2 * block
"""
#: A column of each rank behind a view, then a row of it.
VIEWS = """
import sys
from mpi4py import MPI
comm, block, columns, rows = MPI.COMM_WORLD, *map(int, sys.argv[3:6])
plain, rank, row = open(sys.argv[2], "rb").read(), comm.rank, block * columns
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDONLY)
file.Set_view(rank * block, MPI.BYTE, MPI.BYTE.Create_vector(rows, block, row).Commit())
into = bytearray(rows * block)
file.Read_all(into)
assert into == b"".join(plain[number * row + rank * block :][:block] for number in range(rows))
file.Set_view(0, MPI.BYTE, MPI.BYTE)
into = bytearray(row)
file.Read_at(rank * row, into)
assert into == plain[rank * row :][:row]
file.Close()
"""


def traced(store: Store, name: str, *words: object) -> Path:
    trace = store.base / name
    numbers = map(str, (BLOCK, COLUMNS, ROWS))
    stripewise("run", "--store", store.root, "--trace", trace, "--", *words, *numbers)
    stripewise("collect", trace)
    return trace


def reads(trace: Path, path: Path) -> list[tuple[int, int, int | None]]:
    """Reads of a file by descriptors: offset, bytes, and the replica that served it."""
    rows = pq.read_table(trace / "trace.parquet", columns=["op", "file", "offset", "done", "flags", "aux"]).to_pylist()
    wanted = [row for row in rows if (row["op"], row["file"]) == ("read", str(path))]
    assert all(row["aux"] == 0 for row in wanted if not row["flags"] & COPIED)
    return [(row["offset"], row["done"], row["aux"] - 1 if row["flags"] & COPIED else None) for row in wanted]


def copied(trace: Path, path: Path) -> dict[str, Any]:
    said = json.loads(stripewise("show", trace, "--json").out)
    (found,) = [each["copied"] for each in said["run"]["files"] if each["path"] == str(path)]
    return found


def told(trace: Path) -> list[str]:
    """The lines on copies."""
    lines = [line.strip() for line in stripewise("show", trace).out.splitlines()]
    return [
        line for line in lines if line.startswith(("copies of it", "replica ", "all of them ")) or "replicas" in line
    ]


def test_each_read_has_the_number_of_its_replica(array: tuple[Store, Path, Path]) -> None:
    store, path, twin = array
    trace = traced(store, "trace", "python3", "-c", READS, path, twin)
    served = reads(trace, path)
    by_column = [(number * ROW + 5 * BLOCK, BLOCK, BY_COLUMN) for number in range(ROWS)]
    rows = [(number * ROW + at * BLOCK, size * BLOCK) for number in range(ROWS) for at, size in ((0, 2), (1, 3))]
    by_row = [(*each, BY_ROW) for each in rows]
    assert sorted(served) == sorted([*by_column, *by_row, (ROW - BLOCK, 2 * BLOCK, None)])

    assert told(trace) == [
        f"copies of it served {3 * ROWS} read(s), 960.0 KiB",
        f"replica 0: {2 * ROWS} read(s), 800.0 KiB; replica 1: {ROWS} read(s), 160.0 KiB",
        "1 of its 3 replicas served no read: 2",
    ]
    assert copied(trace, path) == {
        "reads": 3 * ROWS,
        "bytes": 6 * BLOCK * ROWS,
        "replicas": [
            {"number": BY_ROW, "reads": 2 * ROWS, "bytes": 5 * BLOCK * ROWS, "blocks": BLOCKS[BY_ROW]},
            {"number": BY_COLUMN, "reads": ROWS, "bytes": BLOCK * ROWS, "blocks": BLOCKS[BY_COLUMN]},
            {"number": UNUSED, "reads": 0, "bytes": 0, "blocks": BLOCKS[UNUSED]},
        ],
    }
    page, slices = store.base / "page.html", store.base / "out.pftrace"
    stripewise("show", trace, "--html", page, "--perfetto", slices)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert data is not None
    (shown,) = [each for each in json.loads(data[1])["runs"][0]["files"] if each["path"] == str(path)]
    assert shown["replicas"]["served"] == [[0, 2 * ROWS, 5 * BLOCK * ROWS], [1, ROWS, BLOCK * ROWS]]
    assert shown["replicas"]["coloured"] == [BY_ROW, BY_COLUMN] and "replica" in shown["single"]
    assert "1 of its 3 replicas served no read: 2" in shown["layers"]
    # An argument of a slice: its name by number, then the replica's.
    raw = slices.read_bytes()
    assert [raw.count(bytes([0x22, 4, 0x08, 4, 0x18, number])) for number in range(3)] == [2 * ROWS, ROWS, 0]

    # Other copies than those that served the run: their numbers say nothing of it.
    make_copies(store, path, replicas(store, [BY_COLUMN, BY_ROW]))
    assert [each["blocks"] for each in copied(trace, path)["replicas"]] == [None, None]
    assert len(told(trace)) == 2


def test_a_call_of_mpi_io_has_the_replica_of_each_of_its_ranges(array: tuple[Store, Path, Path]) -> None:
    store, path, twin = array
    trace = traced(store, "trace", MPIEXEC, "-n", "3", sys.executable, "-c", VIEWS, path, twin)
    columns = [(number * ROW + rank * BLOCK, BLOCK, BY_COLUMN) for number in range(ROWS) for rank in range(3)]
    assert sorted(reads(trace, path)) == sorted([*columns, *((rank * ROW, ROW, BY_ROW) for rank in range(3))])
    assert told(trace)[1:] == [
        f"replica 1: {3 * ROWS} read(s), 480.0 KiB; replica 0: 3 read(s), 144.0 KiB",
        "1 of its 3 replicas served no read: 2",
    ]


def test_of_many_replicas_the_largest_are_named_and_all_are_in_json(make_store: Maker) -> None:
    store = make_store(EMULATED)
    path = store.plain / "array"
    path.write_bytes(os.urandom(SIZE))
    twin = store.plain / "twin"
    twin.write_bytes(path.read_bytes())
    rows = [{"base": number * ROW, "block": ROW, "dims": []} for number in range(ROWS)]
    regions = [{"start": 0, "len": BLOCK, "stripes": [[0, BLOCK]]}]
    made = [{**each, "regions": regions} for each in rows]
    native.call("store_copies_make", str(store.root), str(path), json.dumps({"replicas": made}))
    trace = traced(store, "trace", "python3", "-c", READS, path, twin)
    _, used = told(trace)
    assert used.startswith("replica 0: 3 read(s), 24.0 KiB; replica 1: 3 read(s)") and used.endswith("; and 34 more")
    assert [each["number"] for each in copied(trace, path)["replicas"]] == list(range(ROWS))
