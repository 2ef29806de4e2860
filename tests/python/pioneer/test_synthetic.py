"""Synthetic paths of profiles: by statistics and by patterns, for other numbers of processes, alike for a seed."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.errors import UsageError, WorkloadError
from stripewise.pioneer import path as paths
from stripewise.pioneer.characterization.profile_reader import profile_of
from stripewise.pioneer.operations import by_number
from stripewise.pioneer.synthesis.requests import as_trace
from stripewise.pioneer.synthesis.synthesize import Knobs, at_processes, synthesize
from stripewise.workload.trace import read_trace

STRIDED = {
    "version": 1,
    "processes": 4,
    "classes": {
        "shared": {
            "OS": 1,
            "OT": 2,
            "FS": 65536,
            "AM": {"first": {"mpi-write": 1}, "next": {"mpi-write": {"mpi-read": 1}}},
            "sessions": {
                kind: {
                    "D": 5,
                    "SEQ": 0.25,
                    "SIZE": {op: 4096},
                    "SHIFT": 4096,
                    "OFF": {"values": [16384, 32768, 49152], "weights": [1, 1, 1]},
                    "RT1": {"": {op: 1}, op: {op: 3}},
                }
                for kind, op in (("mpi-write", "mpi_write_at_all"), ("mpi-read", "mpi_read_at_all"))
            },
        }
    },
}


def complete(data):
    return profile_of(data, "hand.json").as_json()


def made(tmp_path, data, processes=None, **more):
    out = tmp_path / "out.swp"
    synthetic = synthesize(complete(data), "hand.json", out, processes, **more)
    return synthetic, paths.requests(out, synthetic.processes, synthetic.processes - 1)


def names(rows):
    ops = by_number()
    return [ops[int(op)].name for op in rows["op"]]


@pytest.mark.parametrize("processes", [2, 4, 8])
def test_ranks_that_take_turns_in_a_shared_file_do_so_at_any_number(tmp_path, processes):
    synthetic, rows = made(tmp_path, STRIDED, processes)
    data = rows[np.isin(names(rows), ["mpi_write_at_all", "mpi_read_at_all"])]
    rounds = [processes * 4096 * number + (processes - 1) * 4096 for number in range(4)]
    assert data["offset"].tolist() == rounds * 2
    assert (synthetic.requests, synthetic.way) == (12, "statistics")


def test_offsets_outside_of_turns_stay_as_they_are():
    other = json.loads(json.dumps(STRIDED))
    other["classes"]["shared"]["sessions"]["mpi-write"]["OFF"] = {"constant": 8192}
    grown = at_processes(complete(other), 8)["classes"]["shared"]
    assert grown["sessions"]["mpi-write"]["OFF"] == {"constant": 8192}
    assert grown["sessions"]["mpi-read"]["OFF"]["values"] == [32768, 65536, 98304]


def test_a_seed_gives_one_path_and_another_seed_the_same_counts_in_another_order(tmp_path):
    data = json.loads(json.dumps(STRIDED))
    data["classes"]["shared"]["sessions"]["mpi-write"]["ST"] = {
        "mpi_write_at_all": {"values": [0, 1, 2, 3], "weights": [1, 1, 1, 1]}
    }
    found = [made(tmp_path, data, seed=seed)[1] for seed in (1, 1, 2, 3)]
    slack = [rows["slack_ns"].tolist() for rows in found]
    assert slack[0] == slack[1]
    assert slack[0] != slack[2] or slack[0] != slack[3]
    assert sorted(slack[0]) == sorted(slack[2]) == sorted(slack[3])


def test_longer_sessions_keep_the_shares_of_their_operations(tmp_path):
    data = {
        "version": 1,
        "processes": 1,
        "classes": {
            "private": {
                "OS": 1,
                "sessions": {
                    "posix-readwrite": {
                        "D": 22,
                        "SIZE": {"write0": 10, "read1": 10, "read0": 10},
                        "OFF": 0,
                        "SEQ": 0.95,
                        "RT1": {"": {"write0": 1}, "write0": {"write0": 9, "fsync": 1}, "fsync": {"read1": 1},
                                "read1": {"read0": 1}, "read0": {"read0": 8}},
                    }
                },
            }
        },
    }  # fmt: skip
    plain = names(made(tmp_path, data)[1])
    assert plain == ["open", *["write0"] * 10, "fsync", "read1", *["read0"] * 9, "close"]
    longer = names(made(tmp_path, data, knobs=Knobs(scale=("requests=4",)))[1])
    assert len(longer) == 2 + 21 * 4
    assert abs(longer.count("write0") - 40) <= 3 and longer.count("fsync") <= 4


def test_a_profile_is_planned_from_as_a_trace_of_all_ranks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "profile.json"
    file.write_text(json.dumps(STRIDED))
    workload = read_trace(as_trace(file))
    assert (workload.processes, len(workload.files)) == (4, 1)
    rows = workload.files[0].requests
    assert sorted(rows["offset"][rows["write"]].tolist()) == list(range(0, 65536, 4096))
    assert workload.files[0].path == str(tmp_path / "shared.file0")


DEALT = {
    "mpi-write": {
        "D": 3,
        "SIZE": {"mpi_write_all0": 100},
        "RT1": {"": {"mpi_view": 1}, "mpi_view": {"mpi_write_all0": 1}},
        "SHIFT": 10,
        "VIEW": [{"piece": 10, "distance": 40}],
    },
    "mpi-read@root": {"SIZE": {"mpi_read_at_all": 10}, "RT1": {"": {"mpi_read_at_all": 1}}},
}


def dealt_of(tmp_path, monkeypatch, profile):
    """Names, ranks, places and bytes of what is written in place of a trace of the profile."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "profile.json"
    file.write_text(json.dumps({"version": 1, "processes": 4} | profile))
    rows = pq.read_table(as_trace(file) / "trace.parquet").to_pylist()
    return {(Path(row["file"]).name, row["rank"], row["offset"], row["done"]) for row in rows if row["op"] == "write"}


