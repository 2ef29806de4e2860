"""What newcomers and attackers found: runs that could not be described, paths that could not be played, hostile
profiles, edits that nobody heard."""

import json
import os

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.errors import UsageError, WorkloadError
from stripewise.pioneer import path as paths
from stripewise.pioneer.characterization.profile_reader import profile_of
from stripewise.pioneer.characterize import characterize_traces
from stripewise.pioneer.extraction.gwp import read_gwp
from stripewise.pioneer.extraction.pauses import is_apart
from stripewise.pioneer.extraction.views import spanned
from stripewise.pioneer.operations import operations
from stripewise.pioneer.synthesis.requests import write_trace
from stripewise.pioneer.synthesis.synthesize import synthesize
from traced import Run

KIB = 1024
HAND = {
    "version": 1,
    "processes": 2,
    "classes": {
        "shared": {
            "OS": 1,
            "sessions": {
                "mpi-write": {
                    "D": 5,
                    "RT1": {"": {"mpi_write_at_all": 1}, "mpi_write_at_all": {"mpi_write_at_all": 3}},
                    "SIZE": {"mpi_write_at_all": 4 * KIB},
                }
            },
        }
    },
}


def dump(place, processes=2):
    """Rank 0 makes a directory, each rank writes a file in it under another name, renames it, and reads it."""
    run = Run(processes)
    run.opened(0, "/d/log")
    run.call(0, "write", "/d/log", 0, 9)
    run.call(0, "close", "/d/log")
    run.call(0, "mkdir", "/d/dump")
    for rank in range(processes):
        part, whole = f"/d/dump/part.{rank}.tmp", f"/d/dump/part.{rank}"
        run.opened(rank, part)
        run.call(rank, "write", part, 0, 64 * KIB)
        run.call(rank, "close", part)
        run.call(rank, "rename", part, file2=whole)
        run.opened(rank, whole, flags=0)
        run.call(rank, "read", whole, 0, 64 * KIB)
        run.call(rank, "close", whole)
    return run.write(place)


def described(place):
    """The profile, as whoever reads it again has it."""
    return profile_of(json.loads(characterize_traces([place]).profile.text()), "p.json").as_json()


def test_files_that_nobody_opens_are_a_class_without_sessions(tmp_path):
    run = Run(2)
    run.call(0, "mkdir", "/d/a")
    for rank in range(2):
        run.opened(rank, f"/d/a/{rank}")
        run.call(rank, "close", f"/d/a/{rank}")
    found = described(run.write(tmp_path / "t"))["classes"]["root"]
    assert found["OS"] == 1 and found["RT2"] == {"mkdir": 1} and found["AM"] == {"first": {}, "next": {}}


def test_what_a_rename_makes_is_not_there_before_and_its_directory_is(tmp_path):
    made = described(dump(tmp_path / "t"))
    files = {each["name"]: each for each in made["programs"]["files"]}
    assert files["dump"]["present"] and files["dump/part.{rank}"]["bytes"] == 0
    assert "present" not in files["dump/part.{rank}"]
    out = tmp_path / "s.swp"
    synthesize(made, "p.json", out, by="statistics")
    # Nor is the directory's name a file's.
    assert "dump" not in {each["name"] for each in paths.info(out)["files"] if not each["directory"]}


def test_a_target_that_nothing_else_touches_is_known(tmp_path):
    run = Run(2)
    for rank in range(2):
        run.opened(rank, f"/d/a.{rank}.tmp")
        run.call(rank, "write", f"/d/a.{rank}.tmp", 0, KIB)
        run.call(rank, "close", f"/d/a.{rank}.tmp")
        run.call(rank, "rename", f"/d/a.{rank}.tmp", file2=f"/d/a.{rank}")
    gwp = read_gwp(run.write(tmp_path / "t"))
    row = int(np.flatnonzero(gwp.op == operations()["rename"].number)[0])
    assert gwp.files[gwp.other[row]].template == "a.{rank}"


