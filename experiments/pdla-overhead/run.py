"""PDLA paper, section 5.3: what tracing, finding patterns and looking for replicas take. Measured.

Pairs of runs, one after the other, with and without: traced jobs on emulated devices and on a plain file in memory;
jobs on a plain file in memory under the library of a store that has replicas of another file, beside jobs without the
library; and the time to find the patterns of a trace of as many records as the paper's.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

HOME = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HOME), str(HOME.parent / "tools")]

from emulated_bench import MPIEXEC, MPIIO, STRIPEWISE, Bench, Device, run

from common import KIB, MIB, arguments, finish, home_of, progress, write_result
from emulated import interval
from pictures import draw_bars
from stripewise.policy import PlanOptions, policy_named
from stripewise.simulate import load_description
from stripewise.workload.describe import Description

#: Section 5.3: "below 2 percent" and "below 6 percent", "less than 2 seconds", and bars that show no difference.
PUBLISHED = {"tracing IOR": 0.02, "tracing MPI-Tile-IO": 0.06, "analyser_s": 2.0}
RECORDS = 5_296
REQUEST = 256 * KIB
FILE_BYTES = 256 * MIB
#: Section 5.3.3 has 8, 64 and 512 processes of 100 MB each; here so many, and as much in all.
REDIRECTED, REDIRECTED_BYTES = (8, 64), 1024 * MIB
REPEATS = 7


@dataclass(frozen=True)
class Job:
    """A pattern of mpiio: processes, and its options."""

    processes: int
    options: tuple[str, ...]

    def mb_s(self, file: Path, before: tuple[str | Path, ...] = ()) -> float:
        """MB/s of its reads, as it says; `before` is what starts it."""
        words = [*before, MPIEXEC, "-n", self.processes, MPIIO, "--file", file, *self.options]
        said = run(*words, "--phases", "read", "--writes", 0, "--no-verify")
        return float(json.loads(said.splitlines()[-1])["read_mb_s"])


def job(name: str, processes: int, file_bytes: int, request: int, reads: int) -> Job:
    """So many reads of each process of a file of that size."""
    words = ("--pattern", name, "--file-size", file_bytes, "--request-size", request, "--reads", reads)
    return Job(processes, tuple(map(str, words)))


def slowdown(without: Callable[[], float], with_it: Callable[[], float], repeats: int) -> dict[str, float]:
    """By what share the second is slower, by turns: mean and half its 95 % interval."""
    shares = []
    for repeat in range(repeats):
        found = {}
        for each in (without, with_it) if repeat % 2 == 0 else (with_it, without):
            found[each] = each()
        shares.append(found[without] / found[with_it] - 1)
    return {"mean": fmean(shares), "interval": interval(shares)}


def tracing(base: Path, repeats: int) -> dict[str, dict[str, float]]:
    """Traced and untraced runs of both benchmarks, on emulated devices and in memory."""
    devices = [*(Device(f"hdd{n}", "hdd", 0.003, 1e-8) for n in range(6))]
    bench = Bench(base / "bench", FILE_BYTES, devices)
    described = Description("zipf", 8, ((REQUEST, 1.0),), FILE_BYTES, path=str(bench.path), reads=8, writes=0)
    workload = load_description(described).workload
    bench.lay_out(policy_named("def").plan(workload, bench.cluster, PlanOptions()))
    plain = base / "plain.dat"
    fill(plain, FILE_BYTES)
    on_store = (STRIPEWISE, "run", "--store", bench.store.root)
    # A tile's row is sent in four pieces.
    kinds = {"IOR": ("sequential", REQUEST, 128), "MPI-Tile-IO": ("tiles", REQUEST, 128)}
    found = {}
    for name, (pattern, request, reads) in kinds.items():
        for where, file, store, times in (
            ("emulated devices", bench.path, on_store, 1),
            ("in memory", plain, (), 40),
        ):
            mine = job(pattern, 8, FILE_BYTES, request, reads * times)
            plainly, starts = (*store, "--") if store else (), store or (STRIPEWISE, "run")
            found[f"{name}, {where}"] = slowdown(
                partial(mine.mb_s, file, plainly), partial(_traced, mine, file, starts, base / "trace"), repeats
            )
    return found


def _traced(mine: Job, file: Path, starts: tuple[str | Path, ...], trace: Path) -> float:
    shutil.rmtree(trace, ignore_errors=True)
    return mine.mb_s(file, (*starts, "--trace", trace, "--"))


def fill(path: Path, size: int) -> None:
    """A file of so many bytes, in memory from then on."""
    block = os.urandom(MIB)
    with path.open("wb") as file:
        for _ in range(size // MIB):
            file.write(block)


def analysed(base: Path) -> dict[str, float]:
    """Seconds of the command that finds patterns, on one core: of a run like PIO-Bench's, and of one read a process."""
    file = base / "nested.dat"
    fill(file, FILE_BYTES)
    found: dict[str, float] = {}
    for key, reads in (("start_s", 1), ("seconds", RECORDS // 16)):
        trace = base / key
        job("nested", 16, FILE_BYTES, 16 * KIB, reads).mb_s(file, (STRIPEWISE, "run", "--trace", trace, "--"))
        run(STRIPEWISE, "collect", trace)
        begun = time.monotonic()
        run("taskset", "-c", "0", STRIPEWISE, "patterns", trace, "--json")
        found[key] = time.monotonic() - begun
        found["records"] = json.loads((trace / "meta.json").read_text())["records"]
    return found


def redirection(base: Path, repeats: int) -> dict[str, dict[str, float]]:
    """Jobs on a file without replicas, where another has some, beside jobs without the library."""
    store = base / "store"
    figures = "".join(f"{key}_{way} = 0.0\n" for key in ("startup", "per_byte") for way in ("read_s", "write_s"))
    targets = "".join(
        f'[[target]]\nname = "t{n}"\nclass = "hdd"\nkind = "dir"\npath = "t{n}"\n{figures}' for n in range(4)
    )
    (base / "dirs.toml").write_text(targets)
    for number in range(4):
        (base / f"t{number}").mkdir()
    run(STRIPEWISE, "store", "create", store, "--cluster", base / "dirs.toml")
    other, plain = base / "nested.dat", base / "redirected.dat"
    run(STRIPEWISE, "replicate", base / "seconds", "--store", store, "--manager", "h-pdla", "--file", other)
    fill(plain, FILE_BYTES)
    found = {}
    for processes in REDIRECTED:
        mine = job("sequential", processes, FILE_BYTES, REQUEST, REDIRECTED_BYTES // REQUEST // processes)
        under = (STRIPEWISE, "run", "--store", store, "--")
        found[f"{processes} processes"] = slowdown(partial(mine.mb_s, plain), partial(mine.mb_s, plain, under), repeats)
    return found


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), 1, RECORDS, repeats=REPEATS)
    with tempfile.TemporaryDirectory(prefix="stripewise-experiment-", ignore_cleanup_errors=True) as scratch:
        base = Path(scratch).resolve()
        analyser = analysed(base)
        said = f"{analyser['seconds']:.2f} s, {analyser['start_s']:.2f} s of one read a process"
        progress(f"patterns of {analyser['records']:,} records on one core: {said}, measured")
        parts = {"tracing": tracing(base, given.repeats), "redirection": redirection(base, given.repeats)}
    rows: list[dict[str, Any]] = []
    for part, found in parts.items():
        for where, share in found.items():
            progress(f"{part}, {where}: {share['mean']:+.1%} ± {share['interval']:.1%}, measured")
            rows.append({"of": part, "where": where, "slower by": share["mean"], "interval": share["interval"]})
    result = {
        "rows": rows,
        "simulated": False,
        "analyser": analyser,
        "published": PUBLISHED,
        "options": {"repeats": given.repeats},
    }
    write_result(given.out, result)
    named = [f"{row['of']},\n{row['where']}".replace("IO, ", "IO,\n").replace("IOR, ", "IOR,\n") for row in rows]
    bars = [("", {"slower by": [100 * max(0.0, row["slower by"]) for row in rows]})]
    draw_bars(
        given.out / "result.svg", "What PDLA's parts take (PDLA, section 5.3), measured", "", named, bars, "percent"
    )


if __name__ == "__main__":
    finish(main)