def dealt(tmp_path, monkeypatch, sessions):
    """Where each rank writes, and how much, in place of a trace of a shared file with such sessions in their order."""
    kinds = list(sessions)
    access = {"first": {kinds[0]: 1}, "next": {kinds[0]: {kinds[-1]: 1}}}
    shared = {"OS": 1, "OT": len(kinds), "AM": access, "FS": 400, "sessions": sessions}
    return sorted(row[1:] for row in dealt_of(tmp_path, monkeypatch, {"classes": {"shared": shared}}))


def test_bytes_of_collective_calls_are_dealt_whatever_the_root_does_by_itself(tmp_path, monkeypatch):
    alone = dealt(tmp_path, monkeypatch, {"mpi-write": DEALT["mpi-write"]})
    assert alone == [(rank, rank * 100, 100) for rank in range(4)]
    assert dealt(tmp_path, monkeypatch, DEALT) == alone


def test_collective_calls_on_communicators_of_one_rank_are_not_dealt(tmp_path, monkeypatch):
    own = {"SIZE": {"mpi_write_at_all": 10}, "RT1": {"": {"mpi_write_at_all": 1}}, "SHIFT": 40, "comm": {"self": 1}}
    assert dealt(tmp_path, monkeypatch, {"mpi-write": own}) == [(rank, rank * 40, 10) for rank in range(4)]