def test_a_sync_of_data_alone_is_one(tmp_path):
    run = Run(1)
    run.opened(0, "/d/a")
    run.call(0, "write", "/d/a", 0, KIB)
    run.call(0, "sync", "/d/a", size=1)
    run.call(0, "sync", "/d/a", size=0)
    run.call(0, "close", "/d/a")
    gwp = read_gwp(run.write(tmp_path / "t"))
    number = {name: operations()[name].number for name in ("fsync", "fdatasync")}
    assert [op for op in gwp.op.tolist() if op in number.values()] == [number["fdatasync"], number["fsync"]]


views = st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(1, 4), st.integers(0, 9))


@given(st.lists(st.tuples(st.integers(-1, 3), st.none() | views, st.integers(0, 60)), max_size=20))
def test_bytes_behind_a_view_span_its_gaps(rows):
    """Against byte by byte: a view holds until the next one of its session."""
    table, session, size, expected, held = [], [], [], [], {}
    for at, view, count in rows:
        if view is not None:
            piece, gap, pieces, more = view
            view = (piece, piece + gap, pieces, (piece + gap) * pieces + more)
            held[at] = view
        session.append(at)
        table.append(view or (0, 0, 0, 0))
        size.append(0 if view else count)
        places = [0] * count
        if view is None and at >= 0 and at in held:
            piece, distance, pieces, tile = held[at]
            places = [
                n // (piece * pieces) * tile + n % (piece * pieces) // piece * distance + n % piece
                for n in range(count)
            ]
            expected.append(max(places, default=-1) + 1)
        else:
            expected.append(0 if view else count)
    is_view = np.array([view is not None for _, view, _ in rows], np.bool_)
    columns = (np.array(each, np.int64) for each in (session, size))
    session, size = columns
    found = spanned(session, is_view, size, np.array(table, np.int64).reshape(-1, 4))
    assert found.tolist() == expected


def test_who_edits_the_classes_gets_what_they_say(tmp_path):
    made = described(dump(tmp_path / "t"))
    assert not synthesize(made, "p.json", tmp_path / "a.swp").is_edited
    made["classes"]["private"]["OS"] = 6
    made["classes"]["private"]["names"] = []
    found = synthesize(profile_of(made, "p.json").as_json(), "p.json", tmp_path / "b.swp")
    assert found.is_edited and found.way == "statistics" and found.files > 6
    assert not synthesize(made, "p.json", tmp_path / "c.swp", by="symbolic").is_edited


def test_formulas_that_lead_below_a_files_begin_make_no_path(tmp_path):
    made = described(dump(tmp_path / "t"))
    next(each for each in made["programs"]["body"] if each["op"] == "pread")["at_rank"] = -4096
    with pytest.raises(WorkloadError, match=r"rank 1 would go to offset -4096: no formulas for 2 processes; give --by"):
        synthesize(made, "p.json", tmp_path / "a.swp", by="symbolic")
    assert not list(tmp_path.glob("*.swp")) and not list(tmp_path.glob(".*.tmp"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"RT2": {"stat": 1e18}}, "RT2"),
        ({"names": ["./x"]}, "names"),
        ({"names": ["\ud800"]}, "names"),
        ({"names": ["a\x1b[2J"]}, "names"),
    ],
)
def test_hostile_classes_are_refused_at_once(change, said, tmp_path):
    data = json.loads(json.dumps(HAND))
    data["classes"]["shared"] |= change
    with pytest.raises(WorkloadError, match=said):
        synthesize(profile_of(data, "p.json").as_json(), "p.json", tmp_path / "a.swp")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("reference", [None, {"width_s": -1}, {"width_s": 1, "bytes": "x"}, 3])
def test_a_reference_that_is_none_is_refused(reference, tmp_path):
    made = described(dump(tmp_path / "t"))
    made["programs"]["reference"] = reference
    with pytest.raises(WorkloadError, match="reference"):
        synthesize(made, "p.json", tmp_path / "a.swp")


