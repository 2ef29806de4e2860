"""The files of the package that a command walks through: those in which the body of a function runs.

    tools/walks/plan.py plan TRACE --cluster CLUSTER --policy h2dp
    tools/walks/plan.py                       the same with a small trace and cluster of its own, and -o
    tools/walks/plan.py --policy best         that with other options

A file counts once a function, method, property or comprehension that stands in it is entered while no module is being
loaded: definitions, decorators and what modules compute at their top are the start-up, not the walk. Methods that
dataclasses write by themselves stand in no file and do not count. The list in ARCHITECTURE.md ("The walk of a plan") is
made with it, and tests/python/test_walk.py holds the one against the other.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import CodeType, FrameType

import pyarrow as pa
import pyarrow.parquet as pq

import stripewise
from stripewise.cli.main import main

PACKAGE = Path(stripewise.__file__).parent
KIB, MIB = 1 << 10, 1 << 20


class Walk:
    """The files of the package that were entered while it was the profiler, in the order of their first function."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self._seen: set[CodeType] = set()

    def __enter__(self) -> Walk:
        threading.setprofile(self._entered)
        sys.setprofile(self._entered)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _entered(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code in self._seen:
            return
        path = Path(code.co_filename)
        if path.is_relative_to(PACKAGE) and is_loading(frame):
            # It may be entered again, for the command itself.
            return
        self._seen.add(code)
        if path.is_relative_to(PACKAGE):
            self.files[str(path.relative_to(PACKAGE))] = None


def is_loading(frame: FrameType | None) -> bool:
    """Whether a frame is a module's or a class's own code, or was called by such code of the package."""
    while frame is not None:
        if not frame.f_code.co_flags & CO_NEWLOCALS and Path(frame.f_code.co_filename).is_relative_to(PACKAGE):
            return True
        frame = frame.f_back
    return False


def small_trace(place: Path) -> Path:
    """A trace of a file whose first regions are the hot ones."""
    rows = [(region * MIB + k * 64 * KIB, k % 2) for region in range(16) for k in range(16 - region)]
    count = range(len(rows))
    table = {
        "op": [("read", "write")[write] for _, write in rows],
        "file": ["/data/f"] * len(rows),
        "offset": [offset for offset, _ in rows],
        "done": [64 * KIB] * len(rows),
        "start_ns": [number * 10**6 for number in count],
        "end_ns": [number * 10**6 + 500 for number in count],
        "pid": [number % 4 for number in count],
    }
    pq.write_table(pa.table(table), place / "trace.parquet")
    return place / "trace.parquet"


def small_cluster(place: Path) -> Path:
    """A cluster.toml of three hard disks and two SSDs, which have room for some of the regions."""
    lines = ["version = 1"]
    for klass, servers, capacity, startup_s, per_byte_s in (
        ("hdd", 3, 0, 3e-3, 1e-8),
        ("ssd", 2, 2 * MIB, 1e-4, 2.5e-9),
    ):
        for number in range(servers):
            lines += ["[[target]]", f'name = "{klass}{number}"', f'class = "{klass}"', f'path = "{klass}{number}"']
            lines += [f"startup_{op}_s = {startup_s}" for op in ("read", "write")]
            lines += [f"per_byte_{op}_s = {per_byte_s}" for op in ("read", "write")]
            lines.append(f"capacity_bytes = {capacity}")
    (place / "cluster.toml").write_text("\n".join(lines) + "\n")
    return place / "cluster.toml"


def walk(words: list[str]) -> list[str]:
    """The files that `stripewise WORDS` walks through; what it prints goes to stderr."""
    sys.argv = ["stripewise", *words]
    with contextlib.redirect_stdout(sys.stderr), Walk() as found:
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise
    return list(found.files)


def run(words: list[str]) -> list[str]:
    """The walk of a command, or of a plan of our own with these options."""
    if words and not words[0].startswith("-"):
        return walk(words)
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        plan = ["plan", str(small_trace(place)), "--cluster", str(small_cluster(place)), "--policy", "h2dp"]
        return walk([*plan, "--region-size", "1MiB", "-o", str(place / "plan.json"), *words])


if __name__ == "__main__":
    found = run(sys.argv[1:])
    print(*found, f"{len(found)} files", sep="\n")
