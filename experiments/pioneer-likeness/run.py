"""PIONEER's likeness (thesis, section 2.7): programs at 4 processes, made again at 8 and 16, beside the programs there.

Measured, nothing is simulated: each program of `programs/` is traced at 4 processes and characterized; at 8 and 16 a
synthetic path is played for real and traced, by statistics and by symbolic patterns, and compared with the program's
own run of that size. The program's own runs are compared with each other as well: no synthetic run can be expected to
be nearer than that.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

HOME = Path(__file__).resolve().parent
sys.path[:0] = [str(HOME.parent), str(HOME.parent.parent / "tools")]

import numpy as np
from emulated_bench import MPIEXEC, STRIPEWISE, run

from common import finish, progress, write_result
from likeness_programs import PROGRAMS, check_said, command_of
from stripewise.errors import StripewiseError
from stripewise.pioneer.comparison.compare import PARTS, Binned, Compared, compare_traces
from stripewise.pioneer.comparison.timeline import Timeline
from stripewise.report import new_figure, save_figure
from stripewise.workload.counted import Choice

#: What the thesis has in table 2.5, by the program here that is like its own.
PUBLISHED: Mapping[str, tuple[str, tuple[float, float, float]]] = {
    "ior": ("IOR2", (0.080, 0.097, 0.084)),
    "mpiiotest": ("MPI-IO Test", (0.062, 0.070, 0.069)),
    "particles": ("iPic3D", (0.118, 0.152, 0.416)),
}
METRICS = ("throughput", "ratio", "arrival")
FLOOR, WAYS = "original again", ("statistics", "symbolic")
COLOURS = {"original": "#0072B2", FLOOR: "#7f7f7f", "statistics": "#D55E00", "symbolic": "#009E73"}
PROFILED, SIZES = 4, (8, 16)
#: What the programs are given for a run that only shows that all works.
QUICK = ("--steps", "2", "--compute", "0.05")


@dataclass(frozen=True)
class Given:
    """The command line."""

    out: Path
    programs: tuple[str, ...]
    sizes: tuple[int, ...]
    repeats: int
    quick: bool
    ways: tuple[str, ...]


def arguments() -> Given:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HOME, help="folder for result.json and result.svg (default: here)")
    parser.add_argument("--program", action="append", choices=PROGRAMS, help="repeatable (default: all)")
    parser.add_argument("--processes", type=int, action="append", help=f"repeatable (default: {SIZES})")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each kind (default 3)")
    parser.add_argument("--quick", action="store_true", help="programs of a second each; figures mean nothing")
    parser.add_argument("--floor-only", action="store_true", help="only the originals against each other")
    given = parser.parse_args()
    if given.repeats < 1:
        parser.error("--repeats is at least 1")
    if not given.out.is_dir():
        parser.error(f"--out {given.out}: is no directory; make it first")
    sizes = tuple(given.processes or SIZES)
    ways = () if given.floor_only else WAYS
    return Given(given.out, tuple(given.program or PROGRAMS), sizes, given.repeats, given.quick, ways)


class Laboratory:
    """A scratch directory with the programs, and the runs that were traced in it."""

    def __init__(self, base: Path, quick: bool) -> None:
        self.base = base
        self.options = QUICK if quick else ()
        self.runs = 0
        #: Files of the program alone: no settings of the interpreter, and not the directory, which the player looks at.
        self.files = f"{base}/files*/*"

    def original(self, program: str, processes: int) -> Path:
        """The collected trace of one run of a program, whose bytes were all verified."""
        place, trace = self._places()
        job = [MPIEXEC, "-n", processes, *command_of(program, self.base), place, *self.options]
        check_said(program, run(STRIPEWISE, "run", "--trace", trace, "--", *job))
        return self._collected(place, trace)

    def profile(self, program: str) -> Path:
        """The profile of a run with `PROFILED` processes."""
        profile = self.base / f"{program}.json"
        run(STRIPEWISE, "characterize", self.original(program, PROFILED), "-o", profile, "--file", self.files)
        return profile

    def played(self, profile: Path, way: str, processes: int, seed: int) -> Path:
        """The collected trace of a synthetic path of a profile, played for real."""
        place, trace = self._places()
        path = self.base / f"{profile.stem}.{way}.{processes}.{seed}.swp"
        run(STRIPEWISE, "synth", profile, "-o", path, "-n", processes, "--seed", seed, "--by", way)
        run(STRIPEWISE, "play", path, "-n", processes, "--directory", place, "--trace", trace)
        return self._collected(place, trace)

    def compared(self, original: Path, other: Path) -> Compared:
        """Two of the traces, by the programs' own files."""
        return compare_traces(original, other, Choice(only=(self.files,)))

    def why(self, error: StripewiseError) -> str:
        """What a command said at its end, without this machine's places."""
        said = str(error).removesuffix("\\n").rsplit("stripewise: ", 1)[-1]
        return said.replace(f"{self.base}/", "")

    def _places(self) -> tuple[Path, Path]:
        self.runs += 1
        place = self.base / f"files{self.runs}"
        place.mkdir()
        return place, self.base / f"trace{self.runs}"

    def _collected(self, place: Path, trace: Path) -> Path:
        run(STRIPEWISE, "collect", trace)
        shutil.rmtree(place)
        return trace


