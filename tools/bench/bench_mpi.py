"""What recording the mpi layer costs: a call, and real runs of an MPI job."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
from pathlib import Path

from bench_common import ROOT, STRIPEWISE, Effort, make_store, run

PROGRAM = ROOT / "target/native/mpi"
MPIIO = ROOT / "target/workloads/mpiio"
MPIEXEC = ROOT / ".venv/bin/mpiexec"


def recording(scratch: Path, effort: Effort) -> list[dict[str, object]]:
    """The entries `trace.mpi_*`."""
    memory = Path(tempfile.mkdtemp(prefix="bench-", dir="/dev/shm"))
    try:
        costs = [*_calls(scratch, memory, effort), *_small(scratch, memory, effort)]
        return [*costs, *_bytes(scratch, memory), _job(scratch, effort)]
    finally:
        shutil.rmtree(memory)


def _traced(scratch: Path, *command: object, layers: str = "both") -> str:
    trace = scratch / "mpi-trace"
    shutil.rmtree(trace, ignore_errors=True)
    return run(STRIPEWISE, "run", "--trace", trace, "--layers", layers, "--", *command)


def _figures(text: str) -> dict[str, float]:
    return dict(json.loads([line for line in text.splitlines() if line.startswith("{")][-1]))


def _entry(name: str, value: float, unit: str, baseline: str, ratio: float) -> dict[str, object]:
    return {"name": name, "value": round(value, 4), "unit": unit, "baseline": baseline, "ratio": round(ratio, 3)}


def _calls(scratch: Path, memory: Path, effort: Effort) -> list[dict[str, object]]:
    store, _ = make_store(scratch / "mpi", [("t0", "hdd", "dir", 0.0, 0.0, 0.0)])
    idle, recorded = [], []
    for _ in range(effort.turns):
        idle.append(_figures(run(STRIPEWISE, "run", "--store", store, "--", PROGRAM, "added", memory / "idle")))
        recorded.append(_figures(_traced(scratch, PROGRAM, "added", memory / "recorded", layers="mpi")))

    def entry(name: str, of: list[dict[str, float]], figure: str, goal: float) -> dict[str, object]:
        value = statistics.median(each[figure] for each in of)
        direct = statistics.median(each["direct_ns"] for each in of)
        baseline = f"MPICH's own MPI_File_write_at of no bytes: {direct:.0f} ns; goal {goal:.0f} ns"
        return _entry(name, value, "ns", baseline, value / goal)

    return [
        entry("trace.mpi_idle_added_ns", idle, "added_ns", 15),
        entry("trace.mpi_record_added_ns", recorded, "added_ns", 200),
        entry("trace.mpi_strided_added_ns", recorded, "strided_ns", 500),
        entry("trace.mpi_pointer_added_ns", recorded, "pointer_ns", 200),
    ]


def _small(scratch: Path, memory: Path, effort: Effort) -> list[dict[str, object]]:
    """4 KiB into the page cache of a file system in memory, by turns without the library and traced."""
    plain: list[float] = []
    traced: dict[str, list[float]] = {"posix": [], "mpi": [], "both": []}
    for _ in range(effort.turns):
        plain.append(_figures(run(PROGRAM, "small", memory / "plain"))["small_ns"])
        for layers, found in traced.items():
            text = _traced(scratch, PROGRAM, "small", memory / "traced", layers=layers)
            found.append(_figures(text)["small_ns"])
    before = statistics.median(plain)
    posix, mpi, share = (statistics.median(found) / before - 1 for found in traced.values())
    baseline = (
        f"a cached 4 KiB MPI_File_write_at without the library: {before:.0f} ns; goal 0.06; the posix layer alone "
        f"{posix:.3f}, mpi alone {mpi:.3f}"
    )
    return [_entry("trace.mpi_small_overhead", share, "of the time, both layers", baseline, share / 0.06)]


def _bytes(scratch: Path, memory: Path) -> list[dict[str, object]]:
    """Of the last run that was traced, which is regular: the collected table, and its patterns as text."""
    trace = scratch / "mpi-trace"
    run(STRIPEWISE, "collect", trace)
    records = int(json.loads((trace / "meta.json").read_text())["records"])
    with_times = (trace / "trace.parquet").stat().st_size / records
    of_file = ("patterns", trace, "--json", "--file", memory / "traced", "--layer")
    told = sum(len(run(STRIPEWISE, *of_file, layer)) for layer in ("posix", "mpi"))
    what = f"{records:,} records of a regular run, both layers"
    return [
        _entry("trace.bytes_per_record", with_times, "bytes, times included", f"{what}; goal 6", with_times / 6),
        _entry("trace.pattern_bytes_per_record", told / records, "bytes", f"{what}; goal 0.1", told / records / 0.1),
    ]


def _job(scratch: Path, effort: Effort) -> dict[str, object]:
    """IOR's way: 8 processes write and read blocks of their own on emulated devices, by turns untraced and traced."""
    targets = [(f"h{n}", "hdd", "emulated", 2e-3, 2e-3, 1e-8) for n in range(4)]
    store, data = make_store(scratch / "mpi-job", targets)
    pairs: list[tuple[float, float]] = []
    command = [MPIEXEC, "-n", "8", MPIIO, "--file", data / "f", "--file-size", f"{effort.file_mib // 4}MiB"]
    command += ["--request-size", "256KiB", "--phases", "write,read", "--no-verify"]
    environment = {**os.environ, "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}"}
    for turn in range(max(3, effort.turns // 2)):
        times = []
        for trace in ((), ("--trace", scratch / f"mpi-job-{turn}")):
            text = run(STRIPEWISE, "run", "--store", store, *trace, "--", *command, environment=environment)
            found = _figures(text)
            times.append(found["write_seconds"] + found["read_seconds"])
        pairs.append((times[0], times[1]))
    share = statistics.median(after / before - 1 for before, after in pairs)
    before = statistics.median(before for before, _ in pairs)
    baseline = f"the same run untraced: {before:.2f} s on emulated devices, by turns; goal 0.01"
    return _entry("trace.mpi_job_overhead", share, "of the time of 8 processes", baseline, share / 0.01)
