"""PIONEER's consequence for layouts: plans from synthetic runs at 16 processes beside plans from the program's own.

Each program of pioneer-likeness is traced at 4 processes on plain files and characterized; a synthetic path for 16
processes is played on a store of emulated devices, traced, and planned for by `best`, as is the trace of the program's
own run there. Then the program runs under each of the plans, kept in the store, and under DEF, by turns. Nothing of
that is simulated; the simulated I/O of the program's own traces under the same plans stands beside.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

HOME = Path(__file__).resolve().parent
sys.path[:0] = [str(HOME.parent), str(HOME.parent.parent / "tools")]

import numpy as np
from emulated_bench import MPIEXEC, STRIPEWISE, Device, run

from common import KIB, MIB, REPEATS_MAX, finish, progress, write_result
from emulated import interval
from likeness_programs import PROGRAMS, check_said, command_of
from stripewise.cluster import read_cluster
from stripewise.errors import StripewiseError
from stripewise.plan import Plan, read_plan
from stripewise.policy import PlanOptions, policy_named
from stripewise.policy.best.trial import Trials
from stripewise.report import new_figure, save_figure
from stripewise.run.measure import measured
from stripewise.run.repeats import quantile
from stripewise.store import Store
from stripewise.workload.syncs import written_back
from stripewise.workload.trace import read_trace

#: Under which layouts a program runs: DEF's, the plan of its own trace, that of another such trace (how far plans of
#: two runs of one program are apart), and those of the synthetic runs.
DEF, REAL, AGAIN, WAYS = "def", "real", "real again", ("statistics", "symbolic")
COLOURS = {DEF: "#7f7f7f", AGAIN: "#0072B2", "statistics": "#D55E00", "symbolic": "#009E73"}
PROFILED = 4
#: Plans differ by more than this, or do not.
CLOSE = 0.05
#: Of the program's bytes, what both SSDs together have room for.
SSD_SHARE = 1 / 4


@dataclass(frozen=True)
class Shape:
    """A run whose I/O takes a few seconds: options of the program, what it keeps in files with so many processes, the
    directory that it makes for itself, above all that it writes, and the length of regions. A new file whose planned
    region is longer than the room of its target is laid out as without a plan.
    """

    options: str
    file_bytes: int
    below: str = ""
    region_bytes: int = MIB


@dataclass(frozen=True)
class Scale:
    """How large everything is."""

    processes: int
    search: str
    lanes: tuple[str, ...]
    shapes: Mapping[str, Shape]


FULL = Scale(
    16,
    "10s",
    (DEF, REAL, AGAIN, *WAYS),
    {
        "ior": Shape("--steps 2 --count 4 --compute 0.02", 128 * MIB),
        "mpiiotest": Shape("--steps 2 --count 24 --compute 0.02 --think 0.001", 96 * MIB),
        "btio": Shape("--steps 6 --count 96 --compute 0.02", 135 * MIB),
        "particles": Shape("--steps 4 --compute 0.05", 62 * MIB),
        "metadata": Shape("--steps 2 --count 48 --compute 0.05", 3 * MIB, "tree0", 4 * KIB),
    },
)
QUICK = Scale(
    8,
    "2s",
    (DEF, REAL, *WAYS),
    {
        "ior": Shape("--steps 1 --count 2 --compute 0.02", 16 * MIB),
        "mpiiotest": Shape("--steps 1 --count 8 --compute 0.02 --think 0.001", 8 * MIB),
        "btio": Shape("--steps 2 --compute 0.01", 8 * MIB),
        "particles": Shape("--steps 2 --compute 0.05", 15 * MIB),
        "metadata": Shape("--steps 1 --count 16 --compute 0.02", 512 * KIB, "tree0", 4 * KIB),
    },
)


@dataclass(frozen=True)
class Given:
    """The command line."""

    out: Path
    programs: tuple[str, ...]
    repeats: int
    quick: bool

    @property
    def scale(self) -> Scale:
        """How large everything is."""
        return QUICK if self.quick else FULL


def arguments() -> Given:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HOME, help="folder for result.json and result.svg (default: here)")
    parser.add_argument("--program", action="append", choices=PROGRAMS, help="repeatable (default: all)")
    parser.add_argument("--repeats", type=int, help="runs under each layout (default 3; with --quick 1)")
    parser.add_argument("--quick", action="store_true", help="8 processes, short searches; figures mean nothing")
    given = parser.parse_args()
    repeats = (1 if given.quick else 3) if given.repeats is None else given.repeats
    if not 1 <= repeats <= REPEATS_MAX:
        parser.error(f"--repeats is 1 to {REPEATS_MAX}")
    if not given.out.is_dir():
        parser.error(f"--out {given.out}: is no directory; make it first")
    return Given(given.out, tuple(given.program or PROGRAMS), repeats, given.quick)


@dataclass(frozen=True)
class Moved:
    """What a run did: bytes of its reads and writes, and its I/O seconds as `tune` counts them (with any read under
    way, and with any write or wait for what was written, added).
    """

    bytes: int
    io_s: float

    @property
    def mb_s(self) -> float:
        """MB/s (10^6 bytes)."""
        return self.bytes / self.io_s / 1e6


class Stage:
    """A program, and a store of emulated devices with room on SSDs for a part of its files."""

    def __init__(self, base: Path, program: str, scale: Scale) -> None:
        self.base, self.program, self.scale = base, program, scale
        self.shape = scale.shapes[program]
        self.store, self.data = base / "store", base / "data"
        self.files = f"{self.data}/*"
        self.runs = 0
        room = int(self.shape.file_bytes * SSD_SHARE) // 2
        devices = [
            *(Device(f"hdd{number}", "hdd", 0.002, 1e-8) for number in range(4)),
            *(Device(f"ssd{number}", "ssd", 0.0001, 2.5e-9, room) for number in range(2)),
        ]
        for place in (self.data, *(base / device.name for device in devices)):
            place.mkdir(parents=True)
        (base / "cluster.toml").write_text("\n".join(device.as_toml() for device in devices))
        made = ("--cluster", base / "cluster.toml", "--manage", self.data, "--region-size", self.shape.region_bytes)
        run(STRIPEWISE, "store", "create", self.store, *made)
        self.cluster = read_cluster(self.store)

    def words(self, place: Path) -> list[object]:
        """The program with its files in a place, as plans are kept for it."""
        return [*command_of(self.program, self.base), place, *self.shape.options.split()]

    def profile(self) -> Path:
        """The profile of a run with `PROFILED` processes on plain files."""
        plain, profile, trace = self.base / "plain", self.base / "profile.json", self.base / "profiled"
        plain.mkdir()
        job = (MPIEXEC, "-n", PROFILED, *self.words(plain))
        check_said(self.program, run(STRIPEWISE, "run", "--trace", trace, "--", *job))
        run(STRIPEWISE, "collect", trace)
        run(STRIPEWISE, "characterize", trace, "-o", profile, "--file", f"{plain}/*")
        return profile

    def chosen(self, profile: Path) -> str:
        """The way that `synth` takes where none is given."""
        words = (profile, "-o", self.base / "chosen.swp", "-n", self.scale.processes, "--json")
        return str(json.loads(run(STRIPEWISE, "synth", *words))["by"])

    def played(self, profile: Path, way: str) -> Path:
        """The collected trace of a synthetic path, played on the store under its own layout."""
        # A profile names files from the directory that holds them all.
        path, place, trace = self.base / f"{way}.swp", self.data / self.shape.below, self._trace()
        processes = ("-n", self.scale.processes)
        run(STRIPEWISE, "synth", profile, "-o", path, *processes, "--by", way)
        place.mkdir(exist_ok=True)
        run(STRIPEWISE, "play", path, *processes, "--directory", place, "--store", self.store, "--trace", trace)
        return self._collected(trace)

    def original(self, plan: Path | None = None) -> Path:
        """The collected trace of a run of the program on the store, under a plan that the store keeps for it or under
        the store's own layout; whatever it leaves is removed.
        """
        trace, words = self._trace(), self.words(self.data)
        follow = "--no-follow"
        if plan is not None:
            kept = ("--application", shlex.join(map(str, words)), "--processes", self.scale.processes)
            run(STRIPEWISE, "store", "plan", "add", self.store, plan, *kept)
            follow = "--follow"
        job = (MPIEXEC, "-n", self.scale.processes, *words)
        told = [STRIPEWISE, "run", "--store", self.store, "--trace", trace, follow, "--", *job]
        before = self._ssd_accesses()
        # What it says of the plan is on stderr.
        said = run("/bin/sh", "-c", 'exec "$@" 2>&1', "sh", *told)
        check_said(self.program, said)
        is_followed = "following the plan kept for" in said and "usual layout" not in said
        # New files for which a target has no room are laid out as without a plan, and nothing says so.
        as_planned = plan is None or on_ssds(read_plan(plan)) == 0 or self._ssd_accesses() > before
        if plan is not None and not (is_followed and as_planned):
            raise StripewiseError(f"{self.program}: a run did not follow {plan}:\n{said}")
        return self._collected(trace)

    def planned(self, trace: Path, name: str) -> Path:
        """The plan of `best` for the files of a trace."""
        plan = self.base / f"{name.replace(' ', '-')}.plan.json"
        options = ("--file", self.files, "--region-size", self.shape.region_bytes, "--time-limit", self.scale.search)
        run(STRIPEWISE, "plan", trace, "--cluster", self.store, *options, "-o", plan)
        return plan

    def moved(self, trace: Path) -> Moved:
        """What the program's own requests moved, and how long."""
        workload = read_trace(trace, (self.files,))
        waits = written_back(trace, {file.path for file in workload.files if file.requests["write"].any()})
        requests = sum(int(file.requests["size"].sum()) for file in workload.files)
        return Moved(requests, measured(self.program, (), (), 0.0, {}, workload, waits).io_seconds)

    def simulated_s(self, trace: Path, plans: Mapping[str, Plan]) -> dict[str, float]:
        """I/O seconds of a trace's requests in a simulated run under each plan, and under DEF."""
        workload = read_trace(trace, (self.files,))
        default = policy_named(DEF).plan(workload, self.cluster, PlanOptions(region_bytes=self.shape.region_bytes))
        trials = Trials([workload], self.cluster)
        return {name: trials.in_flight_s(covering(plan, default)) for name, plan in {DEF: default, **plans}.items()}

    def named(self, trace: Path, plan: Plan) -> float:
        """The share of a trace's bytes in files, and up to the sizes, that a plan knows."""
        known = {file.path: file.size for file in plan.files}
        files = read_trace(trace, (self.files,)).files
        inside = sum(
            int(file.requests["size"][file.requests["offset"] < known.get(file.path, 0)].sum()) for file in files
        )
        return inside / max(1, sum(int(file.requests["size"].sum()) for file in files))

    def _ssd_accesses(self) -> int:
        rows = [row for row in Store(self.store).devices() if str(row["name"]).startswith("ssd")]
        return sum(int(row["accesses_read"]) + int(row["accesses_write"]) for row in rows)

    def _trace(self) -> Path:
        self.runs += 1
        return self.base / f"trace{self.runs}"

    def _collected(self, trace: Path) -> Path:
        run(STRIPEWISE, "collect", trace)
        remove = ("/bin/sh", "-c", 'rm -rf -- "$1"/*', "sh", self.data)
        run(STRIPEWISE, "run", "--store", self.store, "--no-follow", "--", *remove)
        return trace


