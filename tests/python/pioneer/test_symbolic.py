"""Symbolic patterns give back the very requests of the root, and grow with P by formulas."""

import numpy as np
import pytest

from stripewise.errors import WorkloadError
from stripewise.pioneer import path as paths
from stripewise.pioneer.extraction.gwp import read_gwp
from stripewise.pioneer.operations import operations
from stripewise.pioneer.synthesis.program import write_program
from stripewise.pioneer.synthesis.symbolic import programs
from traced import MS, Run

PIECE = 65536


def traced(place, processes, rounds=20):
    """Ranks take turns in a shared file, then each writes its own; slack is 1 ms, in its own file 3 ms."""
    run = Run(processes)
    for rank in range(processes):
        clock = 0

        def call(op, file, *rest, wait=MS, rank=rank, **more):
            nonlocal clock
            clock += wait
            run.call(rank, op, file, *rest, start=clock, took=MS, **more)
            clock += MS

        call("open", "/d/all", 0, 0, done=3, aux=0o102)
        for number in range(rounds):
            call("write", "/d/all", (number * processes + rank) * PIECE, PIECE)
        call("close", "/d/all")
        call("open", f"/d/own.{rank}", 0, 0, done=3, aux=0o102)
        for number in range(rounds):
            call("write", f"/d/own.{rank}", number * PIECE, PIECE, wait=3 * MS)
        call("close", f"/d/own.{rank}")
    run.write(place)
    return read_gwp(place)


def data_of(path, processes, rank):
    rows = paths.requests(path, processes, rank)
    numbers = [each.number for each in operations().values() if each.is_data]
    return rows[np.isin(rows["op"], numbers)]


def test_a_regular_path_is_given_back_exactly_at_its_own_number(tmp_path):
    gwp = traced(tmp_path / "t", 4)
    made = programs([gwp])
    write_program(made, 4, 1, tmp_path / "out.swp", "profile.json")
    found = paths.requests(tmp_path / "out.swp", 4, 0)
    placed = found["offset"] >= 0
    assert found["op"].tolist() == gwp.op.tolist()
    assert found["offset"][placed].tolist() == np.maximum(gwp.offset, 0)[placed].tolist()
    assert found["size"].tolist() == gwp.size.tolist()
    assert found["slack_ns"].tolist() == gwp.slack_ns.tolist()
    assert paths.info(tmp_path / "out.swp")["nodes"] < 12


def test_turns_in_a_shared_file_grow_with_p_and_a_file_of_one_s_own_does_not(tmp_path):
    made = programs([traced(tmp_path / "t", 4)])
    assert made["guess"] and made["processes"] == [4]
    write_program(made, 16, 1, tmp_path / "out.swp", "profile.json")
    rows = data_of(tmp_path / "out.swp", 16, 15)
    assert rows["offset"][:3].tolist() == [15 * PIECE, 31 * PIECE, 47 * PIECE]
    assert rows["offset"][-2:].tolist() == [18 * PIECE, 19 * PIECE]


def test_two_numbers_of_processes_give_formulas_that_are_no_guess(tmp_path):
    # Strong scaling: fewer rounds where there are more ranks.
    made = programs([traced(tmp_path / "a", 4, 32), traced(tmp_path / "b", 8, 16)])
    assert not made["guess"] and made["processes"] == [4, 8]
    write_program(made, 16, 1, tmp_path / "out.swp", "profile.json")
    assert len(data_of(tmp_path / "out.swp", 16, 0)) == 2 * 8


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda made: made["body"][0].update(op="fly"), r"programs.body\[0\].op"),
        (lambda made: made["body"][0].update(at="P x Q"), r"programs.body\[0\].at"),
        (lambda made: made["body"][0].update(slack=[99]), r"programs.body\[0\].slack"),
        (lambda made: made["body"][0].update(colour=1), "colour"),
        (lambda made: made["files"][0].update(name="../up"), "programs"),
        (lambda made: made["body"][0].update(file=7), "programs"),
    ],
)
def test_a_bad_edit_is_told_with_its_key(tmp_path, edit, said):
    made = programs([traced(tmp_path / "t", 2)])
    edit(made)
    with pytest.raises(WorkloadError, match=said):
        write_program(made, 2, 1, tmp_path / "out.swp", "profile.json")


def test_a_pause_every_so_many_rounds_is_kept_where_it_was(tmp_path):
    run = Run(2)
    for rank in range(2):
        clock = MS
        run.call(rank, "open", "/d/all", 0, 0, done=3, aux=0o102, start=clock, took=MS)
        for number in range(32):
            clock += 2 * MS + (100 * MS if number % 8 == 0 else 0)
            run.call(rank, "write", "/d/all", (number * 2 + rank) * PIECE, PIECE, start=clock, took=MS)
        run.call(rank, "close", "/d/all", start=clock + 2 * MS, took=MS)
    run.write(tmp_path / "t")
    gwp = read_gwp(tmp_path / "t")
    write_program(programs([gwp]), 2, 1, tmp_path / "out.swp", "profile.json")
    found = paths.requests(tmp_path / "out.swp", 2, 0)
    assert found["slack_ns"].tolist() == gwp.slack_ns.tolist()
    assert paths.info(tmp_path / "out.swp")["nodes"] == 5
