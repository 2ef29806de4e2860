"""`make bench`: costs per call and ratios to plain files, each against a baseline of the same run.

Every entry is `{name, value, unit, baseline, ratio}`. A cost's ratio is value over goal (below 1 is better), a
throughput's is managed over plain (above 1 is better), an emulation error's is error over goal; beside another library
(--against) it is the other's time over ours. What else a benchmark tells stands under keys of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bench_best import at_scale
from bench_characterize import characterizing
from bench_common import FULL, LIBRARY, QUICK, ROOT, STRIPEWISE, Effort, make_store, run
from bench_copies import copies
from bench_engine import deciding
from bench_fuse import passthrough
from bench_import import importing
from bench_metadata import metadata
from bench_moves import moves
from bench_mpi import recording
from bench_plan import planning
from bench_play import playing
from bench_show import showing
from bench_small import small
from bench_synth import synthesizing

CALLS = ROOT / "target/native/calls"
#: What every entry has; what is printed of it.
KEYS = ("name", "value", "unit", "baseline", "ratio")


def last_json(text: str) -> dict[str, float]:
    return dict(json.loads(text.strip().splitlines()[-1]))


def directories(scratch: Path, name: str, count: int, startup_s: float) -> tuple[Path, Path]:
    """A store over `count` directories, emulated when reads have a startup."""
    kind = "emulated" if startup_s else "dir"
    return make_store(scratch / name, [(f"t{n}", "hdd", kind, startup_s, 0.0, 0.0) for n in range(count)])


def on(store: Path, *command: object) -> str:
    return run(STRIPEWISE, "run", "--store", store, "--", *command)


def fill(store: Path, path: Path, mib: float) -> None:
    on(store, "dd", "if=/dev/urandom", f"of={path}", "bs=64k", f"count={int(mib * 16)}", "status=none")


def calls(scratch: Path) -> list[dict[str, object]]:
    store, data = directories(scratch, "one", 1, 0)
    plain = scratch / "plain"
    # Written as the managed file is, so that both lie alike in the page cache.
    run("dd", "if=/dev/urandom", f"of={plain}", "bs=64k", "count=4", "status=none")
    fill(store, data / "managed", 0.25)
    found = last_json(on(store, CALLS, "pread", plain, data / "managed"))
    baseline = f"the C library's pread64 of the same size on a plain file: {found['direct_ns']} ns"
    return [
        entry("runtime.pread_4k_managed_added_ns", found["managed_added_ns"], "ns", f"{baseline}; goal 40 ns", 40),
        entry("runtime.pread_4k_unmanaged_added_ns", found["unmanaged_added_ns"], "ns", f"{baseline}; goal 20 ns", 20),
    ]


def entry(name: str, value: float, unit: str, baseline: str, goal: float) -> dict[str, object]:
    return {"name": name, "value": value, "unit": unit, "baseline": baseline, "ratio": round(value / goal, 3)}


def bulk(scratch: Path) -> list[dict[str, object]]:
    store, data = directories(scratch, "four", 4, 0)
    found = last_json(on(store, CALLS, "bulk", scratch / "plain-bulk", data / "managed"))
    with passthrough(scratch / "bulk-below", scratch / "bulk-fuse") as fuse:
        by_fuse = last_json(run(CALLS, "bulk", scratch / "plain-bulk", fuse / "file")) if fuse else {}
    return [
        {
            "name": f"runtime.{what}_1m_ratio",
            "value": found[f"{what}_ratio"],
            "unit": "managed bytes/s over plain bytes/s, 4 directories on one disk",
            "baseline": f"the same on a plain file: {found[f'{what}_plain_mb_s']:.0f} MB/s; goal 0.95"
            + (f"; by FUSE {by_fuse[f'{what}_ratio']:.2f} of it" if by_fuse else ""),
            "ratio": found[f"{what}_ratio"],
        }
        for what in ("read", "overwrite", "extend")
    ]


def spawned_ms(environment: dict[str, str]) -> float:
    """Milliseconds from the start of /bin/true to its end."""
    started = time.perf_counter_ns()
    os.waitpid(os.posix_spawn("/bin/true", ["/bin/true"], environment), 0)
    return (time.perf_counter_ns() - started) / 1e6


def startup(scratch: Path, starts: int) -> list[dict[str, object]]:
    """What the library adds to the start of every program, with a store and without one in use."""
    store, _ = directories(scratch, "startup", 4, 0)
    without = {"PATH": "/usr/bin:/bin"}
    environment = {**without, "LD_PRELOAD": str(LIBRARY), "STRIPEWISE_STORE": str(store)}
    pairs = [(spawned_ms(without), spawned_ms(environment)) for _ in range(starts)]
    bare = statistics.median(pair[0] for pair in pairs)
    added = statistics.median(after - before for before, after in pairs)
    baseline = f"/bin/true without the library: {bare:.3f} ms, {starts} times by turns; goal 0.5 ms"
    size = LIBRARY.stat().st_size
    return [
        entry("runtime.startup_ms", round(added, 3), "ms added to /bin/true", baseline, 0.5),
        entry("runtime.library_bytes", size, "bytes", "goal 1 MiB", 1 << 20),
    ]


def emulated(scratch: Path, rate: int, goal: float, effort: Effort) -> dict[str, object]:
    """Four emulated devices of `rate` requests/s, 4 processes each, closed loop: never idle."""
    store, data = directories(scratch, f"emulated-{rate}", 4, 1 / rate)
    one = scratch / "one-target.json"
    files = []
    for n in range(4):
        one.write_text(json.dumps({"regions": [{"start": 0, "len": 1 << 26, "stripes": [[f"t{n}", 1 << 16]]}]}))
        run(STRIPEWISE, "store", "template", "add", store, data / f"file{n}", "--layout", one)
        fill(store, data / f"file{n}", effort.emulated_mib)
        files.append(data / f"file{n}")
    info = json.loads(run(STRIPEWISE, "store", "info", store, "--json"))
    before = busy(info)
    found = last_json(on(store, CALLS, "closed", int(rate * effort.emulated_s) // 4, 4, *files))
    served = max(
        after - b
        for after, b in zip(busy(json.loads(run(STRIPEWISE, "store", "info", store, "--json"))), before, strict=True)
    )
    error = abs(found["seconds"] - served) / served
    return entry(
        f"emulated.error_{rate}",
        round(error, 5),
        "relative error of time",
        f"the model's service time: {served:.3f} s per device; goal {goal}",
        goal,
    )


def busy(info: dict[str, list[dict[str, float]]]) -> list[float]:
    return [t["busy_read_ns"] / 1e9 for t in info["devices"]]


def cargo_bench(package: str, bench: str, effort: Effort) -> list[dict[str, object]]:
    # In short, what the Rust tests have built already will do.
    profile = ["--profile", "dev"] if effort.crates == QUICK.crates else []
    text = run("cargo", "bench", "--quiet", "--locked", *profile, "-p", f"stripewise-{package}", "--bench", bench)
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def costs(scratch: Path, effort: Effort, other: Path | None) -> list[dict[str, object]]:
    """The entries of docs/performance.md."""
    return [
        *startup(scratch, effort.starts),
        *calls(scratch),
        *small(scratch, effort, other),
        *metadata(scratch, effort),
        *bulk(scratch),
    ]


def measured(scratch: Path, effort: Effort, other: Path | None) -> list[dict[str, object]]:
    """All entries."""
    results = [
        *costs(scratch, effort, other),
        emulated(scratch, 1000, 0.01, effort),
        emulated(scratch, 5000, 0.02, effort),
        *recording(scratch, effort),
        *deciding(scratch, effort),
        *playing(scratch, effort),
        characterizing(scratch, effort),
        *copies(scratch, effort),
        *moves(scratch, effort),
        *planning(scratch, effort),
        at_scale(effort),
        importing(scratch, effort),
        showing(scratch, effort),
        *synthesizing(scratch, effort),
    ]
    for package, bench in effort.crates:
        results += cargo_bench(package, bench, effort)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="go through everything in short; figures mean nothing")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--small", action="store_true", help="only the calls on small files")
    parts.add_argument("--metadata", action="store_true", help="only many small files, as mdtest measures them")
    parts.add_argument("--costs", action="store_true", help="only what docs/performance.md tells, these among it")
    parser.add_argument("--on-disk", action="store_true", help="small files on the checkout's disk, not in memory")
    parser.add_argument("--against", type=Path, help="another libstripewise.so, measured by turns with ours")
    parser.add_argument("--json", type=Path, default=ROOT / "target/bench.json", help="where the entries go")
    given = parser.parse_args()
    if given.against is not None and not given.against.is_file():
        parser.error(f"--against: {given.against} is no file; name a libstripewise.so that was built before")
    effort = replace(QUICK if given.quick else FULL, in_memory=not given.on_disk)
    other = given.against and given.against.resolve()
    scratch = Path(tempfile.mkdtemp(prefix="bench-", dir=ROOT / "target"))
    try:
        if given.metadata:
            results = metadata(scratch, effort)
        else:
            part = small if given.small else costs if given.costs else measured
            results = part(scratch, effort, other)
    finally:
        shutil.rmtree(scratch)
    for result in results:
        name, value, unit, baseline, ratio = (result[key] for key in KEYS)
        print(f"{name:<40} {value:>10} {unit}  (ratio {ratio}; {baseline})")
    given.json.write_text(json.dumps(results, indent=1) + "\n")


main()
