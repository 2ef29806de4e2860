"""The experiment on RADAR's ageing: choosers that know the future are optimal, and the manager goes on as a store's."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from stripewise.replicas.candidate import VERSION
from stripewise.replicas.decay import half_life
from stripewise.replicas.stored import sets_in

HOME = Path(__file__).resolve().parents[3] / "experiments" / "radar-ageing"


@pytest.fixture
def choices(monkeypatch):
    monkeypatch.syspath_prepend(HOME)
    import choices

    return choices


@pytest.fixture
def manager(monkeypatch):
    monkeypatch.syspath_prepend(HOME.parent)
    monkeypatch.syspath_prepend(HOME)
    import manager

    return manager.Manager()


def costs_of(choices, random):
    """Three uses whose copies may also slow the others down."""
    names = "abc"
    run_s = {
        (use, sets): float(random.uniform(1, 9))
        for use in names
        for count in range(8)
        for sets in [frozenset(name for bit, name in enumerate(names) if count >> bit & 1)]
    }
    build_s, space = ({name: float(random.uniform(0, 4)) for name in names}, dict(zip(names, (2, 2, 1), strict=True)))
    return choices.Costs(lambda use, sets: run_s[use, sets], build_s, space, dict.fromkeys(names, 1.0))


@pytest.mark.parametrize("seed", range(6))
def test_the_clairvoyant_is_as_good_as_the_best_of_all_sequences_of_choices(choices, seed):
    random = np.random.default_rng(seed)
    costs = costs_of(choices, random)
    runs = [str(each) for each in random.choice(list("abc"), 4)]
    room = int(random.integers(1, 6))
    fitting = costs.choices(runs, room)
    every = list(product(fitting, repeat=len(runs)))
    best = min(sum(costs.seconds(runs, each)) for each in every)
    assert sum(costs.seconds(runs, choices.clairvoyant(runs, costs, room))) == pytest.approx(best)
    seen = [each for each in every if all(sets <= set(runs[:number]) for number, sets in enumerate(each))]
    best = min(sum(costs.seconds(runs, each)) for each in seen)
    assert sum(costs.seconds(runs, choices.clairvoyant(runs, costs, room, seen_only=True))) == pytest.approx(best)
    best = min(sum(costs.seconds(runs, [each] * len(runs))) for each in fitting)
    assert sum(costs.seconds(runs, choices.in_hindsight(runs, costs, room))) == pytest.approx(best)


def test_choosers_without_the_future_rank_by_what_was_seen(choices):
    costs = costs_of(choices, np.random.default_rng(0))
    lru = choices.lru(list("aabc"), costs, 2)
    assert lru == [frozenset(each) for each in ("", "a", "a", "b")]
    assert choices.lfu(list("aabc"), costs, 2) == [frozenset(each) for each in ("", "a", "a", "a")]
    # The smaller set goes into the room that the larger one left.
    assert choices.lru(list("abca"), costs, 3)[3] == frozenset("bc")


def test_sets_are_carried_on_as_a_store_remembers_them(manager):
    from manager import carried

    sets = manager.decided("cube", carried(manager.decided("column", (), half_life, None)), half_life, None)
    told = {"version": VERSION, "managers": [{"manager": "radar", "sets": [each.as_json() for each in sets]}]}
    assert len(sets) == 2
    assert carried(sets) == sets_in(json.loads(json.dumps(told)), Path("replicas.json"))


def test_the_kept_result_has_nobody_ahead_of_the_clairvoyant_in_its_room():
    kept = json.loads((HOME / "result.json").read_text())
    for row in kept["rows"]:
        assert all(row[name] >= 1 for name in row["interval"] if name != "no bound"), row["sequence"]
        assert row["clairvoyant, seen"] <= min(row[name] for name in ("identity", "half-life", "quickly", "lru", "lfu"))


def test_a_set_makes_way_after_the_runs_that_its_half_life_says():
    for each in json.loads((HOME / "result.json").read_text())["handover"]:
        waits = math.ceil(math.log2(each["gain_ratio"]) / each["read_share"])
        assert each["runs"]["half-life"] == max(1, waits)
        assert each["runs"]["identity"] == (None if waits > 0 else 1)


def test_a_short_run_writes_what_a_long_one_does(tmp_path):
    script = [sys.executable, HOME / "run.py", "--seeds", "1", "--requests", "6", "--out", tmp_path]
    ran = subprocess.run(script, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    rows, kept = (json.loads((home / "result.json").read_text())["rows"] for home in (tmp_path, HOME))
    assert [row.keys() for row in rows] == [row.keys() for row in kept]
    assert (tmp_path / "result.svg").read_text().startswith("<?xml")
