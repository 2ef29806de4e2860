"""Few processes: pieces of a request that end together, and requests that regions cut into pieces served at once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from portfolio.instances import instance
from portfolio.judge import fits, plan_s

from stripewise.policy import POLICIES, PlanOptions, plan_by
from stripewise.policy.best.best import _Search
from stripewise.policy.best.strategies.abreast import abreast, ending_together
from stripewise.policy.best.strategies.case import Case
from stripewise.policy.best.strategies.propose import STRATEGIES, plan_of
from stripewise.units import GRANULE_BYTES

FIGURES = st.tuples(st.floats(1e-6, 1e-2), st.floats(1e-11, 1e-7))


def slowest_s(startup_s: np.ndarray, per_byte_s: np.ndarray, widths: np.ndarray) -> float:
    used = widths > 0
    return float((startup_s + per_byte_s * widths)[used].max())


@settings(max_examples=200, deadline=None)
@given(servers=st.lists(FIGURES, min_size=1, max_size=3), granules=st.integers(1, 9))
def test_pieces_are_the_request_and_end_no_later_than_a_granule_after_the_best_split(
    servers: list[tuple[float, float]], granules: int
) -> None:
    startup_s, per_byte_s = np.array(servers).T
    widths = ending_together(startup_s, per_byte_s, granules * GRANULE_BYTES)
    assert widths.sum() == granules * GRANULE_BYTES and (widths >= 0).all() and (widths % GRANULE_BYTES == 0).all()
    least = min(
        slowest_s(startup_s, per_byte_s, np.array(split) * GRANULE_BYTES)
        for split in itertools.product(range(granules + 1), repeat=len(servers))
        if sum(split) == granules
    )
    late = float(per_byte_s[widths > 0].max()) * GRANULE_BYTES
    assert slowest_s(startup_s, per_byte_s, widths) <= least + late + 1e-12


@pytest.mark.parametrize("number", [393, 445])
def test_few_processes_are_served_as_quickly_as_the_best_heuristic_that_was_found(number: int) -> None:
    """393: the portfolio's `all, weighted stripes about 4 KiB` took 0.664 s, and `best` 0.831 s, without narrow stripes
    over all swift servers.

    445, as it is written: `hot first, 8 KiB, improved` took 1.095 s and the search found 0.916 s, both with a server's
    cells apart, on a channel each; joined, what the search found took 1.445 s.
    """
    known_s = {393: 0.6639, 445: 1.4449}[number]
    of = instance(number)
    seen = of.workload(0)
    plan = plan_by(POLICIES["best"], seen, of.cluster, PlanOptions(time_limit_s=12))
    assert fits(of, plan) and plan_s(of, plan, seen) <= known_s * 1.01


def test_the_bound_of_regions_that_cut_requests_is_none_above_the_run() -> None:
    of = instance(445)
    seen = of.workload(0)
    search = _Search(seen, of.cluster, PlanOptions(time_limit_s=60))
    case = Case(search.heats, of.cluster, search.capacity, search.processes, seen, search.runs or [seen])
    cut = 0
    for strategy in (abreast, STRATEGIES[0]):
        for proposal in strategy(case):
            attempt = next(proposal, None)
            if attempt is None:
                continue
            plan, bound = plan_of(attempt, seen, of.cluster, search.options, [search.windows[0].window], 1.0)
            assert bound.makespan_s(search.processes) <= plan_s(of, plan, seen) * (1 + 1e-5)
            cut += len(attempt) > 1000
    assert cut, "nothing that cuts requests was proposed"
