"""What it costs that collective MPI-IO calls are decided on, and what it gains."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
from pathlib import Path

from bench_common import ROOT, STRIPEWISE, Effort, run

PROGRAM = ROOT / "target/native/mpi"
MPIIO = ROOT / "target/workloads/mpiio"
MPIEXEC = ROOT / ".venv/bin/mpiexec"
ENGINE = (STRIPEWISE, "run", "--engine")
GOAL_NS = 300
#: Requests that interleave.
SHAPE = ("--pattern", "strided", "--request-size", "64KiB", "--phases", "write,read")


def deciding(scratch: Path, effort: Effort) -> list[dict[str, object]]:
    """The entries `engine.*`."""
    memory = Path(tempfile.mkdtemp(prefix="bench-", dir="/dev/shm"))
    try:
        return [*_calls(memory, effort), *(_job(scratch, processes, effort) for processes in (2, 4))]
    finally:
        shutil.rmtree(memory)


def _figures(text: str) -> list[dict[str, float]]:
    return [dict(json.loads(line)) for line in text.splitlines() if line.startswith("{")]


def _calls(memory: Path, effort: Effort) -> list[dict[str, object]]:
    """Two processes, of which the slower one counts; by rules, so that no call is tried in the other mode."""
    entries = []
    for name, way, figure, what in (
        ("engine.added_ns_per_call", "added", "added_ns", "an independent call on a file that is decided on"),
        ("engine.decided_added_ns", "decided", "decided_ns", "a collective call that is made independently"),
    ):
        found, direct = [], []
        for _ in range(effort.turns):
            text = run(*ENGINE, "--by-rules", "--", MPIEXEC, "-n", "2", PROGRAM, way, memory / way)
            found.append(max(each[figure] for each in _figures(text)))
            direct.append(max(each["direct_ns"] for each in _figures(text)))
        value = statistics.median(found)
        own = f"MPICH's own MPI_File_write_at of no bytes {statistics.median(direct):.0f} ns"
        baseline, ratio = f"{what}: {own}; goal {GOAL_NS} ns", round(value / GOAL_NS, 3)
        entries.append({"name": name, "value": round(value, 1), "unit": "ns", "baseline": baseline, "ratio": ratio})
    return entries


def _job(scratch: Path, processes: int, effort: Effort) -> dict[str, object]:
    """By turns: independent calls, collective ones, and collective ones under `run --engine`, on a plain file."""
    environment = {**os.environ, "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}"}
    command = [MPIEXEC, "-n", str(processes), MPIIO, "--file", scratch / "engine", *SHAPE, "--no-verify", "--delete"]
    command += ["--file-size", f"{effort.file_mib // 8}MiB"]
    ways: dict[str, list[object]] = {
        "independent": [*command],
        "collective": [*command, "--collective"],
        "engine": [*ENGINE, "--", *command, "--collective"],
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(max(1, effort.turns // 2)):
        for way, words in ways.items():
            (found,) = _figures(run(*words, environment=environment))
            times[way].append(found["write_seconds"] + found["read_seconds"])
    took = {way: statistics.median(found) for way, found in times.items()}
    better = min(took["independent"], took["collective"])
    fixed = f"independent ({took['independent']:.3f} s) and collective calls ({took['collective']:.3f} s)"
    baseline = f"the better of {fixed}, by turns, plain file, page cache"
    unit = f"s, {effort.file_mib // 8} MiB written and read"
    name = f"engine.collective_{processes}_processes_s"
    ratio = round(took["engine"] / better, 3)
    return {"name": name, "value": round(took["engine"], 3), "unit": unit, "baseline": baseline, "ratio": ratio}