def row_of(program: str, processes: int, kind: str, found: Sequence[Compared]) -> dict[str, Any]:
    """A row of the result: means over the repeats, each run beside."""
    each = [one.comparison for one in found]
    published = PUBLISHED.get(program)
    by_parts = {
        parts: {metric: [getattr(binned(one, parts).distances, metric) for one in found] for metric in METRICS}
        for parts in PARTS
    }
    busy = {metric: fmean(getattr(binned(one, PARTS[0]).busy, metric) for one in found) for metric in METRICS}
    return {
        "program": program,
        "processes": processes,
        "run": kind,
        "measured": {metric: fmean(values) for metric, values in by_parts[PARTS[0]].items()}
        | {
            "cumulative bytes": fmean(one.gap for one in each),
            "by shares": fmean(one.gap_normalised for one in each),
            "counts": max(one.largest.difference for one in each),
            "bytes": fmean(bytes_of(one.synthetic) / max(1, bytes_of(one.original)) for one in each),
            "duration": fmean(one.synthetic.duration_s / one.original.duration_s for one in each),
        },
        "published": {} if published is None else dict(zip(METRICS, published[1], strict=True)),
        "published_of": "" if published is None else published[0],
        "without_empty_bins": busy,
        "distances": {str(parts): values for parts, values in by_parts.items()},
        "counts_of": each[0].largest.operation,
        "original_s": fmean(one.original.duration_s for one in each),
    }


def binned(found: Compared, parts: int) -> Binned:
    """The distances for bins of a `parts`th."""
    return next(each for each in found.comparison.binned if each.parts == parts)


def bytes_of(totals: Any) -> int:
    """Read and written."""
    return int(totals.bytes_read + totals.bytes_written)


