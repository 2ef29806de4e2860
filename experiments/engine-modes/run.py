"""IO-Engine's modes (thesis, chapter 3): independent calls, collective ones, and collective ones under `run --engine`.

Measured, nothing is simulated: mpiio writes and reads a file on emulated devices, laid out as DEF has it, with calls
that are independent, collective, collective under the engine by the thesis's rules, and under the engine by price; in
turns, so that each mode meets the same machine. What is read is compared with what was written in every run.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

HOME = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HOME), str(HOME.parent / "tools")]

from emulated_bench import MPIEXEC, MPIIO, STRIPEWISE, Device, run

from common import KIB, MIB, arguments, finish, home_of, progress, write_result
from emulated import interval
from pictures import draw_lines
from stripewise.run.repeats import tail
from stripewise.units import format_size

#: What the command of each mode has beside the program's own.
MODES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "independent": ((), ()),
    "collective": ((), ("--collective",)),
    "by rules": (("--engine", "--by-rules"), ("--collective",)),
    "by price": (("--engine",), ("--collective",)),
}
FIXED, PRICE = ("independent", "collective"), "by price"
DEVICES = [
    *(Device(f"hdd{number}", "hdd", 0.002, 1e-8) for number in range(4)),
    *(Device(f"ssd{number}", "ssd", 0.0001, 2.5e-9) for number in range(2)),
]
#: Each process has a part of the file; requests of all in turn; the same behind views with gaps; tiles of four pieces.
PATTERNS = ("sequential", "interleaved", "strided", "tiles")
SIZES = (4 * KIB, 64 * KIB, MIB)
PROCESSES, MORE_PROCESSES = 8, 16
#: Of each process, in either phase.
REQUESTS, REPEATS = 32, 5
#: Differences are taken for more than chance where they would come by it less often than this in all points together.
SURE = 0.05


@dataclass(frozen=True)
class Point:
    """One kind of run."""

    pattern: str
    request_bytes: int
    processes: int

    @property
    def tick(self) -> str:
        """On the picture's axis."""
        return f"{self.pattern[:3]}\n{format_size(self.request_bytes).split('.')[0]}\n{self.processes}"


def points(sizes: Sequence[int]) -> Iterator[Point]:
    """All sizes with few processes, one in the middle with more."""
    for pattern in PATTERNS:
        yield from (Point(pattern, size, PROCESSES) for size in sizes)
        yield from (Point(pattern, size, MORE_PROCESSES) for size in sizes if size == 64 * KIB)


def make_store(base: Path) -> Path:
    """A store of the devices, with DEF's layout; where its files are."""
    data = base / "data"
    data.mkdir()
    for device in DEVICES:
        (base / device.name).mkdir()
    (base / "cluster.toml").write_text("\n".join(device.as_toml() for device in DEVICES))
    run(STRIPEWISE, "store", "create", base / "store", "--cluster", base / "cluster.toml", "--manage", data)
    return data


def seconds(base: Path, file: Path, point: Point, requests: int, mode: str) -> dict[str, float]:
    """Of writes and of reads in one run."""
    options, words = MODES[mode]
    job = [
        *(MPIEXEC, "-n", point.processes, MPIIO, "--file", file, "--pattern", point.pattern),
        *("--request-size", point.request_bytes, "--file-size", point.processes * requests * point.request_bytes),
        *("--phases", "write,read", *words),
    ]
    said = json.loads(run(STRIPEWISE, "run", "--store", base / "store", *options, "--", *job).splitlines()[-1])
    return {operation: float(said[f"{operation}_seconds"]) for operation in ("write", "read")}


