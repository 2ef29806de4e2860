"""What the player costs: a request of a path beside the same call in a plain loop, and how late it ends slack."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from bench_common import ROOT, Effort, run
from emulated_bench import MPIEXEC

from stripewise.pioneer import path as workpath

PLAYER = ROOT / "target/workloads/player"
LOOP = ROOT / "target/native/play"
REQUEST_BYTES, REQUESTS = 4096, 4096
GOAL_US = 2.0
#: Slack before each request, and how late its end may be.
SLACK_NS, LATE_US = 2_000_000, 100.0
#: Of each interface: open, write, read, close.
CALLS = {
    "posix": ("open", "pwrite", "pread", "close"),
    "mpi": ("mpi_open", "mpi_write_at", "mpi_read_at", "mpi_close"),
}


def playing(scratch: Path, effort: Effort) -> list[dict[str, object]]:
    """The entries `play.added_us_per_call` (of two interfaces the dearer, a node for each request) and of slack."""
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
    return [{**entry, "ratio": round(value / GOAL_US, 3)}, *_slacks(scratch, effort)]


def _slacks(scratch: Path, effort: Effort) -> list[dict[str, object]]:
    """How late slack ends (medians): where each process has a core, and with two to a core."""
    cores = len(os.sched_getaffinity(0))
    own, _ = _late(scratch, cores, effort)
    crowded, asleep = _late(scratch, 2 * cores, effort)
    return [
        {
            "name": "play.slack_late_us", "value": own, "unit": "us", "ratio": round(own / LATE_US, 3),
            "baseline": f"slack of 2 ms, {cores} processes on as many cores, median; goal {LATE_US:g} us",
        },
        {
            "name": "play.slack_late_crowded_us", "value": crowded, "unit": "us",
            "ratio": round(crowded / max(asleep, 0.001), 3),
            "baseline": f"{2 * cores} processes on {cores} cores; a program that only sleeps so long: {asleep:.3f} us",
        },
    ]  # fmt: skip


def _late(scratch: Path, processes: int, effort: Effort) -> tuple[float, float]:
    """Of the player and of a program that only sleeps: medians of their medians over turns of both, us."""
    times = 100 * effort.turns
    path = scratch / "slack.swp"
    body = [{"op": "access", "slack_ns": SLACK_NS}]
    workpath.from_json(
        path, {"files": [{"name": "asked{rank}", "class": "private"}], "nodes": [{"rounds": times, "body": body}]}
    )
    played, asleep = [], []
    for _ in range(effort.turns):
        said = run(MPIEXEC, "-n", processes, LOOP, "sleep", SLACK_NS, times)
        asleep.append(json.loads(said.splitlines()[-1])["late_us"])
        said = run(MPIEXEC, "-n", processes, PLAYER, "--replace", path, scratch)
        played.append(json.loads(said.splitlines()[-1])["slack_error_us"]["median"])
    return statistics.median(played), statistics.median(asleep)


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
