"""Homes and copies chosen together: the layouts of a policy, and the copies that a manager makes beside them.

A policy's homes are planned first; copies have the room that these leave on every target. `best` weighs more: homes
with all of the room and homes that leave SServers to copies, DEF's and its own, copies on all servers and on SServers
alone. The run is simulated from each. The quickest is the plan; of those that are as quick that with the least I/O
time, which alone tells where the program's own time fills the run; of these that with the least to copy. So it is
behind neither homes nor copies by themselves by more than two hundredths of the simulated run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..cluster import Cluster
from ..errors import PlanError
from ..layout import Layout
from ..plan import Plan, PlannedReplicas
from ..policy import POLICIES, PlanOptions, Policy, plan_by
from ..policy.best.best import Best
from ..policy.best.tuning import TIME_LIMIT_S, TRIAL_REQUESTS_MAX, WORTHWHILE
from ..policy.default import Default
from ..simulate.run import Settings
from ..units import round_up
from ..workload.requests import Workload
from .accesses import Found
from .candidate import Candidate, Decision
from .managers import Options, decide
from .setting import Setting
from .simulated import simulate_served

#: Parts of the space for copies that homes leave on SServers of limited capacity.
LEFT_FOR_COPIES = (0.0, 0.5, 1.0)
#: Sets of the quickest choice that are tried without, those of the least benefit first.
SPARED_MAX = 8


@dataclass(frozen=True)
class Wanted:
    """The manager of copies, what it is asked, and what servers read ahead of a process in a simulated run."""

    manager: str
    options: Options
    read_ahead_bytes: int = 0


@dataclass(frozen=True)
class Tried:
    """A choice: where homes lie, in words, their plan, the copies, and the simulated seconds of the run and of its I/O
    (those with any read under way and those with any write, added).
    """

    home: str
    #: Part of the space for copies that the home leaves on SServers.
    left: float
    plan: Plan
    copies: str
    decision: Decision
    run_s: float
    io_s: float

    @property
    def copied_bytes(self) -> int:
        """Space of the copies."""
        return sum(self.decision.space_bytes.values())

    def as_json(self) -> dict[str, Any]:
        """A row of `plan --json`."""
        return {
            "home": self.home,
            "left_for_copies": self.left,
            "copies": self.copies,
            "replicas": len(self.decision.chosen),
            "bytes": self.copied_bytes,
            "simulated_s": self.run_s,
            "simulated_io_s": self.io_s,
        }


@dataclass(frozen=True)
class Joint:
    """What was chosen, and all that was tried, in the order of trial."""

    chosen: Tried
    tried: tuple[Tried, ...]
    #: What the user gave: the policy, and the bound of the copies.
    policy: str
    space_bytes: int | None
    #: Of servers in the simulated runs.
    read_ahead_bytes: int = 0

    def plan(self) -> Plan:
        """The plan of the homes, with the copies beside them."""
        made = self.chosen.decision
        # Where room is kept for copies, files may not stay as they lie.
        stays = not self.chosen.left and (self.chosen.plan.leave or self.chosen.home == Default.name != self.policy)
        plan = replace(self.chosen.plan, policy=self.policy, leave=stays)
        if not made.chosen:
            return plan
        alone = next(each for each in self.tried if each.plan is self.chosen.plan and not each.decision.chosen)
        baseline = next(each for each in self.tried if each.home == Default.name and not each.left)
        copies = PlannedReplicas(
            made.manager,
            self.space_bytes,
            tuple(each.as_json() for each in made.sets),
            () if made.sets else tuple(each.as_json() for each in made.chosen),
            self.chosen.run_s,
            self.chosen.io_s,
            alone.io_s,
            baseline.io_s,
        )
        return replace(plan, replicas=copies)


def plan_jointly(
    workload: Workload, found: Found, cluster: Cluster, policy: Policy, options: PlanOptions, wanted: Wanted
) -> Joint:
    """The policy's homes and the manager's copies; `found` has the patterns of the same run.

    Raises PlanError where the data do not fit, ClusterError where the manager lacks servers.
    """
    search = _Search(workload, found, cluster, options, wanted)
    given = wanted.options.space_bytes, wanted.read_ahead_bytes
    if policy.name != Best.name:
        home = _Home(policy.name, 0.0, plan_by(policy, workload, cluster, options))
        tried = [search.tried(home, each) for each in (False, True)]
        if policy.name != Default.name:
            tried.append(search.tried(_Home(Default.name, 0.0, Default().plan(workload, cluster, _plain(options)))))
        return Joint(tried[1], tuple(tried), policy.name, *given)
    tried = list(search.all())
    quick = _near(tried, lambda each: each.run_s)
    chosen = min(_near(quick, lambda each: each.io_s), key=lambda each: (each.copied_bytes, each.io_s))
    spared = search.spared(chosen)
    return Joint(spared[-1] if spared else chosen, (*tried, *spared), policy.name, *given)


def _near(tried: Sequence[Tried], seconds: Callable[[Tried], float]) -> list[Tried]:
    """Those that take hardly longer than the quickest."""
    least_s = min(map(seconds, tried))
    return [each for each in tried if seconds(each) <= least_s * (1 + WORTHWHILE)]


@dataclass(frozen=True)
class _Home:
    """Layouts of the files, and what they leave for copies."""

    name: str
    left: float
    plan: Plan


class _Search:
    """One search for homes and copies of a run."""

    def __init__(
        self, workload: Workload, found: Found, cluster: Cluster, options: PlanOptions, wanted: Wanted
    ) -> None:
        self.workload, self.cluster, self.options, self.wanted = workload, cluster, options, wanted
        self.run = _first_requests(workload, TRIAL_REQUESTS_MAX)
        paths = {each.path for each in workload.files}
        self.found = replace(found, patterns=tuple(each for each in found.patterns if each.file in paths))

    def all(self) -> Iterator[Tried]:
        """Every home with no copies, and with each kind of copies that is not the same as another."""
        for home in self.homes():
            made = [self.tried(home, True, on_sservers) for on_sservers in (False, True)]
            # Why there are no copies is told with the layouts that have none.
            yield replace(self.tried(home), decision=replace(made[0].decision, chosen=(), sets=()))
            seen: list[tuple[Candidate, ...]] = [()]
            for each in made:
                if each.decision.chosen not in seen:
                    seen.append(each.decision.chosen)
                    yield each

    def homes(self) -> Iterator[_Home]:
        """DEF's and those of `best`, with all of the room and with less."""
        # What is equal to another reservation is planned once.
        rooms = {tuple(sorted(self.left(part).items())): part for part in reversed(LEFT_FOR_COPIES)}
        limit_s = TIME_LIMIT_S if self.options.time_limit_s is None else self.options.time_limit_s
        for room, part in reversed(rooms.items()):
            held = dict(self.options.reserved_bytes)
            for name, count in room:
                held[name] = held.get(name, 0) + count
            mine = replace(self.options, reserved_bytes=held, time_limit_s=limit_s / len(rooms))
            for name, asked in ((Default.name, _plain(mine)), (Best.name, mine)):
                try:
                    yield _Home(name, part, plan_by(POLICIES[name], self.workload, self.cluster, asked))
                except PlanError:
                    # Where nothing is kept for copies it is the files that do not fit.
                    if not part:
                        raise

    def left(self, part: float) -> dict[str, int]:
        """What homes leave for copies on SServers of limited capacity, by name."""
        limited = [each for each in self.cluster.sservers if each.usable_bytes]
        space = self.wanted.options.space_bytes
        left = {}
        for each in limited:
            share = each.usable_bytes if space is None else min(each.usable_bytes, -(-space // len(limited)))
            if part:
                left[each.name] = round_up(int(part * share))
        return left

    def tried(self, home: _Home, has_copies: bool = False, on_sservers: bool = False) -> Tried:
        """One home with copies or without, simulated."""
        copies = f"by {self.wanted.manager}{', on SServers' if on_sservers else ''}"
        made = self.decided(home.plan, on_sservers) if has_copies else Decision(self.wanted.manager, (), ())
        seconds = self.simulated(home.plan, made.chosen)
        return Tried(home.name, home.left, home.plan, copies if made.chosen else "none", made, *seconds)

    def decided(self, home: Plan, on_sservers: bool) -> Decision:
        """The manager's copies in the room beside a home."""
        held = home.bytes_per_target()
        for name, count in self.options.reserved_bytes.items():
            held[name] = held.get(name, 0) + count
        asked = replace(self.wanted.options, held_bytes=held)
        if on_sservers:
            asked = replace(asked, radar=replace(asked.radar, on_sservers=True))
        layouts = {file.path: Layout(file.layout) for file in home.files}
        return decide(self.wanted.manager, self.found, Setting(self.cluster, layouts), asked)

    def simulated(self, home: Plan, copies: Sequence[Candidate]) -> tuple[float, float]:
        """Simulated seconds of the run, and of its I/O."""
        layouts = {file.path: Layout(file.layout) for file in home.files}
        kept = replace(self.run, files=tuple(each for each in self.run.files if each.path in layouts))
        choice = [("copies", copies)] if copies else []
        settings = Settings(self.options.seed, self.wanted.read_ahead_bytes)
        (ran,) = simulate_served(kept, self.cluster, layouts, choice, settings, not copies, self.found.views)
        return ran.seconds, ran.io_s

    def spared(self, chosen: Tried) -> list[Tried]:
        """The choice with fewer and fewer sets, as long as it is as quick."""
        found: list[Tried] = []
        sets = list(chosen.decision.sets)
        for each in sorted(sets, key=lambda one: one.benefit_s)[:SPARED_MAX]:
            kept = tuple(one for one in sets if one is not each)
            candidates = tuple(candidate for one in kept for candidate in one.candidates)
            run_s, io_s = self.simulated(chosen.plan, candidates)
            if run_s <= chosen.run_s * (1 + WORTHWHILE) and io_s <= chosen.io_s * (1 + WORTHWHILE):
                sets = list(kept)
                decision = replace(chosen.decision, chosen=candidates, sets=kept)
                fewer = replace(chosen, decision=decision, run_s=run_s, io_s=io_s)
                found.append(replace(fewer, copies=f"{chosen.copies}, fewer") if candidates else fewer)
        return found


def _plain(options: PlanOptions) -> PlanOptions:
    """Those that every policy takes."""
    return PlanOptions(
        options.region_bytes, options.stripe_bytes, options.step_bytes, options.seed, options.reserved_bytes
    )


def _first_requests(workload: Workload, most: int) -> Workload:
    """The run up to a time at which about so many requests have begun."""
    if workload.requests <= most:
        return workload
    starts = np.concatenate([file.requests["start_ns"] for file in workload.files])
    until = np.partition(starts, most - 1)[most - 1]
    return replace(
        workload,
        files=tuple(
            replace(file, requests=file.requests[file.requests["start_ns"] <= until]) for file in workload.files
        ),
    )