def rows_of(point: Point, requests: int, runs: Mapping[str, Sequence[Mapping[str, float]]]) -> Iterator[dict[str, Any]]:
    """A row for writes and one for reads."""
    moved_mb = point.processes * requests * point.request_bytes / 1e6
    for operation in ("write", "read"):
        took = {mode: [each[operation] for each in found] for mode, found in runs.items()}
        mb_s = {mode: [moved_mb / each for each in found] for mode, found in took.items()}
        better = min(FIXED, key=lambda mode: fmean(map(math.log, took[mode])))
        behind = [math.log(mine / other) for mine, other in zip(took[PRICE], took[better], strict=True)]
        yield {
            "pattern": point.pattern, "request_bytes": point.request_bytes, "processes": point.processes,
            "operation": operation,
            "measured": {mode: fmean(values) for mode, values in mb_s.items()},
            "interval": {mode: interval(values) for mode, values in mb_s.items()},
            "seconds": took,
            "better": better,
            "time by price over the better": math.exp(fmean(behind)),
            "chance": chance(behind),
        }  # fmt: skip


def chance(differences: Sequence[float]) -> float:
    """How often a mean so far above 0 would come of differences around 0 (one-sided, Student's t)."""
    free, spread = len(differences) - 1, stdev(differences) / len(differences) ** 0.5
    if spread <= 0:
        return 1.0
    return tail(free, fmean(differences) / spread)


def surely_behind(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows in which the price is behind the better mode by more than chance, by Holm's procedure over all rows."""
    found = []
    for number, row in enumerate(sorted(rows, key=lambda row: float(row["chance"]))):
        if row["chance"] * (len(rows) - number) > SURE:
            break
        found.append(f"{row['pattern']}, {row['request_bytes']} B, {row['processes']} processes, {row['operation']}")
    return found


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), 1, REQUESTS, SIZES, repeats=REPEATS)
    rows: list[dict[str, Any]] = []
    begun, all_points = os.getloadavg()[0], list(points(given.sizes))
    with tempfile.TemporaryDirectory(prefix="stripewise-experiment-", ignore_cleanup_errors=True) as scratch:
        base = Path(scratch).resolve()
        data = make_store(base)
        for number, point in enumerate(all_points):
            runs: dict[str, list[dict[str, float]]] = {mode: [] for mode in MODES}
            file, modes = data / f"f{number}", list(MODES)
            # The first one makes the file.
            seconds(base, file, point, given.requests, FIXED[0])
            for repeat in range(given.repeats):
                for mode in modes[repeat % len(modes) :] + modes[: repeat % len(modes)]:
                    runs[mode].append(seconds(base, file, point, given.requests, mode))
            run(STRIPEWISE, "run", "--store", base / "store", "--", "rm", file)
            for row in rows_of(point, given.requests, runs):
                rows.append(row)
                told = ", ".join(f"{mode} {value:.3g}" for mode, value in row["measured"].items())
                over = row["time by price over the better"]
                progress(f"{point.pattern} {point.request_bytes} {point.processes} {row['operation']}: {told} MB/s; "
                         f"by price {over:.2f} of the better, measured")  # fmt: skip
    write_result(
        given.out,
        {
            "rows": rows,
            "simulated": False,
            "column_label": "measured",
            "measured": "MB/s (10^6 bytes), mean of the repeats, on emulated devices; `seconds` of each run",
            "interval": "half of its 95 % interval (Student's t)",
            "better": "of the program's independent and collective calls, by the geometric mean of seconds",
            "chance": "one-sided t-test of the differences of the seconds' logarithms, repeat by repeat",
            "surely_behind": surely_behind(rows),
            "options": {"requests_per_process": given.requests, "repeats": given.repeats},
            "load_average": begun,
        },
    )
    panels = []
    for operation in ("write", "read"):
        own = [row for row in rows if row["operation"] == operation]
        best = [max(row["measured"][mode] for mode in FIXED) for row in own]
        lines = {
            mode: [top / row["measured"][mode] for top, row in zip(best, own, strict=True)] for mode in MODES
        }  # fmt: skip
        panels.append((f"{operation}s", lines))
    draw_lines(
        given.out / "result.svg", "Modes of MPI-IO on emulated devices, measured", "pattern, request, processes",
        [point.tick for point in all_points], panels, unit="time over that of the program's better mode", log=True,
    )  # fmt: skip


if __name__ == "__main__":
    finish(main)
