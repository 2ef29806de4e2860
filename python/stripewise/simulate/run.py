"""One simulated run: a workload, a cluster and a plan in, the engine's report out.

A `Load` is what the engine is fed with and what policies plan from; the second is made only when a policy asks for it,
for the engine streams and the planners do not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import native
from ..cluster import Cluster
from ..errors import WorkloadError, naming
from ..plan import Plan
from ..workload import Workload
from ..workload.counted import BY_DEFAULT, Choice, Touched
from ..workload.describe import Description
from ..workload.generated import generated_workload, made_by
from ..workload.trace import partial_reasons, read_trace, trace_file, wanted_files
from .scenario import scenario

LOOPS = ("closed", "open")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Settings:
    """What belongs to the run and not to the plan: `copy_bytes_per_s` is the mover's most, 0 no limit."""

    seed: int = 1
    read_ahead_bytes: int = 0
    copy_bytes_per_s: float = 0.0


@dataclass(frozen=True)
class Load:
    """What is run: `engine_json` gives what the engine takes for files, `plan_from` what a policy plans from.

    `paths` are the files where they are known before a plan; `choice` is made among those of a plan; `partial` as in
    `Workload`.
    """

    source: str
    paths: tuple[str, ...] | None
    engine_json: Callable[[Sequence[str]], str]
    plan_from: Callable[[], Workload]
    choice: Choice = BY_DEFAULT
    partial: tuple[str, ...] = ()

    @cached_property
    def workload(self) -> Workload:
        """The requests for policies, made when they are first asked for."""
        return self.plan_from()


@dataclass(frozen=True)
class Outcome:
    """A simulated run: the engine's report as docs/formats.md draws it.

    `io_s` are the seconds with any read under way and those with any write, added, as `plan` expects and `tune`
    measures them, `run_s` those of the whole run as `plan` expects it, processes begun at once or in turns; both None
    where that was not simulated.
    """

    name: str
    plan: Plan
    report: Mapping[str, Any]
    io_s: float | None = None
    run_s: float | None = None

    def latency_s(self, operation: str, quantile: str) -> float | None:
        """A quantile (`p50`, `p99`, ..) of the latency of reads or writes; None where there were none."""
        latency = self.report["latency_s"][operation]
        return None if latency is None else float(latency[quantile])


@dataclass(frozen=True)
class Compared:
    """A run beside those of the same comparison: how many times as fast as DEF's it is, if one was, as a whole with the
    program's own time between requests, and in I/O alone.
    """

    outcome: Outcome
    times_def: float | None
    io_times_def: float | None

    def as_json(self, details: bool) -> dict[str, Any]:
        """The run as `simulate --json` prints it; `details` are the engine's lists of servers, moves, the timeline."""
        left_out = () if details else ("servers", "timeline", "moves")
        report = {key: value for key, value in self.outcome.report.items() if key not in left_out}
        times = {"times_def": self.times_def, "io_times_def": self.io_times_def, "io_s": self.outcome.io_s}
        return {"policy": self.outcome.name, **times, **report}


def compared(outcomes: Sequence[Outcome]) -> list[Compared]:
    """Runs of one load beside the one under DEF, where there is one."""
    baseline = next((outcome for outcome in outcomes if outcome.plan.policy == "def"), None)
    base_mb_s = 0.0 if baseline is None else float(baseline.report["mb_s"])
    base_io_s = None if baseline is None else baseline.io_s
    base_run_s = None if baseline is None else baseline.run_s

    def row(outcome: Outcome) -> Compared:
        times = float(outcome.report["mb_s"]) / base_mb_s if base_mb_s else None
        if base_run_s and outcome.run_s:
            times = base_run_s / outcome.run_s
        return Compared(outcome, times, base_io_s / outcome.io_s if base_io_s and outcome.io_s else None)

    return list(map(row, outcomes))


def load_description(description: Description) -> Load:
    """The load of a described workload. Raises WorkloadError when its keys do not fit together."""
    if not made_by(description).requests:
        raise WorkloadError(f"{description.source}: reads and writes are 0; give at least one request")
    return Load(
        source=description.source,
        paths=tuple(description.paths),
        engine_json=lambda _: description.as_json(),
        plan_from=lambda: generated_workload(description),
    )


def load_trace(path: Path, choice: Choice = BY_DEFAULT, loop: str = "closed", progress: Progress | None = None) -> Load:
    """The load of a collected trace; `loop` keeps the program's think times (closed) or its times (open)."""
    source = trace_file(path)

    def engine_json(paths: Sequence[str]) -> str:
        return json.dumps({"version": 1, "kind": "trace", "path": str(source), "files": list(paths), "loop": loop})

    def plan_from() -> Workload:
        return read_trace(path, choice, progress)

    return Load(str(source), None, engine_json, plan_from, choice, partial_reasons(path))


def paths_of(load: Load, plan: Plan, planned_here: bool) -> Sequence[str]:
    """The files that requests name: a trace has those of its workload, or of the plan where none was made here.

    Raises WorkloadError when the patterns leave none.
    """
    if load.paths is not None:
        return load.paths
    if planned_here:
        return [file.path for file in load.workload.files]
    paths = [file.path for file in plan.files]
    # What somebody planned is left out by options alone.
    chosen = wanted_files(dict.fromkeys(paths, Touched(0, managed=True)), replace(load.choice, own=()))
    kept = [path for path in paths if path in chosen.files]
    if not kept:
        given = " ".join(load.choice.words())
        raise WorkloadError(f"{given}: the plan has no file matching that; give other globs, or none")
    return kept


def simulate_plan(
    load: Load,
    cluster: Cluster,
    plan: Plan,
    settings: Settings | None = None,
    name: str = "",
    planned_here: bool = True,
    progress: Progress | None = None,
) -> Outcome:
    """Runs the load under a plan. Raises PlanError or WorkloadError naming file and cure."""
    given = settings or Settings()
    paths = paths_of(load, plan, planned_here)
    described = scenario(plan, cluster, paths, given.seed, given.read_ahead_bytes, given.copy_bytes_per_s)
    with naming(load.source):
        report = native.call("simulate", json.dumps(described), load.engine_json(paths), progress)
    return Outcome(name or plan.policy, plan, report)
