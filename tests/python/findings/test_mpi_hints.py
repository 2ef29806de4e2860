"""What findings and pages make of hints of MPI-IO: those given, those in force, and traces that have none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import opens, write_rows
from stripewise.findings import DEFAULT_CLUSTER, facts_of, findings_of, summary_of_run
from stripewise.findings.causes.sieving import _advice as sieving_advice
from stripewise.findings.layers import MpiCalls
from stripewise.findings.mpi_hints import FileHints, already, hints_in, set_hint
from support import KIB, MIB

#: ROMIO has a buffer for whoever gives none.
BUFFER = {"cb_buffer_size": ("16777216",)}
UNSET = FileHints({}, BUFFER | {"romio_cb_write": ("automatic",), "romio_ds_read": ("automatic",)})
GIVEN = FileHints({"romio_cb_write": ("enable",)}, BUFFER | {"romio_cb_write": ("enable",)})
AGAINST = FileHints({"romio_cb_write": ("disable",)}, BUFFER | {"romio_cb_write": ("disable",)})
#: Version 5 tells what it knows, version 4 what it was given.
OMPIO = FileHints({"romio_cb_write": ("enable",), "cb_nodes": ("1",)}, {"cb_nodes": ("1",)})
OMPIO_4 = FileHints({"romio_cb_write": ("enable",)}, {"romio_cb_write": ("enable",)})


def hinted(place, rows, **hints):
    trace = write_rows(place, rows)
    meta = trace / "meta.json"
    told = json.loads(meta.read_text()) if meta.exists() else {"version": 1}
    meta.write_text(json.dumps(told | {"hints": [{"path": "/d/f", "processes": 4, **hints}]}))
    return facts_of(trace)


def test_advice_names_what_the_program_gave():
    said = "set the hint romio_cb_write to enable (of ROMIO; Open MPI: --mca io romio341)"
    assert set_hint(None, "romio_cb_write", "enable") == said
    assert set_hint(None, "cb_buffer_size", "1") == "set the hint cb_buffer_size to 1"
    assert set_hint(AGAINST, "romio_cb_write", "enable").endswith("to enable (the program gave disable)")
    assert set_hint(UNSET, "romio_cb_write", "enable").endswith("(automatic was in force, not by the program)")
    assert already(GIVEN, "romio_cb_write", "enable") == "the hint romio_cb_write is enable already"
    assert already(AGAINST, "romio_cb_write", "enable") is already(None, "romio_cb_write", "enable") is None
    # Another open had it, so it is advised to that one.
    both = FileHints({}, {"romio_cb_write": ("automatic", "enable")})
    assert already(both, "romio_cb_write", "enable") is None
    untold = FileHints({"romio_cb_write": ("enable",)}, BUFFER)
    assert "does not tell in force" in already(untold, "romio_cb_write", "enable")


@pytest.mark.parametrize("hints", [OMPIO, OMPIO_4])
def test_open_mpi_s_own_mpi_io_is_advised_no_hints_of_romio(hints):
    assert hints.is_ompio and not any(each.is_ompio for each in (UNSET, GIVEN, AGAINST))
    assert already(hints, "romio_cb_write", "enable") is None
    advice = set_hint(hints, "romio_cb_write", "enable")
    assert advice.startswith("give Open MPI's mpiexec --mca fcoll vulcan (Open MPI's own MPI-IO does not know the hint")
    assert set_hint(hints, "romio_ds_read", "disable").endswith("mpiexec --mca fbtl_posix_read_datasieving 0")
    # This one it knows.
    assert set_hint(hints, "cb_buffer_size", "1") == "set the hint cb_buffer_size to 1"
    alone = MpiCalls("read", 4, 0, 0, 64 * MIB, 64, 4, MIB, 0, 0)
    assert "romio" not in sieving_advice(alone, False, hints)


def test_a_cure_of_sieving_is_none_that_is_there():
    collective = MpiCalls("write", 4, 4, 0, MIB, 64, 4, MIB, 4, MIB)
    assert sieving_advice(collective, True, GIVEN).startswith("write more in each collective call")
    assert "to enable (the program gave disable), so" in sieving_advice(collective, True, AGAINST)
    alone = MpiCalls("read", 4, 0, 0, 64 * MIB, 64, 4, MIB, 0, 0)
    off = FileHints({}, {"romio_ds_read": ("disable",)})
    assert "set the hint" not in sieving_advice(alone, False, off)
    assert "romio_ds_read to disable (automatic" in sieving_advice(alone, False, UNSET)


@pytest.mark.parametrize(
    ("hints", "advice"),
    [
        ({}, "or give Open MPI's mpiexec --mca fcoll vulcan, so that aggregators join them"),
        ({"in_force": {"romio_cb_write": "automatic"}}, "or set the hint romio_cb_write to enable (automatic was in"),
        (
            {"given": {"romio_cb_write": "disable"}, "in_force": {"cb_buffer_size": "1"}},
            "to enable (the program gave disable), so that aggregators",
        ),
        ({"in_force": {"romio_cb_write": "enable"}}, "the hint romio_cb_write is enable already, and is for such"),
    ],
)
def test_interleaved_writes_know_the_hints(tmp_path, hints, advice):
    rows = [(k % 4, "write", "/d/f", k * 2 * KIB, 2 * KIB) for k in range(1024)]
    (found,) = findings_of(hinted(tmp_path / "t", rows, **hints), DEFAULT_CLUSTER)
    assert found.cause == "interleaved" and advice in found.advice


def test_interleaved_calls_that_are_collective_already_need_the_hint_alone(tmp_path):
    rows = [(k % 4, "mpi_write_all", "/d/f", k * 2 * KIB, 2 * KIB) for k in range(1024)]
    rows += [(rank, "write", *others) for rank, _, *others in rows]
    run = hinted(tmp_path / "t", rows, given={"romio_cb_write": "disable"}, in_force={"cb_nodes": "1"})
    run.files[0].layers = (MpiCalls("write", 1024, 1024, 256, 2 * MIB, 1024, 4, 2 * KIB, 1024, 2 * MIB),)
    (found,) = findings_of(run, DEFAULT_CLUSTER)
    said = "set the hint romio_cb_write to enable (the program gave disable), so that aggregators join them"
    assert found.cause == "interleaved" and found.advice == said


@pytest.mark.parametrize(("op", "has_copies"), [("read", True), ("write", False)])
def test_programs_without_mpi_io_hear_nothing_of_it(tmp_path, op, has_copies):
    rows = [(k % 4, op, "/d/f", k * 2 * KIB, 2 * KIB) for k in range(1024)]
    (found,) = findings_of(facts_of(write_rows(tmp_path / "t", rows)), DEFAULT_CLUSTER)
    assert found.cause == "interleaved" and "MPI" not in found.advice and "romio" not in found.advice
    assert found.advice.startswith(f"have each process {op} a contiguous part of the file, in requests of 1.0 MiB")
    assert ("a copy in the order of the reads" in found.advice) == has_copies
    assert found.command.startswith("stripewise replicate ") == has_copies


@pytest.mark.parametrize(
    ("given", "in_force", "is_buffer"),
    [
        ({}, {}, True),
        ({}, {"cb_buffer_size": "65536"}, True),
        ({}, {"cb_buffer_size": "4194304"}, False),
        # OMPIO's requests have half of it.
        ({"cb_buffer_size": "131072"}, {"cb_buffer_size": "131072"}, True),
        ({"cb_buffer_size": "262144"}, {"cb_buffer_size": "262144"}, False),
    ],
)
def test_requests_smaller_than_the_buffer_in_force_are_not_the_buffers(tmp_path, given, in_force, is_buffer):
    rows = [*opens(4, "/d/f"), *((0, "write", "/d/f", k * 64 * KIB, 64 * KIB) for k in range(200))]
    found = findings_of(hinted(tmp_path / "t", rows, given=given, in_force=in_force), DEFAULT_CLUSTER)
    assert ("collective_buffer" in [each.cause for each in found]) == is_buffer
    if given and is_buffer:
        assert "33554432 (Open MPI's default) or more" in found[0].advice and "gave 131072" in found[0].advice
    elif in_force and is_buffer:
        assert "(65536 was in force, not by the program)" in found[0].advice


def test_a_page_has_the_hints_of_a_file_or_none(tmp_path):
    rows = [(0, "write", "/d/f", k * MIB, MIB) for k in range(4)]
    (line,) = summary_of_run(facts_of(write_rows(tmp_path / "old", rows))).files
    assert line.hints is None
    told = {"given": {"cb_nodes": "1", "evil": "\x1b[2J"}, "in_force": {"cb_nodes": "1", "striping_unit": "0"}}
    (line,) = summary_of_run(hinted(tmp_path / "t", rows, **told)).files
    assert line.hints.sentence == "The program gives the hints cb_nodes = 1, evil = ?[2J; in force: cb_nodes = 1."


def test_values_stand_in_the_order_in_which_they_were_noted():
    sets = [{"path": "/f", "given": {}, "in_force": {"cb_nodes": each}} for each in ("1", "2", "1")]
    assert hints_in({"hints": sets})["/f"].in_force == {"cb_nodes": ("1", "2")}


@given(st.recursive(st.none() | st.text() | st.integers(), lambda of: st.lists(of) | st.dictionaries(st.text(), of)))
def test_whatever_meta_json_holds_is_survived(value):
    for meta in ({"hints": value}, {"hints": [value, {"path": "/f", "given": value, "in_force": value}]}):
        assert all(isinstance(each.sentence, str) for each in hints_in(meta).values())
