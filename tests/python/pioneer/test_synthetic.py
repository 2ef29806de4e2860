"""Synthetic paths of profiles: by statistics and by patterns, for other numbers of processes, alike for a seed."""

import json

import numpy as np
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