def covering(plan: Plan, default: Plan) -> Plan:
    """A plan, with files that it does not know as DEF has them: so they lie when a run makes them."""
    known = {file.path for file in plan.files}
    return replace(plan, files=(*plan.files, *(file for file in default.files if file.path not in known)))


def on_ssds(plan: Plan) -> float:
    """The share of a plan's bytes on SSDs."""
    placed = plan.target_bytes
    return sum(count for name, count in placed.items() if name.startswith("ssd")) / max(1, sum(placed.values()))


def layouts(plan: Plan) -> dict[str, Any]:
    """Where a plan has the bytes of each file."""
    return {file.path: file.layout for file in plan.files}


def plans_of(stage: Stage, profile: Path, failed: list[str]) -> tuple[dict[str, Path], Path]:
    """The plans by layout, and the trace that the first one is of; a synthetic run that fails is noted and left out."""
    first = stage.original()
    traces = {REAL: first}
    for lane in stage.scale.lanes:
        try:
            if lane == AGAIN:
                traces[lane] = stage.original()
            elif lane in WAYS:
                traces[lane] = stage.played(profile, lane)
        except StripewiseError as error:
            failed.append(f"{stage.program}, {lane}: {str(error).replace(f'{stage.base}/', '')}")
            progress(f"{failed[-1]}, left out")
    return {lane: stage.planned(trace, lane) for lane, trace in traces.items()}, first


