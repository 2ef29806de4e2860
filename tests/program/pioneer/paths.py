"""Hand-made workload paths, and the player on them, for the tests of the player."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rig import MPIEXEC, ROOT, Result, execute

from stripewise.pioneer import path as workpath

PLAYER = ROOT / "target" / "workloads" / "player"
KIB = 1024


@dataclass
class Written:
    """A path in its JSON form, node by node."""

    files: list[dict[str, Any]]
    tables: dict[str, Any] = field(default_factory=dict)
    nodes: list[dict[str, Any]] = field(default_factory=list)

    def add(self, op: str, file: int = 0, **keys: Any) -> None:
        self.nodes.append({"op": op, "file": file, **keys})

    def loop(self, rounds: int, body: list[dict[str, Any]], **keys: Any) -> None:
        self.nodes.append({"rounds": rounds, "body": body, **keys})

    def write(self, path: Path) -> Path:
        workpath.from_json(path, {"files": self.files, **self.tables, "nodes": self.nodes})
        return path


def file(name: str, kind: str = "shared", **keys: Any) -> dict[str, Any]:
    return {"name": name, "class": kind, **keys}


def node(op: str, **keys: Any) -> dict[str, Any]:
    return {"op": op, **keys}


def played(path: Path, directory: Path, processes: int, *options: str, code: int | None = 0) -> Result:
    """The player under mpiexec; what goes wrong must be one line."""
    directory.mkdir(exist_ok=True)
    result = execute([MPIEXEC, "-n", str(processes), PLAYER, *options, path, directory], code=code, timeout_s=60)
    if result.code != 0:
        assert "player: " in result.err, result.report
    return result


def said(result: Result) -> dict[str, Any]:
    """The line at the end."""
    (line,) = result.out.splitlines()
    return dict(json.loads(line))


def complaint(result: Result) -> str:
    """The one message of a run that failed."""
    lines = [line for line in result.err.splitlines() if line.startswith("player: ")]
    assert result.code != 0 and len(lines) == 1, result.report
    return lines[0]


@contextlib.contextmanager
def small_disk(scratch: Path) -> Iterator[Path]:
    """A file system of 1 MiB; who may not mount skips the test."""
    small = scratch / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], capture_output=True).returncode:
        pytest.skip("not run: mounting a file system needs root")
    try:
        yield small
    finally:
        # Processes of a run that was ended may have it open for a moment.
        for _ in range(100):
            if subprocess.run(["umount", small], capture_output=True).returncode == 0:
                break
            time.sleep(0.05)


def all_operations() -> Written:
    """A path with every operation that there is."""
    size = 64 * KIB
    made = Written(
        [
            file("s"), file("d/p{rank}", "private"), file("r", "root", bytes=100_000), file("sp"),
            file("m{rank}", "private", directory=True), file("p2.{rank}", "private"), file("v"), file("b"),
            file("log{rank}", "private"),
        ],
        {"comms": ["world", {"blocks": 2}], "views": [{"piece": 512, "distance": 4096, "pieces": 1, "tile": 4096}]},
    )  # fmt: skip
    for op in ("stat", "access"):
        made.add(op, 1)
    made.add("statfs", 2, who="root")
    made.add("open", 1)
    made.loop(10, [node("write0", file=1, size=size), node("fsync", file=1)])
    made.loop(10, [node("read1", file=1, size=size, stride=size), node("read0", file=1, size=100)])
    for op, keys in (
        ("pwrite", {"at": 12_345, "size": 777}), ("pread", {"at": 12_300, "size": 1000}),
        ("write1", {"at": 99, "size": 5}), ("seek", {"at": 7}), ("fdatasync", {}),
        ("fallocate", {"size": 1 << 20}), ("fstat", {}), ("fcntl", {}),
        ("lock", {"size": 100}), ("lock", {"size": 100}), ("mmap", {"at": 4096, "size": 8192}),
        ("advise", {"size": 100}), ("munmap", {}), ("ftruncate", {"size": 5000}), ("pread", {"size": 10_000}),
        ("close", {}),
    ):  # fmt: skip
        made.add(op, 1, **keys)
    made.add("rename", 1, size=6)
    for op, keys in (
        ("stat", {}),
        ("open", {"size": 1}),
        ("read0", {"size": 5000}),
        ("close", {}),
        ("link", {"size": 2}),
    ):
        made.add(op, 5, **keys)
    made.add("unlink", 1)
    made.add("symlink", 5, size=2)
    made.add("readlink", 1)
    made.add("unlink", 1)
    made.add("setattr", 5)
    made.add("truncate", 5, size=10)
    made.add("mknod", 1)
    for op in ("mkdir", "opendir", "readdir", "close"):
        made.add(op, 4)
    made.add("opendir", 4, alone=True)
    made.add("rmdir", 4)
    for op, keys in (("open", {"size": 1}), ("read0", {"size": 60_000}), ("read0", {"size": 60_000}), ("close", {})):
        made.add(op, 2, who="root", **keys)
    for op, keys in (
        ("open", {"size": 2 | 4 | 32}),
        ("write0", {"size": 100}),
        ("write0", {"size": 100}),
        ("close", {}),
    ):
        made.add(op, 8, **keys)
    for op, keys in (("open", {"size": 1}), ("read0", {"size": 300}), ("close", {})):
        made.add(op, 8, **keys)
    made.add("mpi_open")
    for op in (
        "mpi_write_at", "mpi_read_at", "mpi_write_at_all", "mpi_read_at_all", "mpi_iwrite_at0", "mpi_iread_at0",
        "mpi_wait", "mpi_wait", "mpi_iwrite_at1", "mpi_iread_at1", "mpi_iwrite_at_all0", "mpi_wait",
        "mpi_iread_at_all0", "mpi_wait", "mpi_iwrite_at_all1", "mpi_iread_at_all1", "mpi_write1", "mpi_write0",
        "mpi_read1", "mpi_read0",
        "mpi_write_all1", "mpi_write_all0", "mpi_read_all1", "mpi_read_all0", "mpi_iwrite10", "mpi_iwrite00",
        "mpi_wait", "mpi_wait",
        "mpi_iread10", "mpi_iread00", "mpi_wait", "mpi_wait", "mpi_iwrite11", "mpi_iwrite01", "mpi_iread11",
        "mpi_iread01", "mpi_seek", "mpi_sync", "mpi_get_size", "mpi_iwrite00",
    ):  # fmt: skip
        made.add(op, at=3, at_rank=2 * size, size=size)
    made.add("mpi_atomicity", size=1)
    made.add("mpi_close")
    made.add("mpi_open", 3, size=7)
    made.add("mpi_set_size", 3)
    made.add("mpi_preallocate", 3, size=size)
    for op in ("mpi_write_shared", "mpi_write_ordered", "mpi_read_ordered", "mpi_read_shared"):
        made.add(op, 3, size=1000)
    made.add("mpi_close", 3)
    made.add("mpi_delete", 3, who="root")
    made.add("mpi_open", 6)
    made.add("mpi_view", 6, view=1, at=100, at_rank=512)
    made.add("mpi_write_all0", 6, size=8192)
    made.add("mpi_read_all1", 6, at=100, at_rank=512, size=8192)
    made.add("mpi_view", 6)
    made.add("mpi_close", 6)
    made.add("mpi_open", 7, comm=1)
    for op in ("mpi_write_at_all", "mpi_read_at_all"):
        made.add(op, 7, comm=1, at_rank=size, size=size)
    made.add("mpi_close", 7, comm=1)
    return made
