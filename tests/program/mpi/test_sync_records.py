"""What a trace holds of the calls that wait for the device, on managed files and on plain ones."""

from __future__ import annotations

import pyarrow.parquet as pq
from rig import Maker, dirs, stripewise

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