def half_width(logs: Sequence[Sequence[float]]) -> float:
    """Half the 95 % interval of the difference of two layouts' mean logarithms, from rows of layouts by turns: what
    layouts and turns do not explain is the spread, taken to be the same under all layouts; 0 with one turn.
    """
    table = np.array(logs)
    layouts, turns = table.shape
    free = (layouts - 1) * (turns - 1)
    if not free:
        return 0.0
    rest = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return quantile(free, 0.05) * math.sqrt(float((rest**2).sum()) / free * 2 / turns)


def verdict(low: float, high: float) -> str:
    """Whether two plans' bandwidths differ by less than `CLOSE`, as far as an interval of their ratio tells."""
    if low >= 1 - CLOSE and high <= 1 + CLOSE:
        return "less"
    return "more" if high < 1 - CLOSE or low > 1 + CLOSE else "not told"


def rows_of(stage: Stage, given: Given, failed: list[str]) -> Iterator[dict[str, Any]]:
    """The rows of a program: each plan beside that of its own trace."""
    profile = stage.profile()
    chosen = stage.chosen(profile)
    files, first = plans_of(stage, profile, failed)
    plans = {lane: read_plan(file) for lane, file in files.items()}
    lanes = [DEF, *files]
    found: dict[str, list[Moved]] = {lane: [] for lane in lanes}
    others = []
    for repeat in range(given.repeats):
        for lane in (*lanes[repeat % len(lanes) :], *lanes[: repeat % len(lanes)]):
            trace = stage.original(files.get(lane))
            found[lane].append(stage.moved(trace))
            if lane == DEF:
                others.append(stage.simulated_s(trace, plans))
    planned = stage.simulated_s(first, plans)
    mb_s = {lane: [each.mb_s for each in moved] for lane, moved in found.items()}
    logs = {lane: [math.log(each) for each in values] for lane, values in mb_s.items()}
    half = half_width([logs[lane] for lane in files])
    for lane in files:
        ahead = fmean(logs[lane]) - fmean(logs[REAL])
        low, high = math.exp(ahead - half), math.exp(ahead + half)
        yield {
            "program": stage.program,
            "plan": lane,
            "default": "yes" if lane == chosen else "",
            "same layout": "yes" if layouts(plans[lane]) == layouts(plans[REAL]) else "",
            "emulated": {"def": fmean(mb_s[DEF]), "plan": fmean(mb_s[lane])},
            "emulated_interval": {"def": interval(mb_s[DEF]), "plan": interval(mb_s[lane])},
            "over real": math.exp(ahead),
            "low": low,
            "high": high,
            "differs by 5 %": "" if lane == REAL else verdict(low, high),
            "of_simulation": {
                "over real, its trace": planned[REAL] / planned[lane],
                "over real, other runs": geometric_mean([each[REAL] / each[lane] for each in others]),
                "over def, other runs": geometric_mean([each[DEF] / each[lane] for each in others]),
            },
            "known": stage.named(first, plans[lane]),
            "planned": {
                "regions": sum(len(file.regions) for file in plans[lane].files),
                "on SSDs": on_ssds(plans[lane]),
            },
            "emulated_runs": {"def": mb_s[DEF], "plan": mb_s[lane]},
            "io_s": {"def": [each.io_s for each in found[DEF]], "plan": [each.io_s for each in found[lane]]},
        }


