"""What a move costs the programs that run meanwhile, and how long writers are kept out: part of `make bench`.

The foreground runs on emulated devices: the demo's workload (8 MPI processes, Zipf 0.8, random requests of 256 KiB,
one phase of writes) on the demo's four emulated hard disks and two emulated SSDs under DEF. A quarter of the data
moves within `Effort.move_s` seconds. Every request stands in the trace; those that began before, during and after the
move are compared. Freezes are measured on plain directories, under eight processes that overwrite as fast as they can.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from bench_common import ROOT, STRIPEWISE, Effort, make_store, run

from stripewise import _stripewise

MPIEXEC = ROOT / ".venv/bin/mpiexec"
MPIIO = ROOT / "target/workloads/mpiio"
MIB = 1 << 20
REGION_MIB = 8


def workload(file: Path, file_mib: int, phases: str, requests: int, request_kib: int) -> list[str]:
    words = f"--pattern zipf --alpha 0.8 --region-size 1MiB --file-size {file_mib}MiB --request-size {request_kib}KiB"
    words += f" --requests {requests} --if-missing-fill --phases {phases}"
    return [str(MPIEXEC), "-n", "8", str(MPIIO), "--file", str(file), *words.split()]


def quartered(file_mib: int, rank: int, stripes: list[list[int]]) -> dict[str, Any]:
    """The file in regions; those of quarter `rank` have the stripes, the others DEF's."""
    count = file_mib // REGION_MIB
    everywhere = [[target, 65536] for target in range(6)]
    regions = []
    for number in range(count):
        ours = number * 4 // count == rank
        length = REGION_MIB * MIB
        regions.append({"start": number * length, "len": length, "stripes": stripes if ours else everywhere})
    return {"regions": regions}


def spread(name: str, values: np.ndarray[Any, np.dtype[np.float64]]) -> str:
    p50, p99 = np.percentile(values, [50, 99]) if len(values) else (0.0, 0.0)
    return f"{name} p50 {p50:.1f} ms p99 {p99:.1f} ms"


def mover_of(store: Path, options: dict[str, object] | None = None) -> _stripewise.MoveSession:
    return _stripewise.MoveSession(str(store), json.dumps(options or {}), '{"verb": "bench"}', lambda *_: True)


def cut(store: Path, file_mib: int) -> str:
    """Cuts the only file into regions, homes unchanged, so that only the move itself is measured; its id."""
    identity = str(json.loads(run(STRIPEWISE, "store", "ls", store, "--json"))[0]["id"])
    mover = mover_of(store)
    said = json.loads(mover.apply("", identity, json.dumps(quartered(file_mib, -1, [])), 0, 0))
    mover.end("ended")
    if "error" in said:
        sys.exit(f"bench: cutting the file failed: {said['message']}")
    return identity


