"""Homes and copies chosen together: behind neither alone, within room and space; their plan read back, and refused."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replica_cases import emulated, several_patterns, strided
from stripewise.errors import PlanError
from stripewise.pattern.views import Views
from stripewise.plan import dump_plan, plan_from_json
from stripewise.plan.summary import why_left
from stripewise.policy import POLICIES, PlanOptions
from stripewise.replicas import Options
from stripewise.replicas.accesses import Below, Extent, Found
from stripewise.replicas.jointly import LEFT_FOR_COPIES, Wanted, plan_jointly
from stripewise.replicas.stored import planned
from stripewise.workload.requests import REQUEST_DTYPE, FileRequests, Workload
from support import KIB, MIB, cluster
from test_plan_file import read_or_refused_when_mutated

FILE = "/d/f"
#: A column of a matrix behind server read-ahead: dense copies win where little of a row is read.
COLUMN = strided(4, 16 * KIB, 256 * KIB, 64)


def run_of(*patterns):
    """The requests of patterns of one file, clients beside each other, and what the manager sees of them."""
    rows = np.zeros(sum(len(each.offset) for each in patterns), REQUEST_DTYPE)
    at = 0
    for each in patterns:
        mine = rows[at : at + len(each.offset)]
        at += len(mine)
        mine["rank"], mine["write"], mine["offset"], mine["size"] = each.client, each.write, each.offset, each.size
        for client in np.unique(each.client):
            own = each.client == client
            mine["start_ns"][own] = mine["end_ns"][own] = each.start_ns + np.arange(own.sum())
    end = int((rows["offset"] + rows["size"]).max())
    processes = int(rows["rank"].max()) + 1
    found = Found(tuple(patterns), (), {FILE: Extent(end, int(rows["size"][~rows["write"]].sum()))})
    return Workload((FileRequests(FILE, rows, end),), processes), found


def jointly(patterns, on, policy="best", manager="radar", space=None, read_ahead=MIB, **options):
    workload, found = run_of(*patterns)
    asked = PlanOptions(region_bytes=4 * MIB, **options)
    return plan_jointly(workload, found, on, POLICIES[policy], asked, Wanted(manager, Options(space), read_ahead))


def small_ssds(room=8 * MIB):
    """SSDs that hold a part of the file."""
    return cluster(4, 2, ssd_capacity=room)


def test_best_takes_copies_where_these_are_quicker():
    made = jointly([COLUMN], small_ssds(), time_limit_s=3)
    assert made.chosen.decision.chosen and made.chosen.copied_bytes >= 4 * MIB
    alone = min(each.run_s for each in made.tried if not each.decision.chosen)
    assert made.chosen.run_s < alone / 1.5


def test_copies_of_what_is_read_behind_views_spare_the_sieved_reads():
    """The run has four reads of all of the file below four calls; their copies have a column in a piece each."""
    column = strided(4, 16 * KIB, 64 * KIB, 64, base=0)
    column = replace(column, offset=column.client * 16 * KIB + np.tile(np.arange(64) * 64 * KIB, 4))
    sieved = replace(
        column,
        client=np.arange(4),
        write=np.zeros(4, bool),
        offset=np.zeros(4, np.int64),
        size=np.full(4, 4 * MIB),
    )
    workload, found = run_of(sieved)
    zeros = np.zeros(256, np.int64)
    calls = Views(column.client, column.client, column.offset, column.size, zeros, zeros + 1)
    below = Below(sieved.client, sieved.offset, sieved.size, column.client)
    mine = replace(found, patterns=(replace(column, below=below),))
    asked = PlanOptions(region_bytes=4 * MIB), Wanted("radar", Options())
    on = emulated(cluster(4, 2))
    without, made = (plan_jointly(workload, each, on, POLICIES["def"], *asked).tried for each in (
        mine, replace(mine, views={FILE: calls})
    ))  # fmt: skip
    assert without[1].decision.chosen and without[1].io_s == without[0].io_s
    # Each process reads a quarter.
    assert made[0].io_s == without[0].io_s and made[1].io_s < 0.4 * made[0].io_s


def test_best_makes_no_copies_where_homes_do_as_well():
    # All of the file is read once in large pieces, in order: a copy is what the file is already.
    made = jointly([strided(4, MIB, MIB, 16)], small_ssds(), time_limit_s=3)
    assert not made.chosen.decision.chosen and made.plan().replicas is None


@settings(max_examples=10, deadline=None)
@given(several_patterns(op="read"), st.sampled_from((None, 0, MIB, 64 * MIB)), st.sampled_from((0, 4 * MIB)))
def test_best_is_behind_nothing_it_tried_and_keeps_to_room_and_space(patterns, space, room):
    mine = [replace(each, file=FILE) for each in patterns]
    on = small_ssds(room)
    made = jointly(mine, on, space=space, time_limit_s=1)
    assert made.chosen.run_s <= min(each.run_s for each in made.tried) * 1.0201
    assert {each.left for each in made.tried} <= set(LEFT_FOR_COPIES)
    held = made.chosen.plan.bytes_per_target()
    for name, count in made.chosen.decision.space_bytes.items():
        held[name] = held.get(name, 0) + count
    for each in on.active:
        assert not each.usable_bytes or held.get(each.name, 0) <= each.usable_bytes
    assert space is None or made.chosen.copied_bytes <= space


def test_any_policy_has_its_homes_and_a_manager_s_copies():
    made = jointly([COLUMN], cluster(4, 2), "def", "h-pdla")
    assert [(each.home, each.copies) for each in made.tried] == [("def", "none"), ("def", "by h-pdla")]
    plan = made.plan()
    assert plan.policy == "def" and not plan.leave and plan.replicas.manager == "h-pdla"
    assert plan.replicas.sets == () and len(plan.replicas.replicas) == 1
    other = jointly([COLUMN], cluster(4, 2), "psa", "h-pdla")
    assert other.plan().replicas.def_io_s == pytest.approx(plan.replicas.def_io_s)


@pytest.fixture(scope="module")
def made():
    return jointly([COLUMN], cluster(4, 2), "def", space=8 * MIB)


def test_the_plan_has_the_copies_and_is_read_back(made):
    plan = made.plan()
    text = dump_plan(plan)
    assert plan_from_json(json.loads(text), "plan.json") == plan
    (row,) = [line for line in text.splitlines() if '"start_ns"' in line and '"replicas"' in line]
    assert json.loads(row)["file"] == FILE
    decision = planned(plan.replicas, cluster(4, 2), "plan.json")
    assert decision.manager == "radar" and [each.key for each in decision.sets] == [
        each.key for each in made.chosen.decision.sets
    ]
    assert [each.layout for each in decision.chosen] == [each.layout for each in made.chosen.decision.chosen]
    assert plan.replicas.space_bytes == 8 * MIB and plan.replicas.bytes == made.chosen.copied_bytes
    assert plan.replicas.gain == pytest.approx(made.tried[0].io_s / made.chosen.io_s)


def test_a_plan_whose_copies_are_expected_to_lose_is_told(made):
    plan = made.plan()
    assert why_left(plan) == ""
    slow = replace(plan, replicas=replace(plan.replicas, simulated_io_s=2 * plan.replicas.def_io_s))
    assert why_left(slow) == "is expected to be 0.50 times as fast as def, with its copies"


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (("sets",), [], "replicas.sets or replicas, one of the two, must hold what is to be made"),
        (("manager",), 3, "replicas.manager"),
        (("sets", 0, "replicas", 0, "space_bytes"), {"hdd0": -1}, "sets[0].replicas[0].space_bytes.hdd0"),
        (("more",), 3, "replicas.more is not a known key"),
    ],
)
def test_what_is_wrong_with_the_copies_of_a_plan_is_told(made, where, value, said):
    data = json.loads(dump_plan(made.plan()))
    place = data["replicas"]
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    with pytest.raises(PlanError, match=f"^plan.json: .*{said.replace('[', '.').replace(']', '.')}"):
        plan_from_json(data, "plan.json")


def test_what_cannot_be_made_of_them_is_told_before_anything_moves(made):
    plan = made.plan()
    with pytest.raises(PlanError, match=r"^plan.json: replicas of '/d/f' name the target 'ssd\d', which .* not have"):
        planned(plan.replicas, cluster(4, 0), "plan.json")
    data = copy.deepcopy(json.loads(dump_plan(plan)))
    data["replicas"]["sets"][0]["replicas"][0]["blocks"][0]["dims"] = [[1, 64]]
    with pytest.raises(PlanError, match=r"^plan.json: replicas.*blocks share bytes"):
        planned(plan_from_json(data, "plan.json").replicas, cluster(4, 2), "plan.json")


@given(st.data())
def test_copies_of_a_plan_are_read_or_refused(made, data):
    plan = json.loads(dump_plan(made.plan()))
    (one,) = plan["replicas"]["sets"]
    (replica,) = one["replicas"]
    places = [plan["replicas"], one, replica, replica["blocks"][0], replica["space_bytes"]]
    read_or_refused_when_mutated(data, plan, data.draw(st.sampled_from(places)))
    try:
        planned(plan_from_json(plan, "plan.json").replicas, cluster(4, 2), "plan.json")
    except PlanError as error:
        assert str(error).startswith("plan.json: ") and len(str(error).splitlines()) == 1
