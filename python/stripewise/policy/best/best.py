"""best: proposals of many kinds, a bound that no layout undercuts, and runs that none of them was made from.

One objective (cost-models section 7): for every window the busiest server, or the requests alone over the processes in
flight, or the network; windows follow each other, and what moves copy counts. What the next run asks for is told from
the trace (`expected/`); strategies propose layouts for it (`strategies/`), the search over regions others, windows
included (`regions/`); cells that the same requests touch give the bound (`proven/`). With few processes a bound says
too little about queues, so candidates, and the layouts of all other policies, are run in the simulator (`trial.py`),
and the quickest is the plan. Where that is what lies there already, or nothing surely better, the answer is to leave
it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...cluster import Cluster
from ...errors import PlanError
from ...model import Bound
from ...model.general import Int
from ...plan import Plan
from ...units import round_up
from ...workload.requests import Workload
from ..base import POLICIES, PlanOptions, Policy, register
from ..default import place_default
from ..toolkit.assignment import Solution
from ..toolkit.regions import region_requests, window_tables
from ..toolkit.space import Space
from .certainty import gain_interval
from .expected.heats import heats_of
from .expected.likely import likely_run
from .finish import Candidate, Field, Finish, taken
from .judge import Judge, plainest
from .proven.prove import Proof, Proven
from .reasons import as_other, explained
from .regions.cuts import Cuts, choose_cuts, cut_for_balance, cut_table, whole_regions
from .regions.exact import count_of, solve_exactly
from .regions.explain import reasons
from .regions.heads import periods_of
from .regions.layout import Layout, carry_out, lay_out, named, settle_untouched, window_bounds
from .regions.plans import Builder, layout_of
from .regions.problem import Ground, Posed, capacities, pose
from .regions.relaxed import Relaxed, classed, prices_found, solve_relaxed
from .regions.start import as_solution, greedy, spread
from .strategies.case import Case
from .strategies.propose import propose
from .tuning import (
    BIASED_GAP,
    BIASED_PART,
    BIASES,
    BINARIES_MAX,
    BUSY,
    CUTS_MAX,
    EXACT_S,
    FAIR_SHARES,
    FINE_GAP,
    FRESH_RUNS,
    HEADED_BIASES,
    HEADED_GAP,
    HEADED_LEFT_PART,
    JUDGED_PART,
    LEAST_PART,
    LEFT_PART,
    LIKELY_MAX,
    LIKELY_REQUESTS,
    LIKELY_RUNS,
    LONGEST_PART,
    ONE_PART,
    ONE_ROUND,
    OTHERS_STEPS,
    OTHERS_TAKE,
    PIECES_PER_SERVER,
    PROPOSED_PART,
    ROUND_PART,
    SOLVED_MAX,
    SOLVER_GAP,
    TIED,
    TIME_LIMIT_S,
    WIDER_STRIPES,
    WORTHWHILE,
)


@register
class Best(Policy):
    """One objective over all layouts, with a proven bound."""

    name = "best"
    windowed = True
    rotates = None
    takes = frozenset({"window_ns", "time_limit_s", "smooth"})

    def plan(self, workload: Workload, cluster: Cluster, options: PlanOptions) -> Plan:
        return _Search(workload, cluster, options).plan()


class _Search:
    """One search: what it is for, how long it may take, what it has found."""

    def __init__(self, workload: Workload, cluster: Cluster, options: PlanOptions) -> None:
        self.workload, self.cluster, self.options = workload, cluster, options
        limit_s = TIME_LIMIT_S if options.time_limit_s is None else options.time_limit_s
        self.begun = time.monotonic()
        self.until = self.begun + limit_s
        self.limit_s = limit_s
        self.whole, self.windows = window_tables(workload, options.region_bytes, options.window_ns)
        self.tables = [each.table for each in self.windows]
        self.periods = periods_of(self.whole)
        self.processes = max(1, workload.processes)
        self.capacity = capacities(cluster, Space(cluster, options.reserved_bytes))
        # Likely runs and strategies know no windows.
        self.heats = heats_of(workload) if len(self.windows) == 1 else []
        baseline, _ = place_default(self.whole, workload, cluster, options)
        self.runs, fresh = self._runs()
        self.judge = Judge(workload, self.runs, fresh, cluster)
        self.builder = Builder(workload, cluster, options, self.whole, self.windows, baseline)

    def plan(self) -> Plan:
        """The plan, with what is expected of it."""
        default = self._default()
        default_s = time.monotonic() - self.begun
        candidates = [default]
        proven, found, by_heat, ground = self._search()
        candidates += [*found, *(self._exactly(ground) or self._exactly(by_heat))]
        proposals = self._proposed(default)
        candidates += taken(proposals, self._until(PROPOSED_PART))
        candidates += self._others(default_s)
        # What is left is for the last steps, where there are any.
        until = self._until(JUDGED_PART) if len(self.windows) == 1 else float("inf")
        field = Field.of(candidates, self.judge, until)
        while time.monotonic() < until and (more := taken(proposals, self._until(0.0))):
            field.judged(more, until)
        objective_s = min(each.in_turn_s(self.processes) for each in candidates)
        chosen = self._chosen(candidates, field.seconds)
        if chosen and len(self.windows) == 1:
            self._finish().polish(field)
            chosen = self._chosen(candidates, field.anew_s, 0.0 if self.judge.fresh else TIED)
        chosen = self._with_fine_steps(chosen, field)
        if chosen and self._gains_no_io(candidates[chosen].plan, default.plan):
            chosen = 0
        comment = "" if chosen else "leave it as it is: no layout is quicker than def by more than a hundredth"
        plan, bounds = candidates[chosen].plan, candidates[chosen].bounds
        low, high = gain_interval(bounds, default.bounds, self.cluster, self.processes, self.options.seed)
        if chosen and plan.policy != Best.name:
            comment = as_other(plan, [each.plan for each in candidates], len(self.windows), self.options)
        expected = replace(
            plan.expected,
            # Of requests that regions cut it says little, and no layout undercuts what is proven.
            bound_s=max(candidates[chosen].bound_s, proven.seconds),
            bound_def_s=default.bound_s,
            objective_s=objective_s,
            proven_s=proven.seconds,
            proven_continued_s=proven.continued_s,
            gain_low=low,
            gain_high=high,
            simulated_s=field.traced_s[chosen],
            simulated_def_s=field.traced_s[0],
            simulated_io_s=self.judge.io_s(plan),
            simulated_io_def_s=self.judge.io_s(default.plan),
        )
        plan = (
            explained(plan, self.heats, [self.workload, *self.runs], self.cluster, self.capacity)
            if self.heats
            else plan
        )
        options = self.options.as_json()
        return replace(plan, policy=Best.name, options=options, comment=comment, expected=expected, leave=not chosen)

    def _chosen(self, candidates: list[Candidate], seconds: list[float], tie: float = TIED) -> int:
        """Which candidate is the plan, by the seconds that decide, and bounds of those within a tie; DEF's is first."""
        bounds_s = [each.bound_s for each in candidates]
        quickest = min(seconds)
        tied = [n for n, each in enumerate(seconds) if each <= quickest * (1 + tie)]
        chosen = min(tied, key=lambda n: (bounds_s[n], n))
        chosen = plainest([each.plan for each in candidates], seconds, bounds_s, chosen)
        worth_s, worth_bound_s = seconds[chosen] * (1 + WORTHWHILE), bounds_s[chosen] * (1 + WORTHWHILE)
        return 0 if seconds[0] <= worth_s and bounds_s[0] <= worth_bound_s else chosen

    def _gains_no_io(self, plan: Plan, default: Plan) -> bool:
        """Whether a plan's I/O time in the trace is not worth it, however long its whole run is: what is told of it."""
        mine_s, default_s = (self.judge.io_s(each) for each in (plan, default))
        return default_s <= mine_s * (1 + WORTHWHILE)

    def _with_fine_steps(self, chosen: int, field: Field) -> int:
        """The chosen candidate; of another policy in coarser steps than asked for, that one's own plan, if time is left
        for it and it is no slower.
        """
        plan, step = field.candidates[chosen].plan, self.options.step_bytes
        if plan.policy in ("def", Best.name) or plan.options.get("step_bytes") == step or time.monotonic() > self.until:
            return chosen
        try:
            own = self._candidate_of(plan.policy, step_bytes=step)
        except PlanError:
            return chosen
        coarse, judged = self.judge.one(plan), None if own is None else self.judge.one(own.plan)
        if own is None or judged is None or coarse is None or judged.seconds > coarse.seconds:
            return chosen
        field.add(own, judged)
        return len(field.candidates) - 1

    def _finish(self) -> Finish:
        """The last steps, of a search over one window."""
        return Finish(
            self.workload, self.runs, self.heats, self.cluster, self.capacity, self.options, self.windows[0].window,
            self.until,
        )  # fmt: skip

    def _runs(self) -> tuple[list[Workload], list[Workload]]:
        """Likely runs, and fresh ones; none where the trace tells enough, has windows, or will be repeated."""
        repeats = self.options.smooth is False
        if repeats or len(self.windows) > 1 or self.workload.requests > LIKELY_MAX:
            return [], []
        if all(heat is None or not heat.varies for heat in self.heats):
            return [], []
        runs = int(np.clip(LIKELY_REQUESTS // max(1, self.workload.requests), *LIKELY_RUNS))
        finest = [None if heat is None else heat.finest() for heat in self.heats]
        drawn = [likely_run(self.workload, finest, seed) for seed in range(runs + FRESH_RUNS)]
        return drawn[:runs], drawn[runs:]

    # The grounds -----------------------------------------------------------------------------------------------------

    def _ground(self, cuts: Cuts, periods: tuple[int, ...] = ()) -> Ground:
        whole = cut_table(self.whole, cuts)
        pieces = tuple(
            None if table is None else whole if table is self.whole else cut_table(table, cuts) for table in self.tables
        )
        return Ground(
            self.cluster,
            self.processes,
            cuts,
            whole,
            pieces,
            region_requests(whole, whole),
            self.capacity,
            tuple(file.path for file in self.workload.files),
            periods,
        )

    # The candidates --------------------------------------------------------------------------------------------------

    def _search(self) -> tuple[Proven, list[Candidate], Ground, Ground]:
        """What is proven, the layouts for every bias, and the grounds: cut by heat alone, and as finely as it gains."""
        natural = choose_cuts(self.whole, self.tables, self.workload.weight)
        by_heat = self._ground(natural, self.periods)
        proof = Proof(self.windows, self.cluster, self.capacity, self.processes)
        proven = proof.at([[] for _ in self.windows])
        ground, round_part = by_heat, ROUND_PART
        gap, biases = (HEADED_GAP, HEADED_BIASES) if ground.headed else (SOLVER_GAP, BIASES)
        found: list[Candidate] = []
        for number, share in enumerate(FAIR_SHARES):
            cuts = cut_for_balance(natural, self.whole, self.tables, self.cluster, self.capacity, share)
            if found and (cuts.pieces == ground.cuts.pieces or cuts.pieces > CUTS_MAX or self._late(ground)):
                break
            if cuts.pieces < PIECES_PER_SERVER * len(self.cluster.active) and number < len(FAIR_SHARES) - 1:
                continue
            ground = self._ground(cuts, self.periods)
            posed = pose(ground, float(self.processes))
            if len(ground.windows) * cuts.pieces * len(posed.teams) > ONE_ROUND:
                round_part = ONE_PART
            solution, relaxed = self._solve(posed, round_part, gap)
            proven = proven.or_more(proof.at(prices_found(posed, solution, relaxed)))
            candidate = self._laid_out(posed, solution)
            if candidate is None:
                continue
            found.append(candidate)
            near = candidate.bound_s / max(proven.seconds, 1e-300) - 1
            if near <= FINE_GAP or round_part == ONE_PART:
                break
        busy = self.processes >= BUSY * len(self.cluster.active)
        for latency, lean in () if busy or not found else biases:
            if self._late(ground):
                break
            posed = pose(ground, max(1.0, self.processes / latency), lean)
            candidate = self._laid_out(posed, self._solve(posed, BIASED_PART, BIASED_GAP)[0])
            if candidate is None:
                break
            found.append(candidate)
        return proven, found, by_heat, ground

    def _until(self, part: float) -> float:
        """When so much of the time limit has passed, or, where what was before took long, a fifth of it more."""
        return max(self.begun + part * self.limit_s, time.monotonic() + LEAST_PART * self.limit_s)

    def _late(self, ground: Ground) -> bool:
        """Whether too little time is left for another problem."""
        part = HEADED_LEFT_PART if ground.headed else LEFT_PART
        return self.until - time.monotonic() < part * self.limit_s

    def _solve(self, posed: Posed, part: float, gap: float) -> tuple[Solution | None, list[Relaxed | None]]:
        """An assignment in about this part of the time that is left, and the linear programmes of its windows."""
        windows = len(posed.ground.windows)
        until = time.monotonic() + part * max(0.0, self.until - time.monotonic())
        classes = classed(posed)
        relaxed = [
            solve_relaxed(posed, classes, window, (until - time.monotonic()) / (windows - window))
            for window in range(windows)
        ]
        starts: list[Int | None] = []
        if windows == 1 and relaxed[0] is not None:
            longest_s = LONGEST_PART * relaxed[0].seconds
            kept = (
                solve_relaxed(posed, classes, 0, until - time.monotonic(), longest_s)
                if relaxed[0].longest_s > longest_s
                else None
            )
            dealt = spread(posed, classes, kept or relaxed[0])
            if dealt is not None:
                solution = as_solution(posed, dealt, relaxed[0])
                if solution.gap <= gap or posed.problem.regions * len(posed.teams) > SOLVED_MAX:
                    return solution, relaxed
                starts.append(dealt)
        starts.append(greedy(posed.problem, posed.teams))
        solved = posed.problem.solve(
            seconds=max(0.1, until - time.monotonic()),
            gap=gap,
            seed=self.options.seed,
            starts=[start for start in starts if start is not None],
        )
        return solved, relaxed

    def _laid_out(self, posed: Posed, solution: Solution | None) -> Candidate | None:
        """The plan of a solution; None where there is none, or the data do not fit so."""
        if solution is None:
            return None
        try:
            assignment = settle_untouched(posed, solution.assignment)
            layout = lay_out(posed, assignment, self.workload, self.options)
        except PlanError:
            return None
        return self._planned(posed, solution, layout)

    def _exactly(self, ground: Ground) -> list[Candidate]:
        """The optimum over all subsets of servers for the very requests, where there are few enough of them."""
        if count_of(ground) > BINARIES_MAX:
            return []
        found = solve_exactly(ground, min(EXACT_S, 0.3 * self.limit_s))
        if found is None:
            return []
        try:
            layout = carry_out(ground, found, self.workload, self.options)
        except PlanError:
            return []
        bounds = window_bounds(ground, layout)
        bound_s = sum(bound.makespan_s(self.processes) for bound in bounds)
        texts = [
            f"{named(stripes, self.cluster, ground.periods)}: part of the optimum over all subsets"
            for stripes in layout.first
        ]
        return [Candidate(self.builder.build(ground, layout, texts, bound_s), bound_s, bounds)]

    def _planned(self, posed: Posed, solution: Solution, layout: Layout) -> Candidate:
        ground = posed.ground
        bounds = window_bounds(ground, layout)
        bound_s = sum(bound.makespan_s(self.processes) for bound in bounds)
        texts = reasons(posed, layout.first, solution.prices, solution.room_prices)
        plan = self.builder.build(ground, layout, texts, bound_s)
        return Candidate(plan, bound_s, bounds)

    def _proposed(self, default: Candidate) -> Iterator[Candidate]:
        """The layouts of all strategies that know no windows."""
        if len(self.windows) > 1:
            return
        case = Case(
            self.heats, self.cluster, self.capacity, self.processes, self.workload, self.runs or [self.workload]
        )
        spans = [each.window for each in self.windows]
        found = propose(case, self.workload, self.options, spans, default.plan.expected.cost_def_s)
        for plan, bound in found:
            yield Candidate(plan, bound.makespan_s(self.processes), [bound])

    def _others(self, default_s: float) -> list[Candidate]:
        """The plans of all other policies, and of DEF with wider stripes, as far as there is time.

        Those of the others take many times as long as DEF's, which took `default_s`, where servers are many.
        """
        wider = [("def", stripe) for stripe in WIDER_STRIPES if stripe > self.options.stripe_bytes]
        named = [(name, None) for name in sorted(POLICIES) if name not in (Best.name, "def")]
        found = []
        for name, stripe_bytes in [*named, *wider]:
            takes_s = default_s * (1 if name == "def" else OTHERS_TAKE)
            if time.monotonic() + takes_s > self.until:
                continue
            try:
                candidate = self._candidate_of(name, stripe_bytes)
            except PlanError:
                continue
            if candidate is not None:
                found.append(candidate)
        return found

    def _default(self) -> Candidate:
        """DEF's plan: what lies there as it is."""
        found = self._candidate_of("def")
        assert found is not None
        return found

    def _candidate_of(
        self, name: str, stripe_bytes: int | None = None, step_bytes: int | None = None
    ) -> Candidate | None:
        """Another policy's plan, held against the same windows."""
        policy = POLICIES[name]
        largest = max(int(file.requests["size"].max(initial=0)) for file in self.workload.files)
        given = replace(
            self.options,
            time_limit_s=None,
            smooth=None,
            stripe_bytes=stripe_bytes or self.options.stripe_bytes,
            step_bytes=step_bytes or max(self.options.step_bytes, round_up(largest // OTHERS_STEPS)),
        )
        if "window_ns" not in policy.takes:
            given = replace(given, window_ns=None)
        plan = policy.plan(self.workload, self.cluster, given)
        ground = self._ground(whole_regions(self.whole))
        layout = layout_of(plan, ground)
        if layout is None:
            # Regions of its own: one bound for all windows together is all that it tells, and too little for several.
            if len(self.windows) > 1:
                return None
            alone = Bound({}, plan.expected.bound_s * self.processes)
            return Candidate(plan, plan.expected.bound_s, [alone])
        bounds = window_bounds(ground, layout)
        return Candidate(plan, sum(bound.makespan_s(self.processes) for bound in bounds), bounds)