def foreground(scratch: Path, effort: Effort) -> dict[str, object]:
    base = scratch / "moves"
    targets = [(f"hdd{n}", "hdd", "emulated", 0.003, 0.003, 1e-8) for n in range(4)]
    targets += [(f"ssd{n}", "ssd", "emulated", 0.0001, 0.0001, 2.5e-9) for n in range(2)]
    store, data = make_store(base, targets)
    file, trace = data / "f", base / "trace"
    run(STRIPEWISE, "run", "--store", store, "--", *workload(file, effort.file_mib, "fill", 1, 256))
    identity = cut(store, effort.file_mib)
    # Enough for the time before, during and after, at the most that the devices can do.
    requests = int(420 * (2 * effort.around_s + effort.move_s) / 8)
    writing = workload(file, effort.file_mib, "write", requests, 256)
    job = subprocess.Popen(
        [str(STRIPEWISE), "run", "--store", str(store), "--trace", str(trace), "--", *writing],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(effort.around_s + 2)
        budget = effort.file_mib * MIB // 4 / (0.5 * effort.move_s)
        options: dict[str, object] = {"bandwidth_bytes_per_s": int(budget), "max_slowdown": 0.0}
        mover = mover_of(store, options)
        begun = time.time_ns()
        wide = [[0, 65536], [1, 65536], [2, 65536], [3, 65536], [4, 262144], [5, 262144]]
        said = json.loads(mover.apply("", identity, json.dumps(quartered(effort.file_mib, 1, wide)), 0, 0))
        ended = time.time_ns()
        mover.end("ended")
        if "error" in said:
            sys.exit(f"bench: the move failed: {said['message']}")
        job.wait(timeout=300)
    finally:
        if job.poll() is None:
            job.kill()
            job.wait()
    collected = base / "collected"
    run(STRIPEWISE, "collect", trace, "--output", collected)
    return compare(collected, begun, ended, said, effort.around_s)


def compare(collected: Path, begun: int, ended: int, said: dict[str, Any], around_s: float) -> dict[str, object]:
    table = pq.read_table(collected / "trace.parquet", columns=["layer", "op", "managed", "start_ns", "end_ns", "done"])
    layer, op, managed = (table.column(name).to_pylist() for name in ("layer", "op", "managed"))
    keep = [
        one == "posix" and what in ("read", "write") and ours
        for one, what, ours in zip(layer, op, managed, strict=True)
    ]
    zero = json.loads((collected / "meta.json").read_text())["zero_unix_ns"]
    start, end, done = (table.column(name).to_numpy()[keep] for name in ("start_ns", "end_ns", "done"))
    low, high = begun - zero, ended - zero
    before = (start > low - around_s * 1e9) & (end < low)
    during = (start >= low) & (end < high)
    after = (start >= high) & (start < high + around_s * 1e9)
    latency = (end - start) / 1e6
    seconds = (high - low) / 1e9
    rate_before = done[before].sum() / (end[before].max() - start[before].min()) * 1e3
    rate_during = done[during].sum() / (high - low) * 1e3
    taken = max(ns for ns in said["copy_service_ns"].values()) / 1e9 / seconds
    ratio = rate_during / rate_before
    mix = (
        f"8 processes, writes of 256 KiB, Zipf 0.8, emulated; "
        f"{said['moved_bytes'] / MIB:.0f} MiB moved in {seconds:.1f} s; "
        f"{rate_before:.1f} MB/s before, {rate_during:.1f} MB/s during ({ratio:.3f}); "
        f"the copy took {100 * taken:.1f} % of the busiest device; "
        + ", ".join(
            spread(name, latency[part]) for name, part in (("before", before), ("during", during), ("after", after))
        )
    )
    value = round(float(ratio / (1 - taken)), 3)
    return {
        "name": "migrate.foreground_ratio",
        "value": value,
        "unit": "bandwidth during a move over without, of what the copy's service time leaves",
        "baseline": f"{mix}; goal 0.9",
        "ratio": value,
    }


def freezes(scratch: Path, effort: Effort) -> dict[str, object]:
    base = scratch / "freezes"
    store, data = make_store(base, [(f"t{n}", "any", "dir", 0.0, 0.0, 0.0) for n in range(6)])
    file = data / "f"
    run(STRIPEWISE, "run", "--store", store, "--", *workload(file, effort.file_mib, "fill", 1, 256))
    identity = cut(store, effort.file_mib)
    command = [
        str(STRIPEWISE),
        "run",
        "--store",
        str(store),
        "--",
        *workload(file, effort.file_mib, "write", 10_000_000, 64),
    ]
    job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    lengths: list[int] = []
    aborted = moved = 0
    try:
        time.sleep(3)
        mover = mover_of(store)
        until = time.monotonic() + effort.freezes_s
        turn = 0
        while time.monotonic() < until:
            turn += 1
            stripes = [[target, 65536] for target in range(6)][turn % 2 :]
            said = json.loads(
                mover.apply("", identity, json.dumps(quartered(effort.file_mib, turn % 4, stripes)), 0, 0)
            )
            if "error" in said:
                continue
            lengths += said["freezes_ns"]
            aborted += said["aborted_freezes"]
            moved += said["moved_bytes"]
        mover.end("ended")
    finally:
        os.killpg(job.pid, 9)
        job.wait()
    milliseconds = np.array(lengths) / 1e6
    p50, p99 = np.percentile(milliseconds, [50, 99])
    value = round(float(p99), 2)
    return {
        "name": "migrate.freeze_p99_ms",
        "value": value,
        "unit": "ms that writers to a span were kept out",
        "baseline": "plain directories on one disk, 8 processes overwriting 64 KiB at random without a pause; "
        f"{len(lengths)} freezes, p50 {p50:.2f} ms, {aborted} called off, {moved / MIB:.0f} MiB moved; goal 20 ms",
        "ratio": round(value / 20, 3),
    }


def moves(scratch: Path, effort: Effort) -> list[dict[str, object]]:
    return [foreground(scratch, effort), freezes(scratch, effort)]