def draw(path: Path, rows: Sequence[Mapping[str, Any]], lanes: Sequence[str]) -> None:
    """Bandwidths over that of the plan from the program's own trace, with their intervals; as simulated, hatched."""
    programs = list(dict.fromkeys(row["program"] for row in rows))
    figure = new_figure(13.0, 4.6)
    axes = figure.subplots()
    shown = [lane for lane in lanes if lane != REAL]
    width = 0.4 / len(shown)
    for number, lane in enumerate(shown):
        own = [row for row in rows if row["plan"] == (REAL if lane == DEF else lane)]
        at = np.array([programs.index(row["program"]) - 0.4 + 2 * number * width for row in own])
        values = [row["emulated"][DEF] / row["emulated"]["plan"] if lane == DEF else row["over real"] for row in own]
        off = [
            [0.0, 0.0] if lane == DEF else [row["over real"] - row["low"], row["high"] - row["over real"]]
            for row in own
        ]
        axes.bar(at, values, width, align="edge", color=COLOURS[lane], label=lane, yerr=np.array(off).T, capsize=2)
        simulated = [
            1 / row["of_simulation"]["over def, other runs"]
            if lane == DEF
            else row["of_simulation"]["over real, other runs"]
            for row in own
        ]
        axes.bar(at + width, simulated, width, align="edge", color=COLOURS[lane], alpha=0.5, hatch="//")
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.axhspan(1 - CLOSE, 1 + CLOSE, color="black", alpha=0.1)
    axes.set_xticks(range(len(programs)), programs)
    axes.set_ylabel("bandwidth over that of the plan from its own run")
    axes.legend(fontsize="small")
    title = "Plans from synthetic runs, real-emulated (hatched: simulated)"
    figure.suptitle(title)
    save_figure(figure, path, title, ("program",), [])


