"""Windows and migrations in plan.json: round trip, hand edits, and one sentence for everything that is wrong."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.errors import PlanError
from stripewise.plan import dump_plan, plan_from_json, read_plan, write_plan
from stripewise.plan.check import check_plan
from support import KIB, MIB, cluster
from test_migration import GOLDEN, ON, planned, touching
from test_plan_file import read_or_refused_when_mutated

PLAN = planned(touching(GOLDEN), min_gain=0.0)
DATA = json.loads(dump_plan(PLAN))
FIRST = ("migrations", 0, "moves", 0)


def edited(where, value):
    data = copy.deepcopy(DATA)
    place = data
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    return data


def test_a_plan_with_windows_is_written_and_read_back_unchanged(tmp_path):
    write_plan(PLAN, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == PLAN
    assert len(PLAN.migrations) == 4 and any(migration.moves for migration in PLAN.migrations)
    assert check_plan(PLAN, ON, "plan.json") == []


def test_a_plan_has_one_line_per_move():
    lines = [line for line in dump_plan(PLAN).splitlines() if '"direction"' in line]
    assert len(lines) == sum(len(migration.moves) for migration in PLAN.migrations)
    assert all(json.loads(line.rstrip(","))["reason"] for line in lines)


def test_a_plan_of_one_window_has_no_word_of_migration():
    plan = planned(touching(GOLDEN), window_ns=None)
    assert set(json.loads(dump_plan(plan))) == set(DATA) - {"migrations"}
    assert set(json.loads(dump_plan(plan))["options"]) == set(DATA["options"]) - {"window_ns", "min_gain"}
    assert set(json.loads(dump_plan(plan))["windows"][0]) == {"start_ns", "end_ns"}


def test_hand_edits_of_moves_survive_and_count():
    data = edited((*FIRST, "stripes"), [["hdd1", 8192]])
    data["migrations"][0]["moves"][0]["comment"] = "mine"
    data["migrations"][0]["comment"] = "ours"
    data["migrations"][0]["start_ns"] = 5
    del data["migrations"][1], data["migrations"][1]
    plan = plan_from_json(data, "plan.json")
    assert plan_from_json(json.loads(dump_plan(plan)), "plan.json") == plan
    assert plan.migrations[0].start_ns == 5 and plan.migrations[0].moves[0].comment == "mine"
    assert plan.layout_in_window("/data/f", 1)[0].stripes == (("hdd1", 8192),)
    assert plan.layout_in_window("/data/f", 3) == plan.layout_in_window("/data/f", 1)


def test_what_can_be_reckoned_may_be_left_out():
    data = copy.deepcopy(DATA)
    for migration in data["migrations"]:
        del migration["start_ns"]
        for move in migration["moves"]:
            for key in ("bytes", "gain_s", "cost_s", "reason"):
                del move[key]
    plan = plan_from_json(data, "plan.json")
    assert [m.start_ns for m in plan.migrations] == [m.start_ns for m in PLAN.migrations]
    assert [m.moved_bytes for m in plan.migrations] == [m.moved_bytes for m in PLAN.migrations]


def test_a_move_that_overfills_a_target_is_refused_with_its_place():
    # Without the moves out the SSD has no room for the third region.
    data = copy.deepcopy(DATA)
    data["migrations"][0]["moves"] = [m for m in data["migrations"][0]["moves"] if m["direction"] == "in"]
    with pytest.raises(PlanError, match=r"p: migrations\[0\].moves\[0\] puts 3.0 MiB on 'ssd0'"):
        check_plan(plan_from_json(data, "p"), ON, "p")


def test_a_move_whose_two_copies_do_not_fit_together_is_remarked():
    # Region 0 back on the same SSD with other widths: it fits before and after, not twice.
    data = edited(("migrations", 0, "moves"), [{**DATA["migrations"][0]["moves"][0], "stripes": [["ssd0", 4096]]}])
    data["migrations"] = data["migrations"][:1]
    remarks = check_plan(plan_from_json(data, "p"), ON, "p")
    assert remarks == ["p: migrations[0].moves[0] has no room for both copies on 'ssd0'; move another region out first"]


def test_a_move_to_a_target_that_is_not_there_is_named():
    data = edited((*FIRST, "stripes"), [["tape", 4096]])
    with pytest.raises(PlanError, match=r"migrations\[0\].moves\[0\].stripes names the target 'tape'"):
        check_plan(plan_from_json(data, "p"), ON, "p")


def test_growth_moves_only_while_it_holds_nothing():
    growth = {"file": "/data/f", "start": 4 * MIB, "len": DATA["files"][0]["regions"][4]["len"], "direction": "out"}
    data = edited(FIRST, {**growth, "stripes": [["hdd0", 4096]]})
    assert plan_from_json(data, "p").migrations[0].moves[0].bytes == 0
    data["files"][0]["size"] = 9 * MIB
    with pytest.raises(PlanError, match=r"start = 4194304 is the region that repeats"):
        plan_from_json(data, "p")


BAD = [
    (("migrations",), {}, "migrations = {} is not a list"),
    (("migrations", 0, "window"), 0, "migrations[0].window = 0 is out of range"),
    (("migrations", 0, "window"), 5, "migrations[0].window = 5 is not one of 5 window(s)"),
    (("migrations", 1, "window"), 1, "migrations[1].window = 1 does not follow the one before"),
    (("migrations", 0, "start_ns"), -1, "migrations[0].start_ns = -1 is out of range"),
    (("migrations", 0, "start_ns"), 3 * 10**9, "migrations[1].window = 2 does not follow the one before"),
    (("migrations", 0, "mvoes"), [], "migrations[0].mvoes is not a known key; did you mean moves?"),
    (("migrations", 0, "moves"), 3, "migrations[0].moves = 3 is not a list"),
    ((*FIRST, "file"), "/data/g", "migrations[0].moves[0].file = '/data/g' is not planned"),
    ((*FIRST, "start"), 4096, "moves[0].start = 4096 with len 1048576 is not a region of '/data/f'"),
    ((*FIRST, "len"), 4096, "moves[0].start = 0 with len 4096 is not a region of '/data/f'"),
    ((*FIRST, "start"), MIB, "moves[1].start = 1048576 moves twice in one migration"),
    ((*FIRST, "stripes"), [], "moves[0].stripes has 0 entries"),
    ((*FIRST, "stripes"), [["hdd0", 5000]], "has a bad width for 'hdd0'"),
    ((*FIRST, "stripes"), None, "stripes = None is not a list"),
    ((*FIRST, "direction"), "up", "moves[0].direction = 'up' is unknown; use one of out, in, restripe"),
    ((*FIRST, "bytes"), -1, "moves[0].bytes = -1 is out of range"),
    ((*FIRST, "gain_s"), float("inf"), "moves[0].gain_s = inf is out of range"),
    ((*FIRST, "cost_s"), -1.0, "moves[0].cost_s = -1.0 is out of range"),
    (("windows", 1, "start_ns"), 0, "windows[1].start_ns = 0 is not after the window before"),
    (("windows", 1, "requests"), -1, "windows[1].requests = -1 is out of range"),
    (("windows", 1, "cost"), 1, "windows[1].cost is not a known key"),
]


@pytest.mark.parametrize(("where", "value", "said"), BAD)
def test_a_bad_migration_is_one_sentence_with_file_and_key(where, value, said):
    with pytest.raises(PlanError) as caught:
        plan_from_json(edited(where, value), "plan.json")
    text = str(caught.value)
    assert text.startswith("plan.json: ") and said in text and "; " in text and "\n" not in text


@given(st.data())
def test_a_mutated_migration_is_read_or_refused_in_one_sentence(data):
    plan = copy.deepcopy(DATA)
    places = [plan["windows"][1], plan["migrations"][0], plan["migrations"][0]["moves"][2], plan]
    place = data.draw(st.sampled_from(places))
    read_or_refused_when_mutated(data, plan, place)


def test_a_plan_for_a_smaller_ssd_is_refused():
    with pytest.raises(PlanError, match=r"puts 2\.0 MiB on 'ssd0', 972\.0 KiB more than its capacity"):
        check_plan(PLAN, cluster(2, 1, MIB + 64 * KIB), "p")