@pytest.mark.parametrize("is_mixture", [False, True])
def test_nor_are_those_of_patterns_and_mixtures(tmp_path, monkeypatch, is_mixture):
    own = {"SIZE": {"mpi_write_at_all": 10}, "RT1": {"": {"mpi_write_at_all": 1}}, "SHIFT": 40, "comm": {"self": 1}}
    one = {"shared": {"OS": 1, "FS": 400, "names": ["own"], "sessions": {"mpi-write": own}}}
    ops = {"mpi_open": {"size": 6}, "mpi_write_at_all": {"at_rank": 30, "size": 5}, "mpi_close": {}}
    body = [{"op": op, "file": file, "comm": file, **more} for file in range(2) for op, more in ops.items()]
    files = [{"name": name, "class": "shared"} for name in ("patterns", "dealt")]
    programs = {"files": files, "comms": ["self", "world"], "body": body}
    if is_mixture:
        programs["uncovered"] = {"requests": 9, "classes": one}
    found = dealt_of(tmp_path, monkeypatch, {"classes": one, "programs": programs})
    expected = {("patterns", rank, rank * 30, 5) for rank in range(4)} | {
        ("dealt", rank, rank * 5, 5) for rank in range(4)
    }
    assert found == expected | ({("own", rank, rank * 40, 10) for rank in range(4)} if is_mixture else set())


def test_the_header_by_hand_in_the_docs_lies_before_the_data(tmp_path):
    page = (Path(__file__).parents[3] / "docs/traces/pioneer.md").read_text()
    example, said = page.split("### Profiles written by hand")[1].split("### In place")[0].strip().split("\n\n", 1)
    data = json.loads(example)
    shared = data["classes"]["shared"]
    given = json.loads("{" + re.search(r"`(\"FS\".*?)`", said, re.DOTALL)[1] + "}")
    shared["FS"] = given.pop("FS")
    kind = shared["sessions"]["mpi-write"]
    kind |= {**given, "SIZE": kind["SIZE"] | given["SIZE"]}
    _, last = made(tmp_path, data)
    root = paths.requests(tmp_path / "out.swp", 4, 0)
    places = [rows["offset"][rows["size"] > 6].tolist() for rows in (root, last)]
    own = [512 + at * 262144 for at in range(4)]
    assert places == [[0, *own], [at + 3 * 1048576 for at in own]]


@pytest.mark.parametrize(
    ("more", "raises", "said"),
    [
        ({"by": "magic"}, UsageError, "--by: 'magic' is no way"),
        ({"by": "symbolic"}, UsageError, "has no symbolic patterns"),
        ({"processes": 0}, UsageError, "-n: 0 is not"),
        ({"knobs": Knobs(scale=("requests=1e12",))}, (UsageError, WorkloadError), "requests"),
    ],
)
def test_what_cannot_be_made_leaves_nothing(tmp_path, more, raises, said):
    with pytest.raises(raises, match=said):
        made(tmp_path, STRIDED, **more)
    assert not list(tmp_path.iterdir())


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_hand_written_profile_makes_a_path_or_is_an_error_that_names_a_key(tmp_path_factory, data):
    numbers = st.one_of(
        st.integers(-2, 300),
        st.builds(lambda a, b: {"uniform": [a, a + b]}, st.integers(0, 99), st.integers(0, 99)),
        st.builds(lambda a: {"exponential": {"mean": a}}, st.floats(0, 50)),
        st.just({"values": [1, 2], "weights": [0, 0]}),
    )
    kind = data.draw(st.sampled_from(["posix-write", "posix-read", "mpi-write", "posix-directory", "no-kind"]))
    keys = data.draw(st.dictionaries(st.sampled_from(["D", "IRG", "SEQ", "OFF", "SHIFT", "X"]), numbers, max_size=4))
    usual = {"posix-write": "write0", "posix-read": "read0", "mpi-write": "mpi_write_at"}.get(kind, "readdir")
    hand = {"OS": data.draw(st.integers(0, 3)), "sessions": {kind: {**keys, "SIZE": {usual: data.draw(numbers)}}}}
    out = tmp_path_factory.mktemp("hand") / "out.swp"
    try:
        synthetic = synthesize(complete({"version": 1, "processes": 3, "classes": {"private": hand}}), "hand.json", out)
    except WorkloadError as error:
        assert "hand.json" in str(error)
        return
    assert paths.info(out)["requests"] == synthetic.requests
