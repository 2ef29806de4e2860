"""Moves of the policy `best` between windows: regions that want each other's room on full SServers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.cluster import Cluster
from stripewise.layout import Stripes
from stripewise.policy import POLICIES, PlanOptions
from stripewise.policy.best.best import _Search
from stripewise.policy.best.finish import Field
from stripewise.policy.best.regions.cuts import whole_regions
from stripewise.policy.best.regions.layout import Layout, carry_out
from stripewise.policy.best.regions.problem import Ground, capacities
from stripewise.policy.toolkit.regions import region_requests, window_tables
from stripewise.policy.toolkit.space import Space
from stripewise.workload import Workload
from support import KIB, MIB, cluster, file_of

OPTIONS = PlanOptions(region_bytes=MIB)
SSDS = ("ssd0", "ssd1", "ssd2")
#: Room for one region, and for the file system's own share of it.
ONE_REGION = MIB + 256 * KIB


def laid_out(on: Cluster, wanted: list[list[str]], requests: list[list[int]]) -> Layout:
    """The layout where regions are wanted whole on these servers, window by window, for so many requests each."""
    window_ns = 1_000_000_000
    region = [each for row in requests for each in np.repeat(np.arange(len(row)), row).tolist()]
    file = file_of([each * MIB for each in region], [64 * KIB] * len(region), size_bytes=len(wanted[0]) * MIB)
    file.requests["start_ns"] = np.repeat(np.arange(len(requests)) * window_ns, [sum(row) for row in requests])
    file.requests["end_ns"] = file.requests["start_ns"] + 500
    workload = Workload((file,), 8)
    whole, windows = window_tables(workload, MIB, window_ns)
    assert len(windows) == len(wanted)
    ground = Ground(
        on, 8, whole_regions(whole), whole, tuple(each.table for each in windows), region_requests(whole, whole),
        capacities(on, Space(on)), (file.path,),
    )  # fmt: skip
    homes: list[list[Stripes]] = [[((name, MIB),) for name in row] for row in wanted]
    return carry_out(ground, homes, workload, OPTIONS)


def servers(placed: tuple[Stripes, ...]) -> list[str]:
    """The one server of every region."""
    return [name for ((name, _),) in placed]


def check_moves(on: Cluster, layout: Layout) -> None:
    """Carries out every move in its order: each begins where the region lies, and old and new copy both have room."""
    now = list(layout.first)
    space = Space(on)
    for stripes in now:
        assert space.take(stripes, MIB)
    for moves, placed in zip(layout.moves, layout.placed[1:], strict=True):
        for piece, old, new in moves:
            assert now[piece] == old
            assert space.take(new, MIB), "no room for the second copy"
            space.give(old, MIB)
            now[piece] = new
        assert tuple(now) == placed


def test_of_two_regions_that_exchange_full_sservers_the_colder_gives_way():
    on = cluster(2, 2, ONE_REGION)
    layout = laid_out(on, [["ssd0", "ssd1"], ["ssd1", "ssd0"]], [[5, 5], [9, 3]])
    check_moves(on, layout)
    hot, cold = servers(layout.placed[1])
    assert hot == "ssd1" and cold.startswith("hdd")


def test_a_circle_of_three_full_sservers_is_broken_by_one_move_to_an_hserver():
    on = cluster(2, 3, ONE_REGION)
    layout = laid_out(on, [list(SSDS), ["ssd1", "ssd2", "ssd0"]], [[5, 5, 5], [9, 2, 8]])
    check_moves(on, layout)
    assert servers(layout.placed[1])[0::2] == ["ssd1", "ssd0"]
    # The two hotter ones, and the one that made way.
    assert len(layout.moves[0]) == 3


def test_who_gave_way_returns_to_an_sserver_that_is_free_in_a_later_window():
    on = cluster(2, 2, ONE_REGION)
    wanted = [["ssd0", "ssd1", "hdd0"], ["ssd1", "ssd0", "hdd0"], ["ssd1", "ssd0", "hdd0"]]
    layout = laid_out(on, wanted, [[5, 5, 1], [9, 3, 1], [1, 9, 1]])
    check_moves(on, layout)
    assert servers(layout.placed[2])[:2] == ["ssd1", "ssd0"]


def test_a_circle_without_hservers_leaves_the_regions_where_they_are():
    on = cluster(0, 2, ONE_REGION)
    layout = laid_out(on, [["ssd0", "ssd1"], ["ssd1", "ssd0"]], [[5, 5], [9, 3]])
    assert layout.placed[0] == layout.placed[1] and layout.moves == ((),)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(2, 3))
def test_whatever_windows_want_of_full_sservers_no_move_lacks_room_and_the_hottest_has_its_wish(data, windows):
    # As many regions as there is room on SServers, in any order in every window.
    on = cluster(2, 3, ONE_REGION)
    wanted = [list(data.draw(st.permutations(SSDS))) for _ in range(windows)]
    requests = [data.draw(st.permutations([2, 5, 9])) for _ in range(windows)]
    layout = laid_out(on, wanted, requests)
    check_moves(on, layout)
    for window in range(1, windows):
        hottest = requests[window].index(9)
        assert servers(layout.placed[window])[hottest] == wanted[window][hottest]


def test_a_plan_that_another_policy_made_is_that_policys_own_in_the_steps_that_were_asked_for():
    file = file_of([each % 16 * 2 * MIB for each in range(300)], [2 * MIB] * 300)
    workload, on = Workload((file,), 8), cluster(2, 2, 8 * MIB)
    options = PlanOptions(region_bytes=2 * MIB, window_ns=100_000, time_limit_s=20.0)
    search = _Search(workload, on, options)
    coarse, default = search._candidate_of("h2dp"), search._default()
    assert coarse is not None and coarse.plan.options["step_bytes"] == 16 * KIB
    field = Field([default, coarse], [np.array([9.0]), np.array([1.0])], search.judge)
    chosen = search._with_fine_steps(1, field)
    own = POLICIES["h2dp"].plan(workload, on, replace(options, time_limit_s=None))
    mine, theirs = search.judge.one(own), search.judge.one(coarse.plan)
    assert mine is not None and theirs is not None
    assert mine.seconds <= theirs.seconds
    assert field.candidates[chosen].plan.files == own.files and len(field.seconds) == chosen + 1 == 3
    # What DEF lies as, or is best's own, has no finer steps.
    assert search._with_fine_steps(0, field) == 0
