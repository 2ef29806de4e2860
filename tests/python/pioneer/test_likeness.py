"""What is expected of a path before it is played: durations as the trace had them, and the floor that two ranks set."""

from __future__ import annotations

import json

import numpy as np
import pytest

from stripewise.errors import WorkloadError
from stripewise.pioneer.extraction.gwp import read_gwp
from stripewise.pioneer.synthesis.likeness import expected, floor_of, reference_of
from stripewise.pioneer.synthesis.program import write_program
from stripewise.pioneer.synthesis.symbolic import programs
from traced import MS, Run

KIB = 1024


def written(place, took, waits=lambda rank, number: MS):
    """Both ranks write 400 times, for so many ns each."""
    run = Run(2)
    for rank in range(2):
        clock = MS
        run.call(rank, "open", "/d/all", 0, 0, done=3, aux=0o102, start=0, took=MS)
        for number in range(400):
            clock += waits(rank, number)
            run.call(rank, "write", "/d/all", (number * 2 + rank) * KIB, KIB, start=clock, took=took(number))
            clock += took(number)
        run.call(rank, "close", "/d/all", start=clock + MS, took=MS)
    return read_gwp(run.write(place))


def judged(gwp, place):
    made = programs([gwp])
    write_program(made, 2, 1, place / "out.swp", "p.json")
    return made, expected(place / "out.swp", 2, made, "p.json")


def test_durations_of_a_trace_are_kept_with_how_often_they_came_and_their_sum(tmp_path):
    gwp = written(tmp_path / "t", lambda number: 400 * MS if number % 100 == 7 else MS + number % 3)
    kept = reference_of(gwp)["durations"]["pwrite"]
    assert kept["weights"] == [396, 4]
    took = (gwp.end_ns - gwp.start_ns)[1:-1].sum()
    assert abs(np.dot(kept["values"], kept["weights"]) * 1e9 - took) < 400


def test_the_same_requests_are_expected_at_the_distance_that_chance_in_durations_makes(tmp_path):
    _, even = judged(written(tmp_path / "a", lambda _: MS), tmp_path)
    assert even.sum == 0
    # All long ones are in the first tenth; what is drawn has them anywhere.
    made, uneven = judged(written(tmp_path / "b", lambda number: 20 * MS if number < 40 else MS), tmp_path)
    assert uneven.arrivals > 0.1
    # Of old profiles the means are taken.
    old = {key: each for key, each in made.items() if key != "durations"}
    assert expected(tmp_path / "out.swp", 2, old, "p.json").arrivals > uneven.arrivals


def test_two_ranks_of_a_run_say_how_near_another_run_can_be(tmp_path):
    alike = reference_of(written(tmp_path / "a", lambda _: MS))
    assert floor_of(alike).sum == 0
    apart = written(tmp_path / "b", lambda _: MS, lambda rank, number: 9 * MS if rank and number % 20 == 0 else MS)
    assert floor_of(reference_of(apart)).arrivals > 0.05
    assert floor_of(None) is None and floor_of({}) is None


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("durations", {"pwrite": {"values": [-1], "weights": [1]}}, "durations.pwrite"),
        ("durations", {"pwrite": {"quantiles": [0, 1]}}, "durations.pwrite"),
        ("durations", 3, "durations"),
        ("floor", {"throughput": 2, "ratio": 0, "arrivals": 0}, "floor.throughput"),
        ("floor", {"ratio": 0}, "floor"),
    ],
)
def test_what_a_person_has_spoilt_is_told_with_its_key(tmp_path, key, value, said):
    made, _ = judged(written(tmp_path / "t", lambda _: MS), tmp_path)
    edited = json.loads(json.dumps(made)) | {key: value}
    with pytest.raises(WorkloadError, match=rf"p.json: programs.{said}"):
        expected(tmp_path / "out.swp", 2, edited, "p.json")
        floor_of(edited, "p.json")
