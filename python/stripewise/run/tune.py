"""The whole circle: run, trace, plan, apply, run again, with DEF beside the policy.

Runs of the same command: one to learn which files it touches, one under the baseline, one under every policy that was
chosen. A policy plans from the measured run before it, not from the first: a program that fills its file once would
else be planned for the filling. All measured runs are traced, so that they are measured under the same conditions.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import native
from ..errors import StoreError, WorkloadError
from ..moving.plan_applier import apply_plan
from ..plan import Plan
from ..plan.application import application_of, is_run_by
from ..policy import PlanOptions, Policy
from ..store import Store, Temporary
from ..store.globs import escape
from ..store.traced import on_store
from ..workload import Workload
from ..workload.trace import read_trace
from . import runner
from .collect import collect_logs
from .measure import LastObject, Measured, measured

#: Runs of one layout differ by so much.
ALIKE = 1.05
Say = Callable[[str], None]
Line = Callable[[bytes], None]
Moving = Callable[[], AbstractContextManager[native.Progress]]


@dataclass(frozen=True)
class Tuned:
    """The baseline's and the policy's runs with their plans."""

    runs: tuple[Measured, ...]
    plans: tuple[Plan, ...]

    @property
    def faster(self) -> Measured | None:
        """The fastest run, where it was faster than the last one, whose layout stays, by more than runs differ."""
        fastest = min(self.runs, key=lambda run: run.io_seconds)
        return fastest if fastest.io_seconds * ALIKE < self.runs[-1].io_seconds else None

    @property
    def expected_gain(self) -> float:
        """How many times faster than the baseline the bound says the last plan is."""
        return self.plans[-1].expected.bound_gain

    @property
    def measured_gain(self) -> float | None:
        """How many times less I/O time the last run took than the first."""
        first, last = self.runs[0], self.runs[-1]
        return first.io_seconds / last.io_seconds if last.io_seconds > 0 else None

    def as_json(self) -> dict[str, Any]:
        """The circle as `tune --json` prints it."""
        return {
            "runs": [row.as_json() for row in self.runs],
            "expected_gain": self.expected_gain,
            "measured_gain": self.measured_gain,
        }


class Tuner:
    """One circle on one store: `say` gets a sentence per step, `line` the program's output, `moving` shows moves."""

    def __init__(
        self,
        store: Store,
        command: Sequence[str],
        options: PlanOptions,
        manage: Sequence[str],
        say: Say,
        line: Line,
        moving: Moving,
    ) -> None:
        self.store = store
        self.command = tuple(command)
        self.options = options
        self.manage = tuple(manage)
        self.say = say
        self.line = line
        self.moving = moving

    def tune(self, baseline: Policy, chosen: Sequence[Policy], keep_traces: Path | None = None) -> Tuned:
        """Runs the circle with the baseline and then every chosen policy; the last one's layout stays applied."""
        policies = [baseline, *(policy for policy in chosen if policy.name != baseline.name)]
        place = keep_traces or Path(tempfile.mkdtemp(prefix="stripewise-tune-"))
        try:
            with self.store.configured() as temporary:
                return self._circle(temporary, place, policies)
        finally:
            if keep_traces is None:
                shutil.rmtree(place, ignore_errors=True)

    def _circle(self, temporary: Temporary, place: Path, policies: list[Policy]) -> Tuned:
        self._keep_room(temporary)
        self.say("run 1: which files does the program touch?")
        workload, _ = self._run(place / "first", "first")
        runs, plans = [], []
        for number, policy in enumerate(policies, start=2):
            name = policy.name
            plan = self._plan(policy, workload)
            self.say(f"apply {name}: {len(plan.files)} file(s), expected {plan.expected.bound_gain:.2f} times def")
            self._apply(temporary, plan)
            self.say(f"run {number}: {name}")
            workload, row = self._run(place / name, name)
            plans.append(plan)
            runs.append(row)
        return Tuned(tuple(runs), tuple(plans))

    def _keep_room(self, temporary: Temporary) -> None:
        """Keeps files of unknown size off targets of limited capacity while they are first written."""
        cluster = self.store.config.cluster
        limited = any(target.capacity_bytes for target in cluster.sservers)
        if limited and cluster.hservers and self.store.config.default_layout == "def":
            temporary.default_layout("hservers")

    def _run(self, trace: Path, name: str) -> tuple[Workload, Measured]:
        trace.mkdir(parents=True, exist_ok=True)
        last = LastObject()

        def line(text: bytes) -> None:
            last.see(text)
            self.line(text)

        env = runner.environment(os.environ, self.store.root, trace, self.manage, self.command)
        before = self.store.devices()
        ended = runner.run(self.command, env, line)
        after = self.store.devices()
        if ended.status:
            raise StoreError(
                f"{self.command[0]}: ended with status {ended.status}; make it run under 'stripewise run' first"
            )
        collected = trace.with_name(trace.name + "-collected")
        collect_logs(trace, collected)
        workload = self._ours(collected)
        return workload, measured(name, before, after, ended.seconds, last.value, workload)

    def _ours(self, collected: Path) -> Workload:
        """The workload on files of this store, with their ids and sizes."""
        cure = "name the files with --manage, or see 'rule' in its store.toml"
        try:
            workload = read_trace(collected)
        except WorkloadError as error:
            raise StoreError(f"{self.command[0]}: touched no file of the store {self.store.root}; {cure}") from error
        found = on_store(workload, self.store)
        if not found.files:
            raise StoreError(f"{self.command[0]}: left no file in the store {self.store.root}; {cure}")
        # A script's own words are not the program's that it starts, and the words are what the next run has.
        is_told = is_run_by(application_of(found.command), self.command)
        return found if is_told else dataclasses.replace(found, command=self.command)

    def _plan(self, policy: Policy, workload: Workload) -> Plan:
        reserved = self.store.used_by_others([file.path for file in workload.files])
        options = dataclasses.replace(self.options, reserved_bytes=reserved)
        return policy.plan(workload, self.store.config.cluster, options)

    def _apply(self, temporary: Temporary, plan: Plan) -> None:
        with self.moving() as step:
            applied = apply_plan(self.store, plan, self.store.identities(plan, "the plan"), progress=step)
        if applied.signal is not None:
            raise KeyboardInterrupt
        temporary.templates({escape(file.path): file for file in plan.files})