@pytest.mark.parametrize("more", [{}, {"root": {"OS": 1, "sessions": {"posix-read": {"SIZE": {"read0": 9}}}}}])
def test_collective_bytes_are_dealt_to_ranks_whatever_the_root_does_beside(more, tmp_path):
    """Of each collective write rank 1's 4 KiB lie behind rank 0's."""
    profile = tmp_path / "p.json"
    profile.write_text(json.dumps(HAND | {"classes": HAND["classes"] | more}))
    write_trace(profile, tmp_path / "t")
    rows = pq.read_table(tmp_path / "t" / "trace.parquet").to_pylist()
    writes = [[row["offset"] for row in rows if row["op"] == "write" and row["rank"] == rank] for rank in range(2)]
    assert writes == [[number * 4 * KIB for number in range(first, first + 4)] for first in range(2)]


def steps(chance, waits):
    """Pauses of two ranks before each step, and when the steps begin; they wait for each other, or go on."""
    clock, pauses, starts = np.zeros(2), [], []
    for computed in chance.uniform(0.9, 1.1, (40, 2)) * 1e8:
        began = clock.copy()
        clock = (np.full(2, clock.max()) if waits else clock) + computed
        pauses.append(clock - began)
        starts.append(clock.copy())
        clock += 1e6
    return [np.array(each).T.astype(np.int64) for each in (pauses, starts)]


def test_ranks_pause_on_their_own_where_they_drift_and_do_not_wait():
    """Chance brings walks back now and then; ranks that wait are not taken for others."""
    found = {waits: [steps(np.random.default_rng(seed), waits) for seed in range(200)] for waits in (False, True)}
    assert sum(is_apart(*pauses, *starts) for pauses, starts in found[False]) > 180
    assert sum(is_apart(*pauses, *starts) for pauses, starts in found[True]) < 4
    for pauses, starts in found[False]:
        assert not is_apart(pauses[0], pauses[0] + pauses[0] // 100, starts[0], np.cumsum(pauses[0]))
        assert not is_apart(*(each[:7] for each in (*pauses, *starts)))
    constant = np.full(40, 10**8)
    assert not is_apart(constant, constant, np.cumsum(constant), np.cumsum(constant))


@pytest.mark.parametrize("number", [1, 2])
def test_a_number_in_a_directory_that_all_use_is_no_rank(number, tmp_path):
    """Also where it is that of the child which stands for all."""
    run = Run(3)
    for rank in range(3):
        run.opened(rank, f"/run-{number}/own.{rank}")
        run.call(rank, "close", f"/run-{number}/own.{rank}")
        if rank:
            run.opened(rank, f"/run-{number}/child.{rank}")
            run.call(rank, "close", f"/run-{number}/child.{rank}")
    gwp = read_gwp(run.write(tmp_path / "t"))
    assert {each.template for each in gwp.files} == {"own.{rank}", "child.{rank}"}


def test_two_runs_of_one_size_are_not_one_programs(tmp_path):
    with pytest.raises(UsageError, match=r"two are of equally many processes .*: 2, .*: 2"):
        characterize_traces([dump(tmp_path / "a"), dump(tmp_path / "b")])


def test_a_pipe_is_no_path(tmp_path):
    os.mkfifo(tmp_path / "pipe.swp")
    for reads in (paths.info, paths.text, lambda path: paths.requests(path, 1, 0)):
        with pytest.raises(WorkloadError, match="is not a file"):
            reads(tmp_path / "pipe.swp")


def test_each_rank_makes_its_own_directory(tmp_path):
    run = Run(2)
    for rank in range(2):
        run.call(rank, "mkdir", f"/d/own.{rank}")
        run.opened(rank, f"/d/own.{rank}/file")
        run.call(rank, "write", f"/d/own.{rank}/file", 0, KIB)
        run.call(rank, "close", f"/d/own.{rank}/file")
    files = described(run.write(tmp_path / "t"))["programs"]["files"]
    assert [each["name"] for each in files if each.get("directory")] == ["own.{rank}"]
    assert not any(each.get("present") for each in files)