def main() -> None:
    given = arguments()
    rows: list[dict[str, Any]] = []
    failed: list[str] = []
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="stripewise-experiment-", ignore_cleanup_errors=True) as scratch:
        for program in given.programs:
            base = Path(scratch).resolve() / program
            base.mkdir()
            for row in rows_of(Stage(base, program, given.scale), given, failed):
                rows.append(row)
                progress(
                    f"{program}, {row['plan']}: {row['emulated']['plan']:.1f} MB/s (def {row['emulated']['def']:.1f}), "
                    f"{row['over real']:.3f} ({row['low']:.3f} to {row['high']:.3f}) of the real plan; simulated "
                    f"{row['of_simulation']['over real, its trace']:.3f}, other runs "
                    f"{row['of_simulation']['over real, other runs']:.3f}; known {row['known']:.2f}"
                )
    write_result(
        given.out,
        {
            "rows": rows,
            "simulated": False,
            "column_label": "real-emulated",
            "emulated": "MB/s (10^6 bytes) of the program's reads and writes over its I/O time, mean of the repeats",
            "emulated_interval": "half of its 95 % interval (Student's t)",
            "over real": "bandwidth under the row's plan over that under the plan of the program's own trace, "
            "geometric mean; low, high: its 95 % interval (Student's t of logarithms, residuals of plans by turns)",
            "default": "the way that synth takes where none is given",
            "same layout": "the plan has all files just as that of the program's own trace",
            "differs by 5 %": "less: the interval lies within 0.95 and 1.05; more: it lies outside",
            "of_simulation": "ratios of simulated I/O times: of the trace that `real` was planned from, and of runs "
            "under def, from which nothing was planned (geometric mean)",
            "known": "share of the program's bytes in files, and up to the sizes, that the plan knows",
            "planned": "regions of the plan's files, and the share of their bytes that it has on SSDs",
            "processes": given.scale.processes,
            "profiled_processes": PROFILED,
            "options": {name: shape.options for name, shape in given.scale.shapes.items()},
            "ssd_share": SSD_SHARE,
            "search": given.scale.search,
            "repeats": given.repeats,
            "quick": given.quick,
            "failed": failed,
            "load_average": load,
        },
    )
    draw(given.out / "result.svg", rows, given.scale.lanes)


if __name__ == "__main__":
    finish(main)
