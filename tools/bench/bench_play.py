"""What the player costs: a request of a path beside the same call in a plain loop."""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from bench_common import ROOT, Effort, run

from stripewise.pioneer import path as workpath

PLAYER = ROOT / "target/workloads/player"
LOOP = ROOT / "target/native/play"
REQUEST_BYTES, REQUESTS = 4096, 4096
GOAL_US = 2.0
#: Of each interface: open, write, read, close.
CALLS = {
    "posix": ("open", "pwrite", "pread", "close"),
    "mpi": ("mpi_open", "mpi_write_at", "mpi_read_at", "mpi_close"),
}


def playing(scratch: Path, effort: Effort) -> list[dict[str, object]]:
    """The entry `play.added_us_per_call`: of two interfaces the dearer, a node for each request."""
    memory = Path(tempfile.mkdtemp(prefix="bench-", dir="/dev/shm"))
    try:
        added = {name: _added(scratch, memory, name, effort) for name in CALLS}
    finally:
        shutil.rmtree(memory)
    name, (value, loop) = max(added.items(), key=lambda item: item[1][0])
    others = ", ".join(f"{other} {us:.3f} us" for other, (us, _) in added.items() if other != name)
    baseline = (
        f"{name}: a loop of the same calls of 4 KiB on a file system in memory: {loop:.3f} us each; contents made and "
        f"compared; {others}; goal {GOAL_US:g} us"
    )
    entry = {"name": "play.added_us_per_call", "value": round(value, 3), "unit": "us", "baseline": baseline}
    return [{**entry, "ratio": round(value / GOAL_US, 3)}]


def _path(path: Path, name: str, calls: int) -> Path:
    open_, write, read, close = CALLS[name]
    nodes: list[dict[str, Any]] = [{"op": open_}]
    for number in range(calls // 2):
        at = number % REQUESTS * REQUEST_BYTES
        nodes += [{"op": op, "at": at, "size": REQUEST_BYTES} for op in (write, read)]
    written = {"files": [{"name": "played", "class": "shared"}], "nodes": [*nodes, {"op": close}]}
    workpath.from_json(path, written)
    return path


def _added(scratch: Path, memory: Path, name: str, effort: Effort) -> tuple[float, float]:
    """Added and the loop's time of a call, us: medians over turns of both."""
    calls = 20_000 * effort.turns
    path = _path(scratch / f"{name}.swp", name, calls)
    loops, added = [], []
    for _ in range(effort.turns):
        loop = json.loads(run(LOOP, name, memory / "loop", calls))["ns_per_call"] / 1e3
        text = run(PLAYER, "--as-fast-as-possible", "--replace", path, memory)
        said = json.loads(text.splitlines()[-1])
        loops.append(loop)
        added.append(said["seconds"] * 1e6 / said["requests"] - loop)
    return statistics.median(added), statistics.median(loops)
