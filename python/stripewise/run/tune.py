"""The whole circle: run, trace, plan, apply, run again, with DEF beside the policies, in turns.

The first run tells which files the program touches. Then it runs under the baseline and every chosen policy, round
after round, until the mean times are known well enough. A policy plans from the measured run before it, not from the
first: a program that fills its file once would else be planned for the filling. All measured runs are traced, so that
their conditions are the same. What was fastest stays; where nothing beat the baseline the files go back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import StoreError, StripewiseError, WorkloadError
from ..files.parts import locked_part
from ..files.spelling import path_meant
from ..layout import Layout, target_bytes
from ..moving.mover_status import check_idle
from ..moving.plan_applier import apply_plan, lacking_room
from ..moving.trial import cure_of, cut_short, end_trial, former_layouts, note_trial, noted_text
from ..plan import Plan
from ..plan.application import application_of, is_run_by
from ..policy import PlanOptions, Policy, plan_by
from ..signals import go_on_unless
from ..store import Store, Temporary
from ..store.config import TUNE_LOCK
from ..store.globs import escape, matches
from ..store.kept import without_ids
from ..store.traced import managed_advice, on_store, plain_advice
from ..units import command_line, format_size, time_text
from ..workload import Workload
from ..workload.made import Made, made_in
from ..workload.syncs import written_back
from ..workload.trace import read_trace
from . import runner
from .baseline import ground_of, in_room
from .circle import Circle, Turns
from .collect import collect_logs, note_run
from .inputs import changed_inputs
from .measure import LastObject, Measured, came_from_memory, measured, moved_bytes, read_from_devices
from .put_back import put_back, put_back_or_tell, standing, where_back
from .recreated import globs_of, names_beside, of_series
from .repeats import Repeated, together
from .shown import Shown
from .simulated import with_simulation
from .traces_place import COLLECTED, place_of_traces
from .tuned import SHORT_S, Tuned, of_memory, of_other_work, of_unsure, twin_of
from .ways import Called, beside_given, called_in, carried_out, is_in_force

#: Rounds of measured runs at least and at most, where the user does not say how many; they end when every layout's
#: mean I/O time is known to so much of itself.
ROUNDS, SURE = (2, 5), 0.05
#: Pairs with another way of MPI-IO that take so many times what the quickest one takes are left out; at once where it
#: is the third power of it.
FAR_BEHIND = 1.5
#: The exit status of a program that Ctrl-C ended.
INTERRUPTED = 130
#: Files that runs left are named up to so many, more of them by their globs.
LEFT_NAMED = 8


class Tuner:
    """One circle on one store."""

    def __init__(
        self,
        store: Store,
        command: Sequence[str],
        options: PlanOptions,
        manage: Sequence[str],
        turns: Turns,
        show: Shown,
    ) -> None:
        self.store = store
        self.command = tuple(command)
        self.options = options
        self.manage = tuple(manage)
        self.turns = turns
        self.show = show
        self.keeps_traces = False
        #: How files of a killed tune lay before it, what that had noted, and which files have a layout by now that
        #: somebody wants.
        self.former: dict[str, Layout] = {}
        self.earlier = ""
        self.settled: set[str] = set()
        self.remarks: list[str] = []
        #: Measured runs whose reads memory served, with the bytes that were read and those that came from devices.
        self.cached: list[tuple[str, int, int]] = []
        #: Bytes that each measured run moved.
        self.moved: list[int] = []

    def tune(self, baseline: Policy, chosen: Sequence[Policy], keep_traces: Path | None = None) -> Tuned:
        """Runs the circle with the baseline and every chosen policy; the fastest layout stays."""
        self.keeps_traces = keep_traces is not None
        policies = [baseline, *(policy for policy in chosen if policy.name != baseline.name)]
        with self._alone(), place_of_traces(keep_traces) as place, self.store.configured() as temporary:
            return self._tuned(Circle(temporary, place), policies)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """While it lasts no other tune lays out this store's files. Raises StoreError where one does, or a mover."""
        killed = cut_short(self.store.root)
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(locked_part(self.store.root, TUNE_LOCK, wait=False))
            except BlockingIOError as error:
                raise StoreError(
                    f"{self.store.root}: another tune is at work on this store; wait until it ends"
                ) from error
            check_idle(self.store.root)
            if killed:
                self.show.say(f"{killed}; if this tune leaves them there: {cure_of(self.store.root)}")
            self.former = former_layouts(self.store.root, [each.name for each in self.store.config.cluster.active])
            self.earlier, self.settled = noted_text(self.store.root) if killed else "", set()
            # Where this one ends before it lays anything out, what a killed one left is left still.
            held.callback(lambda: end_trial(self.store.root, self.earlier, self.settled))
            yield

    def _tuned(self, circle: Circle, policies: list[Policy]) -> Tuned:
        self._keep_room(circle.temporary)
        circle.ids = {file.spelled: file.id for file in self.store.files()}
        ids = dict(circle.ids)
        circle.there = frozenset(ids)
        self.show.say("run 1: which files does the program touch?")
        try:
            workload, _ = self._run(circle, "first")
        except (KeyboardInterrupt, Exception):
            self._say_left(circle)
            raise
        for file in workload.files:
            # What the run has made, or made anew, lay nowhere before.
            if (identity := self.store.resolve(file.path)) is not None and ids.get(file.path) == identity:
                # A killed tune may have left it in a layout under trial.
                circle.before[file.path] = self.former.get(file.path) or self.store.layout(identity)
        try:
            done = self._rounds(circle, policies, workload)
            self._settle(circle)
            return done
        except (KeyboardInterrupt, Exception):
            # The files that lay somewhere before this go back there.
            if circle.applied and circle.before:
                put_back_or_tell(self.store, circle.before, circle.plans[circle.applied], self.show)
                self._settle(circle)
            elif circle.applied:
                self.show.say(standing(self.store, circle.plans[circle.applied]))
            self._say_left(circle)
            raise

    def _settle(self, circle: Circle) -> None:
        """Notes the files that lie where somebody wants them from now on."""
        self.settled = {*circle.before, *(file.path for plan in circle.plans.values() for file in plan.files)}

    def _rounds(self, circle: Circle, policies: list[Policy], workload: Workload) -> Tuned:
        """All measured runs, and what comes of them."""
        for number, policy in enumerate(policies):
            asked, plan = workload, without_ids(self._plan(policy, workload))
            if (twin := twin_of(plan, circle.plans.values())) is not None:
                circle.same[policy.name] = twin
                self.show.say(f"{policy.name} proposes the layout of {twin}: measured once")
                continue
            circle.plans[policy.name] = plan
            if told := in_room(plan):
                self.show.say(told)
            workload = self._measure(circle, policy.name)
            # The first run may fill files: the baseline is simulated by its measured one.
            circle.plans[policy.name] = self._simulated(plan, asked if number else workload)
        self._in_ways(circle, policies)
        turn = list(circle.runs)
        # Nothing is learnt of a layout that stands beside itself alone.
        while not (circle.same and len(turn) == 1) and self._goes_on(circle):
            # The other way round each time: what lies there is measured again before it goes.
            turn = turn[::-1]
            for name in turn:
                self._measure(circle, name)
        return self._settled(circle, self._measured_so_far(circle))

    def _in_ways(self, circle: Circle, policies: list[Policy]) -> None:
        """Each policy's layout in each way of MPI-IO that may matter, once; a policy plans from what that way asks for.
        Who is far behind after a second run is out.
        """
        ways = circle.called.ways if circle.called else ()
        if "mpi" in self.turns.levers and not ways:
            told = "made no call of MPI-IO on these files that hints change, so mpi is no lever"
            if self.turns.levers == {"mpi"}:
                raise StoreError(f"{self.command[0]}: {told}; give --levers layout")
            self._remark(f"the program {told}")
        if ways:
            most = len(ways) * len(policies)
            self.show.say(f"{len(ways)} other ways of MPI-IO may matter: up to {most} more runs, then the rounds")
        for way in filter(None, (beside_given(way, os.environ) for way in ways)):
            asked: Workload | None = None
            for policy in policies:
                name = f"{policy.name}+{way.name}"
                plan = circle.plans[policy.name] if asked is None else without_ids(self._plan(policy, asked))
                there = [each for each in circle.plans.values() if each.mpi == way]
                if twin := twin_of(plan, there):
                    circle.same[name] = f"{twin}+{way.name}"
                    continue
                circle.plans[name] = plan = dataclasses.replace(plan, mpi=way)
                try:
                    asked = self._measure(circle, name)
                except runner.EndedBadlyError as error:
                    self._leave_out(circle, name, f"the program ended with status {error.status} by '{way.told}'")
                    break
                if not circle.in_force:
                    told = "hints of the program count more, or its MPI knows none of these"
                    self._leave_out(circle, name, f"was not carried out: {told}")
                    break
                circle.plans[name] = self._simulated(plan, asked)
                if self._is_far_behind(circle, name, [policy.name, *(f"{policy.name}+{each.name}" for each in ways)]):
                    break

    def _is_far_behind(self, circle: Circle, name: str, own: Sequence[str]) -> bool:
        """Leaves a pair out that is far behind the quickest one after two runs, for one may have met a stall, or at
        once by far. Returns whether it is far behind its own policy's others, too: then its way is to blame."""
        least = min(run.io_seconds for runs in circle.runs.values() for run in runs)
        alike = min(run.io_seconds for other in own for run in circle.runs.get(other, ()))
        if FAR_BEHIND * least < circle.runs[name][0].io_seconds <= FAR_BEHIND**3 * least:
            self._measure(circle, name)
        took = min(run.io_seconds for run in circle.runs[name])
        if took > FAR_BEHIND * least:
            self._leave_out(circle, name, f"took {time_text(took)}, the quickest {time_text(least)}")
        return took > FAR_BEHIND * alike

    def _leave_out(self, circle: Circle, name: str, why: str) -> None:
        """Measures a pair no more; its plan stays known, for files lie so."""
        circle.out[name] = why
        circle.runs.pop(name, None)
        self._remark(f"{name} was left out: {why}")

    def _measured_so_far(self, circle: Circle) -> list[Repeated]:
        found = (Repeated(circle.plans[name], tuple(runs)) for name, runs in circle.runs.items())
        return together(found, len(circle.out))

    def _goes_on(self, circle: Circle) -> bool:
        """Whether there is another round."""
        done = self._measured_so_far(circle)
        rounds = len(done[0].runs)
        if self.turns.rounds is not None:
            return rounds < self.turns.rounds
        return rounds < ROUNDS[0] or (
            rounds < ROUNDS[1] and any(each.half_width is None or each.half_width > SURE for each in done)
        )

    def _measure(self, circle: Circle, name: str) -> Workload:
        """One measured run under a layout, which is applied first where another lies there."""
        plan = circle.plans[name]
        if circle.applied != name:
            self.show.say(f"apply {name}: {len(plan.files)} file(s)")
            self._apply(circle, name)
        # What the run makes anew lies as planned, under the planned names first.
        planned = {file.path: file for file in plan.files}
        exact = {escape(path_meant(circle.first.get(path, path))): file for path, file in planned.items()}
        globs = self._globs(circle, set(planned))
        circle.temporary.templates(exact | {glob: planned[path] for glob, path in globs.items() if glob not in exact})
        self.show.say(f"run {circle.number + 1}: {name}")
        workload, row = self._run(circle, name)
        self._check_layouts(circle, plan)
        circle.runs.setdefault(name, []).append(row)
        return workload

    def _settled(self, circle: Circle, layouts: list[Repeated]) -> Tuned:
        """Lays the files out to stay: as the fastest layout has them, or as before where none beat the baseline."""
        remarks = (
            of_memory(self.cached, circle.number - 1),
            of_other_work(self.moved, self.turns.reset is not None),
            None if self.turns.rounds else of_unsure(layouts, ROUNDS[1], SURE),
            *self._left(circle),
        )
        for told in filter(None, remarks):
            self._remark(told)
        baseline = layouts[0]
        fastest = min(layouts, key=lambda each: each.mean.io_seconds)
        if baseline.mean.io_seconds < SHORT_S:
            self._remark(f"the runs had {time_text(baseline.mean.io_seconds)} of I/O; longer ones tell more of layouts")
        if fastest is baseline or not fastest.beats(baseline):
            if len(layouts) > 1:
                back = where_back(self.store, circle.before, baseline.plan)
                self._remark(f"no layout was faster than {baseline.policy} by more than runs differ: {back}")
            self._apply(circle, baseline.policy)
            go_on_unless(put_back(self.store, circle.before, self.show))
            return Tuned(tuple(layouts), None, tuple(self.remarks), same=circle.twins)
        planned = {file.path: file for file in fastest.plan.files}
        globs = self._globs(circle, circle.made & set(planned))
        anew = {glob: planned[path] for glob, path in globs.items()}
        passing = frozenset(((circle.made | of_series(planned, globs, circle.first)) & set(planned)) - circle.always)
        if circle.applied != fastest.policy:
            self._apply(circle, fastest.policy)
        return Tuned(tuple(layouts), fastest, tuple(self.remarks), anew, circle.twins, passing)

    def _left(self, circle: Circle) -> Iterator[str]:
        """The files that the runs made and left, if any: every run makes its own where their names change."""
        left = [file for file in self.store.files() if file.path and file.spelled not in circle.there]
        if left:
            paths = self._together(circle, [file.path for file in left])
            remove = f"{command_line(['stripewise', 'run', '--store', str(self.store.root), '--', 'rm'])} {paths}"
            more = f" and {len(left) - 1} more, {format_size(sum(file.size for file in left))} in all" * (len(left) > 1)
            runs = "run 1" if circle.number == 1 else "the runs"
            yield f"{runs} made, and left, {left[0].path}{more}; what is not wanted goes with: {remove}"

    def _together(self, circle: Circle, paths: Sequence[str]) -> str:
        """Names of files for a shell: all of them, or where these are many their globs, if those take no other file."""
        if len(paths) > LEFT_NAMED:
            globs = list(self._globs(circle, set(paths)))
            others = [path for path in circle.there if any(matches(glob, path) for glob in globs)]
            are_plain = all(re.fullmatch(r"[\w./*\[\]-]+", glob, re.ASCII) for glob in globs)
            if are_plain and not others and all(any(matches(glob, path) for glob in globs) for path in paths):
                return " ".join(globs)
        return command_line(paths)

    def _say_left(self, circle: Circle) -> None:
        """The same where a circle ends early; what ends it is told, not that a store is gone with it."""
        with contextlib.suppress(StripewiseError):
            for told in self._left(circle):
                self.show.say(told)

    def _globs(self, circle: Circle, made: set[str]) -> dict[str, str]:
        """Of files that are made anew, by all names that are known: a run may always make the same ones."""
        return globs_of(made, circle.known | names_beside(made, circle.first), circle.first)

    def _note_names(self, circle: Circle, workload: Workload, made: Made) -> None:
        """Which files a run made anew: they have other ids than before, or it began them from nothing."""
        here = {file.path: file.id for file in workload.files if file.id is not None}
        for path, identity in here.items():
            # What the first run made it need not make again.
            if circle.ids.get(path, identity if circle.number == 1 else None) != identity:
                circle.made.add(path)
        if circle.number > 1:
            circle.made |= made.anew & set(here)
        circle.always = set(here) if circle.number == 1 else circle.always & set(here)
        circle.ids |= here
        circle.known |= made.names | {circle.first.get(path, path) for path in here}

    def _check_layouts(self, circle: Circle, plan: Plan) -> None:
        """Remarks on files that a run made somewhere else than planned: what was measured is not the plan then."""
        there = {file.spelled: file for file in self.store.files()}
        for file in plan.files:
            found = there.get(file.path)
            if file.path not in circle.made or found is None:
                continue
            if target_bytes(self.store.layout(found.id).regions, found.size) != target_bytes(file.layout, found.size):
                self._remark(
                    f"{file.path}: the program made it under a name that no run had before, so it was not laid out as "
                    f"planned, and the times tell less; give new files a layout with 'stripewise store template add'"
                )
                break

    def _remark(self, text: str) -> None:
        if text not in self.remarks:
            self.remarks.append(text)

    def _keep_room(self, temporary: Temporary) -> None:
        """Keeps files of unknown size off targets of limited capacity while they are first written."""
        cluster = self.store.config.cluster
        limited = any(target.capacity_bytes for target in cluster.sservers)
        if limited and cluster.hservers and self.store.config.default_layout == "def":
            temporary.default_layout("hservers")

    def _run(self, circle: Circle, name: str) -> tuple[Workload, Measured]:
        circle.number += 1
        first = circle.number == 1
        trace = circle.place / (name if not circle.runs.get(name) else f"{name}-{len(circle.runs[name]) + 1}")
        trace.mkdir(parents=True, exist_ok=True)
        last = LastObject()

        def line(text: bytes) -> None:
            last.see(text)
            self.show.line(text)

        if self.turns.reset is not None and not first:
            self._reset()
        way = None if first else circle.plans[name].mpi
        is_tuned = way is not None and way.engine
        env = runner.environment(os.environ, self.store.root, trace, self.manage, self.command, engine=is_tuned)
        before, read_before = self._clocks(), read_from_devices()
        # Traces that the user keeps tell of it; whether it can be noted does not matter to the circle.
        note_run(trace)
        with carried_out(way, env):
            ended = runner.run(self.command, env, line)
        note_run(trace, ended)
        after, read_after = self._clocks(), read_from_devices()
        # A program that catches the signal may end well, or with a status of its own.
        go_on_unless(signal.SIGINT if ended.heard is None and ended.status == INTERRUPTED else ended.heard)
        if ended.status:
            cure = (
                "make it run under 'stripewise run' first"
                if first
                else "it ended well before: if it needs its inputs set back, give --reset CMD"
            )
            told = f"{self.command[0]}: ended with status {ended.status} in run {circle.number}; {cure}"
            raise runner.EndedBadlyError(ended.status, told)
        collected = trace.with_name(trace.name + COLLECTED)
        try:
            with self.show.working("collecting the trace"):
                collect_logs(trace, collected)
        except StripewiseError as error:
            if any(trace.glob("*.swt")):
                raise
            raise StoreError(
                f"{self.command[0]}: did no I/O that is traced in run {circle.number}, so there is nothing to lay out; "
                f"if it did some, '{command_line(['stripewise', 'doctor', '--', *self.command])}' tells what it is by"
            ) from error
        made = made_in(collected)
        circle.first |= made.first
        workload = self._ours(collected)
        self._note_names(circle, workload, made)
        if first:
            self._check_inputs(collected)
        else:
            self._check_cache(f"run {circle.number} ({name})", workload, read_after - read_before)
        written = {file.path for file in workload.files if file.requests["write"].any()}
        waits = written_back(collected, written | {made.first.get(path, path) for path in written})
        paths = [file.path for file in workload.files]
        called = called_in(collected, paths) if "mpi" in self.turns.levers else Called()
        circle.in_force = way is None or is_in_force(way, collected, paths)
        if not first:
            circle.called = circle.called or called
            self.moved.append(moved_bytes(workload, called))
        return workload, measured(name, before, after, ended.seconds, last.value, workload, waits, called)

    def _clocks(self) -> list[dict[str, Any]]:
        """The counters of emulated devices, whose time is made here; nobody knows how long others were busy."""
        there = [target for target in self.store.config.cluster.targets if target.state != "removed"]
        emulated = {target.name for target in there if target.kind == "emulated"}
        return [row for row in self.store.devices() if row["name"] in emulated]

    def _reset(self) -> None:
        """Sets the inputs back, by the user's own command on the store."""
        command = ["/bin/sh", "-c", str(self.turns.reset)]
        ended = runner.run(command, runner.environment(os.environ, self.store.root, None, self.manage, command))
        go_on_unless(ended.heard)
        if ended.status:
            raise StoreError(f"--reset: '{self.turns.reset}' ended with status {ended.status}; it must end with 0")

    def _check_inputs(self, collected: Path) -> None:
        """A second run must begin from what the first one began from. Raises StoreError where it would not."""
        if self.turns.reset is not None:
            return
        changed = changed_inputs(read_trace(collected, ["/*"]))
        if changed:
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            raise StoreError(
                f"{changed[0]}{more}: the first run read it and changed what it had read, so the next one would begin "
                f"from other data; restore it, then give --reset CMD, which restores it before every run but the "
                f"first, or --reset true where that changes nothing"
            )

    def _check_cache(self, run: str, workload: Workload, from_devices: int) -> None:
        """Notes a run whose reads memory served: they tell nothing of a layout. Emulated devices take their time."""
        if all(target.kind == "emulated" for target in self.store.config.cluster.targets):
            return
        read = sum(int(file.requests["size"][~file.requests["write"]].sum()) for file in workload.files)
        if came_from_memory(read, from_devices):
            self.cached.append((run, read, from_devices))

    def _ours(self, collected: Path) -> Workload:
        """The workload on files of this store, with their ids and sizes."""
        try:
            workload = read_trace(collected)
        except WorkloadError as error:
            cure = managed_advice(self.store.config)
            raise StoreError(f"{self.command[0]}: touched no file of the store {self.store.root}; {cure}") from error
        found = on_store(workload, self.store)
        if not found.files:
            cure = f"{managed_advice(self.store.config)}. What it removes before it ends cannot be laid out"
            cure = plain_advice(workload, self.store, self.manage, self.keeps_traces) or cure
            raise StoreError(f"{self.command[0]}: left no file in the store {self.store.root}; {cure}")
        # A script's own words are not the program's that it starts, and the words are what the next run has.
        is_told = is_run_by(application_of(found.command), self.command)
        return found if is_told else dataclasses.replace(found, command=self.command)

    def _plan(self, policy: Policy, workload: Workload) -> Plan:
        with self.show.working(f"planning with {policy.name}"):
            return plan_by(policy, workload, *ground_of(self.store, workload, self.options))

    def _simulated(self, plan: Plan, workload: Workload) -> Plan:
        with self.show.working(f"simulating {plan.policy}"):
            return with_simulation(plan, workload, *ground_of(self.store, workload, self.options))

    def _apply(self, circle: Circle, name: str) -> None:
        """Lays out the planned files that are there; those that the program makes are laid out when it makes them."""
        plan = circle.plans[name]
        there = {file.path: identity for file in plan.files if (identity := self.store.resolve(file.path)) is not None}
        if crowded := lacking_room(self.store, plan, there):
            raise StoreError(crowded)
        # What ends the moves leaves some files as this plan has them.
        circle.applied = name
        files = tuple(file for file in plan.files if file.path in there)
        paths = [file.path for file in files]
        note_trial(self.store.root, self.command, paths, circle.before, circle.there, self.earlier)
        with self.show.working("moving") as step:
            applied = apply_plan(self.store, dataclasses.replace(plan, files=files), there, progress=step, verb="tune")
        go_on_unless(applied.signal)
