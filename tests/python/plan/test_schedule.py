"""What the mover does when: windows, superseded moves, order, grids; and layouts without a target."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stripewise.cluster import read_cluster
from stripewise.errors import UsageError
from stripewise.layout import Layout, Region
from stripewise.moving.schedule import Schedule, in_order, on_grid, parse_windows, with_region
from stripewise.plan import plan_from_json
from stripewise.store.substitute import on_active
from support import MIB
from test_cluster import TARGET

H, S = (("h0", 65536),), (("s0", 65536),)


def regions(*stripes):
    return tuple(Region(number * MIB, MIB, each) for number, each in enumerate(stripes))


def schedule(windows=None, min_gain=None):
    """Two later windows: at 10 s region 0 leaves the SSD for region 1, at 20 s region 1 leaves it for region 2."""

    def move(index, stripes, direction):
        place = {"file": "/f", "start": index * MIB, "len": MIB, "stripes": [list(pair) for pair in stripes]}
        return {
            **place,
            "direction": direction,
            "bytes": MIB,
            "gain_s": 2.0 if direction == "in" else -1.0,
            "cost_s": 1.0,
        }

    body = {
        "version": 1,
        "policy": "by hand",
        "windows": [{"start_ns": n * 10**10, "end_ns": (n + 1) * 10**10} for n in range(3)],
        "files": [
            {
                "path": "/f",
                "size": 3 * MIB,
                "regions": [
                    {"start": r.start, "len": r.len, "stripes": [list(pair) for pair in r.stripes]}
                    for r in regions(S, H, H, H)
                ],
            }
        ],
        "migrations": [
            {"window": 1, "moves": [move(0, H, "out"), move(1, S, "in")]},
            {"window": 2, "moves": [move(1, H, "out"), move(2, S, "in")]},
        ],
    }
    return Schedule(plan_from_json(body, "plan.json"), frozenset({"s0"}), windows, min_gain)


def steps(made, window, now):
    return [(step.start // MIB, step.direction) for step in made.steps(made.plan.files[0], window, now)]


def test_windows_begin_on_the_runs_clock():
    made = schedule()
    assert [made.window_at(s) for s in (0, 9.9, 10, 25)] == [0, 0, 1, 2]
    assert [made.next_start_s(s) for s in (0, 10, 20)] == [10, 20, None]
    assert schedule(frozenset({2})).window_at(15) is None


def test_each_window_asks_for_what_differs_and_room_is_made_first():
    made = schedule()
    assert steps(made, 0, regions(S, H, H, H)) == []
    assert steps(made, 1, regions(S, H, H, H)) == [(0, "out"), (1, "in")]
    assert steps(made, 1, regions(H, S, H, H)) == []
    # Whoever comes late makes only what still counts.
    assert steps(made, 2, regions(S, H, H, H)) == [(0, "out"), (2, "in")]
    assert steps(made, 2, regions(H, H, H, H)) == [(2, "in")]
    assert [s.direction for s in in_order(made.steps(made.plan.files[0], 1, regions(S, H, H, H))[::-1])] == [
        "out",
        "in",
    ]


def test_a_swap_that_gains_too_little_is_left_out_whole():
    # The swap gains 2 s - 1 s and copies for 2 s.
    assert steps(schedule(min_gain=0.5), 1, regions(S, H, H, H)) == []
    assert steps(schedule(min_gain=0.4), 1, regions(S, H, H, H)) == [(0, "out"), (1, "in")]


def test_a_file_on_another_grid_moves_whole_unless_only_its_repetitions_have_to_be_told_apart():
    made = schedule()
    odd = (Region(0, 3 * MIB, H),)
    assert steps(made, 1, odd) == [(0, made.steps(made.plan.files[0], 1, odd)[0].direction)]
    assert made.steps(made.plan.files[0], 1, odd)[0].len == 0
    with pytest.raises(UsageError, match="window 0"):
        steps(schedule(frozenset({1})), 1, odd)
    assert steps(made, 1, regions(H)) == [(1, "in")]
    assert on_grid(regions(H), regions(S, S, S)) == regions(H, H, H)
    assert on_grid(regions(H, S), regions(S, S, S)) == regions(H, S, S)


def test_a_step_changes_its_region_and_nothing_that_moved_meanwhile():
    made = schedule()
    step = made.steps(made.plan.files[0], 1, regions(S, H, H, H))[1]
    assert with_region(regions(H, H, S, H), step) == regions(H, S, S, H)


@pytest.mark.parametrize("text", ["", "x", "3-1", "1-", "1,,2", "1000001"])
def test_lists_of_windows_that_make_no_sense_are_refused(text):
    with pytest.raises(UsageError, match="--windows"):
        parse_windows(text)
    assert parse_windows("0,2-4") == {0, 2, 3, 4}


def cluster(tmp_path: Path, *rows: tuple[str, str, str]):
    text = ""
    for name, klass, state in rows:
        row = TARGET.replace("hdd0", name).replace('class = "hdd"', f'class = "{klass}"').replace("1048576", "0")
        text += row.rstrip() + f'\nstate = "{state}"\n\n'
    path = tmp_path / "cluster.toml"
    path.write_text(text)
    return read_cluster(path)


def test_a_drained_target_is_replaced_by_the_roomiest_of_its_class_else_left_out(tmp_path):
    made = cluster(
        tmp_path, ("a", "hdd", "draining"), ("b", "hdd", "active"), ("c", "hdd", "active"), ("s", "ssd", "active")
    )
    assert [t.name for t in made.hservers] == ["b", "c"]

    def after(*names, free=None):
        region = Region(0, MIB, tuple((name, 65536) for name in names))
        return [name for name, _ in on_active(Layout((region,)), made, MIB, free).regions[0].stripes]

    assert after("b", "c") == ["b", "c"]
    assert after("a", "s", free={"b": 2 * MIB, "c": 3 * MIB}) == ["c", "s"]
    assert after("a", "s", free={"b": 0, "c": 0}) == ["s"]
    assert after("b", "a", "c") == ["b", "c"]
    assert after("a", free={"b": 0, "c": 0, "s": 9}) == ["s"]


def test_room_that_was_given_away_is_not_given_twice(tmp_path):
    made = cluster(tmp_path, ("a", "hdd", "draining"), ("b", "hdd", "active"), ("c", "hdd", "active"))
    free = {"b": 3 * MIB, "c": 2 * MIB + 4096}
    layout = Layout(tuple(Region(n * MIB, MIB, (("a", 4096),)) for n in range(4)))
    names = [region.stripes[0][0] for region in on_active(layout, made, 4 * MIB, free).regions]
    assert names == ["b", "c", "b", "c"]
    assert json.dumps(free) == json.dumps({"b": MIB, "c": 4096})