def measured(
    laboratory: Laboratory, given: Given, program: str, failed: list[str]
) -> Iterator[tuple[dict[str, Any], Compared]]:
    """The rows of a program, each with its last comparison; what fails is noted and left out."""
    profile = laboratory.profile(program) if given.ways else laboratory.base
    for processes in given.sizes:
        before = laboratory.original(program, processes)
        found: dict[str, list[Compared]] = {kind: [] for kind in (FLOOR, *given.ways)}
        for repeat in range(given.repeats):
            original = laboratory.original(program, processes)
            found[FLOOR].append(laboratory.compared(before, original))
            before = original
            for way in given.ways:
                try:
                    played = laboratory.played(profile, way, processes, repeat + 1)
                    found[way].append(laboratory.compared(original, played))
                except StripewiseError as error:
                    failed.append(f"{program}, {processes}, {way}: {laboratory.why(error)}")
                    progress(f"{failed[-1]}, left out")
        for kind, each in found.items():
            if each:
                yield row_of(program, processes, kind, each), each[-1]


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table of README.md: measured distances by program, size and kind of run, the published ones beside."""
    lines = ["| program | processes | run | throughput | ratio | arrival | bytes over time | counts | bytes |"]
    lines.append("|" + "---|" * 9)
    for row in rows:
        measured = row["measured"]
        shown = [f"{measured[name]:.3f}" for name in (*METRICS, "cumulative bytes", "counts", "bytes")]
        lines.append("| " + " | ".join([row["program"], str(row["processes"]), row["run"], *shown]) + " |")
    for program, (name, published) in PUBLISHED.items():
        shown = [f"{value:.3f}" for value in published]
        lines.append("| " + " | ".join([name, "1,024", f"published, beside {program}", *shown, "", "", ""]) + " |")
    return "\n".join(lines)


def draw(path: Path, curves: Mapping[tuple[str, int, str], Compared]) -> None:
    """Of each program at its largest size: throughput and cumulative bytes over time, all kinds of runs."""
    programs = list(dict.fromkeys(program for program, _, _ in curves))
    figure = new_figure(13.0, 2.6 * len(programs))
    for axes, program in zip(figure.subplots(len(programs), 3, squeeze=False), programs, strict=True):
        largest = max(size for name, size, _ in curves if name == program)
        for kind in (FLOOR, *WAYS):
            if (compared := curves.get((program, largest, kind))) is None:
                continue
            first, second = compared.timelines()
            if kind == FLOOR:
                _curve(axes, first, "original")
            _curve(axes, second, kind)
        axes[0].set_title(f"{program}, {largest} processes: MB/s")
        axes[1].set_title("operations per second")
        axes[2].set_title("bytes moved, MB")
    axes[2].legend(fontsize="small")
    title = "Programs and their synthetic runs over time (s), measured"
    figure.suptitle(title)
    save_figure(figure, path, title, ("program",), [])


def _curve(axes: Any, line: Timeline, kind: str) -> None:
    times = np.arange(len(line.bytes) + 1) * (line.width_ns / 1e9)
    look = {"color": COLOURS[kind], "label": kind, "linewidth": 1.0, "alpha": 0.8}
    axes[0].stairs(line.bytes * (1e3 / line.width_ns), times, **look)
    axes[1].stairs(line.operations * (1e9 / line.width_ns), times, **look)
    axes[2].plot(times, np.concatenate([[0], line.cumulative]) / 1e6, **look)


def main() -> None:
    given = arguments()
    rows: list[dict[str, Any]] = []
    failed: list[str] = []
    curves: dict[tuple[str, int, str], Compared] = {}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="stripewise-experiment-", ignore_cleanup_errors=True) as scratch:
        laboratory = Laboratory(Path(scratch).resolve(), given.quick)
        for program in given.programs:
            for row, compared in measured(laboratory, given, program, failed):
                rows.append(row)
                curves[program, row["processes"], row["run"]] = compared
                told = ", ".join(f"{name} {value:.3f}" for name, value in row["measured"].items())
                progress(f"{program} {row['processes']} {row['run']}: {told}")
    write_result(
        given.out,
        {
            "rows": rows,
            "simulated": False,
            "column_label": "measured",
            "measured": "means over the repeats: K-S distances of bins of a hundredth of the original's duration; "
            "largest gap of cumulative bytes (share of the original's), the same by shares of time and bytes; largest "
            "relative difference of a rank's operation counts; bytes and duration over the original's",
            "distances": "of each repeat, by how many bins the original's duration was cut into",
            "without_empty_bins": "the same distances where bins without any operation are left out",
            "published": "thesis, table 2.5 (1,024 processes, same number for both), of `published_of`",
            "profiled_processes": PROFILED,
            "repeats": given.repeats,
            "quick": given.quick,
            "failed": failed,
            "load_average": load,
        },
    )
    draw(given.out / "result.svg", curves)
    print(markdown(rows))


if __name__ == "__main__":
    finish(main)
